/** Errors of AWS's services. */

/** An error that a service answers in its own form. */
export class AwsError extends Error {
  constructor(
    readonly code: string,
    message: string,
    readonly status = 400,
    /** Further fields of the error, e.g. `Reason`. */
    readonly fields: Readonly<Record<string, string>> = {},
  ) {
    super(message);
    this.name = 'AwsError';
  }
}

export function invalidValue(message: string): AwsError {
  return new AwsError('InvalidParameterValue', message);
}

export function invalidCombination(message: string): AwsError {
  return new AwsError('InvalidParameterCombination', message);
}

/** Refuses parameters that the simulation does not have, so that none is ignored without notice. */
export function refuseUnsupported<T extends object>(input: T | undefined, names: readonly (keyof T & string)[]): void {
  const given = names.find((name) => input?.[name] !== undefined);
  if (given !== undefined) {
    throw new AwsError('UnsupportedOperation', `The simulation does not have the parameter ${given}`);
  }
}

export function missing(parameter: string): AwsError {
  return new AwsError('MissingParameter', `The request must contain the parameter ${parameter}`);
}

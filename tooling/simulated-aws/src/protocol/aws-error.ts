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

export function missing(parameter: string): AwsError {
  return new AwsError('MissingParameter', `The request must contain the parameter ${parameter}`);
}

/** Answers that refuse, in the form that Google's APIs give them. */

export class Refusal extends Error {
  constructor(
    readonly status: number,
    readonly reason: string,
    message: string,
    readonly domain = 'global',
  ) {
    super(message);
    this.name = 'Refusal';
  }

  /** See https://cloud.google.com/compute/docs/api/errors. */
  get body(): Readonly<Record<string, unknown>> {
    const { status: code, message, domain, reason } = this;
    return { error: { code, message, errors: [{ message, domain, reason }] } };
  }
}

export function notFound(resource: string): Refusal {
  return new Refusal(404, 'notFound', `The resource '${resource}' was not found`);
}

export function alreadyExists(resource: string): Refusal {
  return new Refusal(409, 'alreadyExists', `The resource '${resource}' already exists`);
}

export function invalid(message: string): Refusal {
  return new Refusal(400, 'invalid', message);
}

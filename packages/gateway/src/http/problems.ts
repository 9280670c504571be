/** Errors of the API as problem details (RFC 9457). */

/** The codes of problems; each is the last part of the type. */
export const PROBLEMS = {
  'bad-request': [400, 'The request does not conform to the API'],
  unauthorized: [401, 'The token is missing, unknown or expired'],
  forbidden: [403, 'The token does not permit this'],
  'not-found': [404, 'There is no such resource'],
  'method-not-allowed': [405, 'The resource does not have this method'],
  'not-acceptable': [406, 'The resource does not have this form'],
  timeout: [408, 'The request was not received in time'],
  conflict: [409, 'The state of the lease does not permit this'],
  'too-large': [413, 'The body is too large'],
  'unsupported-media-type': [415, 'The body must be JSON'],
  'key-reused': [422, 'The idempotency key was used with another body'],
  'rate-limit': [429, 'Too many requests'],
  streams: [429, 'Too many open streams'],
  quota: [429, 'The limit of nodes is reached'],
  internal: [500, 'Internal error'],
  unavailable: [503, 'ZooKeeper cannot be reached'],
} as const satisfies Readonly<Record<string, readonly [number, string]>>;

export type ProblemCode = keyof typeof PROBLEMS;

/** One part of a request that does not conform. */
export interface Violation {
  /** JSON pointer into the body, or the name of a parameter. */
  readonly path: string;
  readonly reason: string;
}

/** An error that is answered with problem details. */
export class ProblemError extends Error {
  constructor(
    readonly code: ProblemCode,
    detail: string,
    readonly extra: {
      readonly errors?: readonly Violation[];
      /** Seconds after which the request may be repeated. */
      readonly retryAfter?: number;
      readonly cause?: unknown;
    } = {},
  ) {
    super(detail, { cause: extra.cause });
    this.name = 'ProblemError';
  }

  get statusCode(): number {
    return PROBLEMS[this.code][0];
  }
}

/** Returns the body of the answer. */
export function problemDocument({ code, message, extra }: ProblemError): object {
  const [status, title] = PROBLEMS[code];
  const { errors } = extra;
  return {
    type: `urn:nodepool:problem:${code}`,
    ...{ title, status, detail: message, code },
    ...(errors === undefined ? {} : { errors }),
  };
}

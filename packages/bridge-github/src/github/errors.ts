/** Errors of calls to GitHub. */

/** Name of the Actions service's exception for a runner that cannot be deleted because its job runs. */
const JOB_STILL_RUNNING = 'JobStillRunningException';

/** GitHub has refused a call, or has not answered it. */
export class GithubError extends Error {
  readonly code = 'github';
  constructor(
    message: string,
    /** HTTP status of the answer; undefined without an answer. */
    readonly status: number | undefined,
    /** Name of the exception of the Actions service; empty if the answer has none. */
    readonly exception: string,
    /** Wait that GitHub asks for, milliseconds. */
    readonly retryAfterMs: number | undefined,
    options?: ErrorOptions,
  ) {
    super(message, options);
    this.name = 'GithubError';
  }
}

/** Returns true if GitHub has answered that the object does not exist. */
export function isNotFound(error: unknown): boolean {
  return error instanceof GithubError && error.status === 404;
}

export function isConflict(error: unknown): boolean {
  return error instanceof GithubError && error.status === 409;
}

export function isUnauthorized(error: unknown): boolean {
  return error instanceof GithubError && (error.status === 401 || error.status === 403);
}

/** Returns true if a runner was not deleted because its job runs. */
export function isJobRunning(error: unknown): boolean {
  return error instanceof GithubError && error.exception.includes(JOB_STILL_RUNNING);
}

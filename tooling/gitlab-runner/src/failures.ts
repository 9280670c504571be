/** Errors of a stage, as the runner tells them apart. */

/** The job's own failure, which is not retried. */
export class BuildFailure extends Error {
  constructor(
    message: string,
    readonly exitCode: number,
  ) {
    super(message);
  }
}

/** A failure of the driver or of its environment, which the runner may retry. */
export class SystemFailure extends Error {}

/** Reason for which a job's or a stage's signal aborts. */
export class Stopped extends Error {
  constructor(readonly why: 'canceled' | 'timeout' | 'interrupted') {
    super(why);
  }
}

import type { Logger } from '../runtime/logger.js';

/** Abort signal, deadline and log of a call to a cloud. */
export interface Call {
  /** Aborts once the result is no longer needed: stop, lost session, cancelled request, deadline. */
  readonly signal: AbortSignal;
  /** Time at which the call is abandoned, in `Clock.monotonic` milliseconds. */
  readonly deadline: number;
  readonly log: Logger;
}

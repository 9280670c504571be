import type { Logger } from '../runtime/logger.js';

/** What every call to a cloud carries. */
export interface Call {
  /** Aborts when nobody wants the result any more: stop, lost session, withdrawn request, deadline. */
  readonly signal: AbortSignal;
  /** `Clock.monotonic` milliseconds at which the call is given up. */
  readonly deadline: number;
  readonly log: Logger;
}

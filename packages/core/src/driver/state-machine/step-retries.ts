/** Retries of a machine's steps after temporary failures. */

import { backOffMs } from '../../runtime/back-off.js';
import type { Clock } from '../../runtime/clock.js';
import type { Logger } from '../../runtime/logger.js';
import type { RandomSource } from '../../runtime/random.js';
import { ERROR_POLICIES, type DriverError } from '../errors.js';
import type { Advance } from '../state-machine-api.js';

/** Time for which consecutive failures are retried before the launch fails and the launcher decides (ms). */
const RETRY_WINDOW_MS = 300_000;

export class StepRetries {
  private failures = 0;
  private failingSince = 0;

  constructor(
    private readonly clock: Clock,
    private readonly random: RandomSource,
  ) {}

  /** Records the result of a step, and returns it. A call that has only been started does not end the failures. */
  stepped(advance: Advance): Advance {
    if (advance.next !== 'call') this.failures = 0;
    return advance;
  }

  /**
   * Returns the delay before the failed step is repeated, and logs it. Returns undefined if the failure is not
   * temporary, or if the steps have failed for five minutes.
   */
  after(error: DriverError, state: string, log: Logger): Advance | undefined {
    const now = this.clock.monotonic();
    if (this.failures === 0) this.failingSince = now;
    if (!ERROR_POLICIES[error.code].mayPass || now - this.failingSince > RETRY_WINDOW_MS) return undefined;
    this.failures += 1;
    const ms = backOffMs(this.failures, error, this.random);
    log.info('A step of a launch failed; retrying', { state, error, retry_in_ms: Math.round(ms) });
    return { next: 'delay', ms };
  }
}

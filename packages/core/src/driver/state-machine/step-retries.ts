/** Retries of a machine's steps after temporary failures. */

import { backOffMs } from '../../runtime/back-off.js';
import type { Clock } from '../../runtime/clock.js';
import type { RandomSource } from '../../runtime/random.js';
import { ERROR_POLICIES, type DriverError } from '../errors.js';
import type { Advance, MachineCall } from '../state-machine-api.js';

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
   * Returns the delay before the failed step is repeated, reports the failure and logs it. Returns undefined if the
   * failure is not temporary, or if the steps have failed for five minutes. If the launch has certainly created nothing
   * (`mayExist` is false), only a fault of the node is retried: the launcher decides if the cloud or the label is at
   * fault, and can launch the node elsewhere at once.
   */
  after(
    error: DriverError,
    { state, mayExist }: { readonly state: string; readonly mayExist: boolean },
    { log, onRetry }: Pick<MachineCall, 'log' | 'onRetry'>,
  ): Advance | undefined {
    const now = this.clock.monotonic();
    if (this.failures === 0) this.failingSince = now;
    const { mayPass, scope } = ERROR_POLICIES[error.code];
    if (!mayPass || now - this.failingSince > RETRY_WINDOW_MS) return undefined;
    if (!mayExist && scope !== 'node') return undefined;
    this.failures += 1;
    onRetry?.(error);
    const ms = backOffMs(this.failures, error, this.random);
    log.info('A step of a launch failed; retrying', { state, error, retry_in_ms: Math.round(ms) });
    return { next: 'delay', ms };
  }
}

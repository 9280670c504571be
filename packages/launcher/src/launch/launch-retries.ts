/** How often one launch is tried, and how long it waits for its cloud. */

import { backOffMs, ERROR_POLICIES, type DriverError, type Provider } from '@nodepool/core';
import { isOutage, OUTAGE_PATIENCE_MS } from '../provider/cloud-outage.js';
import type { LauncherContext } from '../context.js';

/** The launch, as far as its retries depend on it. */
interface RetriedJob {
  readonly provider: Pick<Provider, 'config'>;
  /** True if another pool can serve the request while the cloud of this one fails. */
  canMoveOn(): boolean;
}

export class LaunchRetries {
  private failures = 0;
  /** Failures of the cloud in a row, and since when. */
  private outages = 0;
  private outageSince = 0;
  /** The failure was met once that a second attempt has to confirm. */
  private toConfirm = false;

  constructor(
    private readonly context: Pick<LauncherContext, 'clock' | 'random'>,
    private readonly job: RetriedJob,
  ) {}

  /** Milliseconds until the next attempt; undefined: there is none. `attempts`: those that count so far. */
  next(failure: DriverError, attempts: number): number | undefined {
    const { retry, countsAsAttempt } = ERROR_POLICIES[failure.code];
    const { launchRetries } = this.job.provider.config;
    this.failures += 1;
    if (retry === 'never' || retry === 'when-room') return undefined;
    if (countsAsAttempt && attempts >= launchRetries) return undefined;
    if (retry === 'confirm' && this.toConfirm) return undefined;
    this.toConfirm = retry === 'confirm';
    if (!this.outlasts(failure)) return undefined;
    return retry === 'at-once' ? 0 : backOffMs(this.failures, failure, this.context.random);
  }

  /** False if the launch has waited long enough for its cloud, or need not wait. */
  private outlasts(failure: DriverError): boolean {
    const now = this.context.clock.monotonic();
    if (!isOutage(failure)) {
      this.outages = 0;
      return true;
    }
    if (this.outages === 0) this.outageSince = now;
    this.outages += 1;
    const { launchRetries } = this.job.provider.config;
    if (this.outages >= launchRetries && this.job.canMoveOn()) return false;
    return now - this.outageSince < OUTAGE_PATIENCE_MS;
  }
}

/** Decides how often one launch is attempted, and how long it waits for its cloud. */

import { backOffMs, ERROR_POLICIES, type DriverError } from '@nodepool/core';
import { isOutage, MAX_OUTAGE_WAIT_MS } from '../cloud-outage.js';
import type { LauncherContext } from '../context.js';
import type { LaunchJob } from './launch-job.js';

/** The launch, as far as its retries depend on it. */
type RetriedJob = Pick<LaunchJob, 'provider' | 'canMoveOn'>;

export class LaunchRetries {
  private failures = 0;
  /** Failures of the cloud in a row, and since when. */
  private outages = 0;
  private outageSince = 0;
  /** A failure that counts only if the next attempt fails alike has happened once. */
  private failedOnce = false;

  constructor(
    private readonly context: Pick<LauncherContext, 'clock' | 'random'>,
    private readonly job: RetriedJob,
  ) {}

  /** Returns the milliseconds until the next attempt, if there is one. `attempts`: those that count so far. */
  next(failure: DriverError, attempts: number): number | undefined {
    const { retry, countsAsAttempt } = ERROR_POLICIES[failure.code];
    const { launchRetries } = this.job.provider.config;
    this.failures += 1;
    if (retry === 'never' || retry === 'when-room') return undefined;
    if (countsAsAttempt && attempts >= launchRetries) return undefined;
    if (retry === 'confirm' && this.failedOnce) return undefined;
    this.failedOnce = retry === 'confirm';
    if (!this.outlasts(failure)) return undefined;
    return retry === 'at-once' ? 0 : backOffMs(this.failures, failure, this.context.random);
  }

  /** Returns false if the launch has waited long enough for its cloud, or need not wait. */
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
    return now - this.outageSince < MAX_OUTAGE_WAIT_MS;
  }
}

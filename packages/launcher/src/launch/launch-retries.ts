/** Decides if and where a failed launch is attempted again, and when. */

import { backOffMs, ERROR_POLICIES, type DriverError } from '@nodepool/core';
import type { LaunchFault } from '../capacity/launch-fault.js';
import type { Offer } from '@nodepool/status';
import type { LauncherContext } from '../context.js';
import { canMoveOn, otherOffer, type LaunchJob } from './launch-job.js';

export interface NextAttempt {
  readonly delayMs: number;
  readonly offer: Offer;
  /** Number of the attempt, as `launch-retries` counts. */
  readonly number: number;
}

export class LaunchRetries {
  private failures = 0;
  /** An offer that the cloud has rejected once; another rejection confirms it. */
  private rejected: Offer | undefined;
  /** Offers that are not attempted again. */
  private readonly tried: Offer[] = [];

  constructor(
    private readonly context: Pick<LauncherContext, 'random'>,
    private readonly job: LaunchJob,
  ) {}

  /** Returns false for a rejection that counts only if the next attempt is rejected, too. */
  isConfirmed({ code }: DriverError, offer: Offer): boolean {
    return ERROR_POLICIES[code].retry !== 'confirm' || this.rejected === offer;
  }

  /** Returns the next attempt, or undefined. `number` is that of the failed attempt. */
  next(failure: DriverError, fault: LaunchFault, offer: Offer, number: number): NextAttempt | undefined {
    this.failures += 1;
    switch (fault.scope) {
      case 'none':
        return undefined;
      case 'provider':
        return this.afterOutage(failure, offer, number);
      case 'offer':
        // Usually all offers of a cloud are slow at the same time.
        if (fault.cause === 'slow' && canMoveOn(this.job)) return undefined;
        if (this.isConfirmed(failure, offer)) return this.elsewhere(offer, number);
        this.rejected = offer;
        return { delayMs: this.backOff(failure), offer, number };
      case 'node':
        return this.afterNodeFault(failure, offer, number);
    }
  }

  /** Returns true if another pool, or an offer of this one that was not tried, can serve the launch. */
  canMove(offer: Offer): boolean {
    const isUsed = (each: Offer): boolean => isSame(each, offer) || this.isTried(each);
    return canMoveOn(this.job) || otherOffer(this.job, offer, isUsed) !== undefined;
  }

  private afterNodeFault(failure: DriverError, offer: Offer, number: number): NextAttempt | undefined {
    const { launchRetries } = this.job.pool.provider.config;
    if (number >= launchRetries) return undefined;
    const delayMs = ERROR_POLICIES[failure.code].retry === 'at-once' ? 0 : this.backOff(failure);
    const isLast = number + 1 >= launchRetries;
    const other =
      isLast || !this.job.pool.admits(offer)
        ? otherOffer(this.job, offer, (each) => isSame(each, offer) || this.isTried(each))
        : undefined;
    return { delayMs, offer: other ?? offer, number: number + 1 };
  }

  private afterOutage(failure: DriverError, offer: Offer, number: number): NextAttempt | undefined {
    if (!this.job.pool.admits() || canMoveOn(this.job)) return undefined;
    return { delayMs: this.backOff(failure), offer, number };
  }

  private elsewhere(offer: Offer, number: number): NextAttempt | undefined {
    this.tried.push(offer);
    const other = otherOffer(this.job, offer, (each) => this.isTried(each));
    return other === undefined ? undefined : { delayMs: 0, offer: other, number };
  }

  private isTried(offer: Offer): boolean {
    return this.tried.some((each) => isSame(each, offer));
  }

  private backOff(failure: DriverError): number {
    return backOffMs(this.failures, failure, this.context.random);
  }
}

function isSame(a: Offer, b: Offer): boolean {
  return a.zone === b.zone && a.machineType === b.machineType;
}

/**
 * The state of a provider as its calls show it: starting, serving, or in trouble with a reason. Trouble begins when the
 * start fails or takes long, or when launches fail in a row; it ends with the first one that succeeds. While nothing is
 * launched, listings tell if the cloud can be reached.
 */

import { ERROR_POLICIES, type Clock, type DriverError, type Timer } from '@nodepool/core';

/** A start that takes longer counts as trouble, milliseconds. */
const SLOW_START_MS = 30_000;
/** Failures in a row, without a success in between, from which on a provider is in trouble. */
const FAILURES = 3;
/** Listings that fail in a row, from which on the cloud counts as unreachable. */
const FAILED_LISTINGS = 2;
/** First and longest time for which requests are left to other pools before the next attempt, milliseconds. */
const AVOID_MS = { first: 10_000, longest: 60_000 } as const;

export interface ProviderState {
  readonly state: 'starting' | 'serving' | 'trouble';
  /** Why it is in trouble. */
  readonly reason: string | undefined;
}

export class ProviderHealth {
  private serving = false;
  /** Launch attempts that failed in a row. */
  private failures = 0;
  private trouble: string | undefined;
  /** Listings that failed in a row, and since when, in milliseconds since the epoch. */
  private listings = { failed: 0, since: 0 };
  /** Why the cloud counts as unreachable. */
  private unreachable: string | undefined;
  /** Runs while requests are left to other pools. */
  private avoiding: Timer | undefined;
  private avoidMs: number = AVOID_MS.first;
  private readonly slowStart: Timer;

  constructor(
    private readonly clock: Clock,
    /** Called when `state.state` or `avoided` says something else. */
    private readonly onChange: () => void,
  ) {
    this.slowStart = clock.schedule(SLOW_START_MS, () => {
      if (this.trouble === undefined) this.startTroubled(`its start has not ended for ${SLOW_START_MS / 1000} s`);
    });
  }

  get state(): ProviderState {
    const reason = this.trouble ?? this.unreachable;
    if (reason !== undefined) return { state: 'trouble', reason };
    return { state: this.serving ? 'serving' : 'starting', reason: undefined };
  }

  /** True while requests that another pool can serve are left to it, as the cloud has just failed. */
  get avoided(): boolean {
    return this.avoiding !== undefined || (!this.serving && this.trouble !== undefined);
  }

  startFailed(error: DriverError): void {
    this.startTroubled(`it could not be started: ${error.message}`);
  }

  started(): void {
    this.slowStart.cancel();
    this.serving = true;
    this.trouble = undefined;
    this.onChange();
  }

  launchFailed(error: DriverError): void {
    const { code } = error;
    // Neither the end of a request nor a full quota says anything of the provider.
    if (code === 'aborted' || ERROR_POLICIES[code].retry === 'when-room') return;
    this.failures += 1;
    if (this.failures < FAILURES) return;
    const before = this.trouble;
    this.trouble = `its last ${this.failures} launch attempts failed, the last one with: ${error.message}`;
    if (ERROR_POLICIES[code].isOutage) this.avoid();
    else if (before === undefined) this.onChange();
  }

  /** A request was left to another pool because the cloud fails. */
  movedOn(error: DriverError): void {
    this.trouble ??= `its cloud fails: ${error.message}`;
    this.avoid();
  }

  launched(): void {
    this.failures = 0;
    this.avoidMs = AVOID_MS.first;
    const changed = this.state.state === 'trouble' || this.avoiding !== undefined;
    this.trouble = undefined;
    this.unreachable = undefined;
    this.avoiding?.cancel();
    this.avoiding = undefined;
    if (changed) this.onChange();
  }

  /** The cloud did not list its resources, whatever the reason. */
  listingFailed(error: DriverError): void {
    const { failed, since } = this.listings;
    this.listings = { failed: failed + 1, since: failed === 0 ? this.clock.now() : since };
    if (this.listings.failed < FAILED_LISTINGS) return;
    const before = this.state.state;
    const time = new Date(this.listings.since).toISOString();
    this.unreachable = `its cloud has not listed its resources since ${time}: ${error.message}`;
    if (this.state.state !== before) this.onChange();
  }

  listed(): void {
    this.listings = { failed: 0, since: 0 };
    const before = this.state.state;
    this.unreachable = undefined;
    if (this.state.state !== before) this.onChange();
  }

  stop(): void {
    this.slowStart.cancel();
    this.avoiding?.cancel();
    this.avoiding = undefined;
  }

  private startTroubled(reason: string): void {
    const before = this.trouble;
    this.trouble = reason;
    if (before === undefined) this.onChange();
  }

  /** Failures of launches that ran at the same time count once. */
  private avoid(): void {
    if (this.avoiding !== undefined) return;
    this.avoiding = this.clock.schedule(this.avoidMs, () => {
      this.avoiding = undefined;
      this.onChange();
    });
    this.avoidMs = Math.min(this.avoidMs * 2, AVOID_MS.longest);
    this.onChange();
  }
}

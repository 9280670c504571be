/** The launch attempts that failed in the last day, by provider and code of the error, and the most recent results. */

import type { Clock } from '@nodepool/core';
import type { Timelines } from '../timeline/timelines.js';

export interface ProviderFailure {
  readonly code: string;
  readonly count: number;
  /** The last error in words. */
  readonly text: string;
  /** Milliseconds since the epoch. */
  readonly last: number;
}

/** Recent results of the attempts of a provider whose failures a request pays with one of its attempts. */
export interface RecentLaunches {
  /** Number of attempts, and of those that failed through a fault of their node. */
  readonly ended: number;
  readonly failed: number;
  /** The last of these failures in words, and its time in milliseconds since the epoch. */
  readonly text: string;
  readonly last: number;
  /** Number of nodes that became ready after it. */
  readonly readySince: number;
  /** Time in minutes that the numbers cover at most. */
  readonly minutes: number;
}

const DAY_MS = 24 * 3_600_000;
const RECENT_MINUTES = 15;
const MAX_RECENT = 200;

interface Result {
  /** Milliseconds since the epoch. */
  readonly ended: number;
  /** Undefined if the node became ready. */
  readonly error: string | undefined;
}

export class ProviderFailures {
  private readonly byProvider = new Map<string, Map<string, ProviderFailure>>();
  private readonly results = new Map<string, Result[]>();

  constructor(
    private readonly clock: Clock,
    events: Timelines['events'],
  ) {
    events.attempted.on(({ provider, attempt: { error, ended } }) => {
      // An aborted launch says nothing about the provider, and one that moves on costs its request nothing.
      if (error === undefined || error.scope === 'node') this.ended(provider, { ended, error: error?.message });
      if (error === undefined || error.scope === 'none') return;
      const failures = this.byProvider.get(provider) ?? new Map<string, ProviderFailure>();
      this.byProvider.set(provider, failures);
      const before = failures.get(error.code);
      const count = before === undefined || ended - before.last > DAY_MS ? 1 : before.count + 1;
      failures.set(error.code, { code: error.code, count, text: error.message, last: ended });
    });
  }

  /** Returns the recent results of a provider; undefined if no attempt has failed. */
  recent(provider: string): RecentLaunches | undefined {
    const oldest = this.clock.now() - RECENT_MINUTES * 60_000;
    const results = (this.results.get(provider) ?? []).filter(({ ended }) => ended >= oldest);
    const failures = results.filter(({ error }) => error !== undefined);
    const last = failures.at(-1);
    if (last?.error === undefined) return undefined;
    return {
      ...{ ended: results.length, failed: failures.length, text: last.error, last: last.ended },
      ...{ readySince: results.length - 1 - results.lastIndexOf(last), minutes: RECENT_MINUTES },
    };
  }

  private ended(provider: string, result: Result): void {
    const results = this.results.get(provider) ?? [];
    this.results.set(provider, results);
    results.push(result);
    if (results.length > MAX_RECENT) results.shift();
  }

  /** Returns the failures of a provider, the latest first. */
  of(provider: string): ProviderFailure[] {
    const oldest = this.clock.now() - DAY_MS;
    return [...(this.byProvider.get(provider)?.values() ?? [])]
      .filter(({ last }) => last >= oldest)
      .sort((a, b) => b.last - a.last);
  }
}

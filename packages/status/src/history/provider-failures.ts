/** The launch attempts that failed in the last day, by provider and code of the error. */

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

const DAY_MS = 24 * 3_600_000;

export class ProviderFailures {
  private readonly byProvider = new Map<string, Map<string, ProviderFailure>>();

  constructor(
    private readonly clock: Clock,
    events: Timelines['events'],
  ) {
    events.attempted.on(({ provider, attempt: { error, ended } }) => {
      // An aborted launch says nothing about the provider.
      if (error === undefined || error.code === 'aborted') return;
      const failures = this.byProvider.get(provider) ?? new Map<string, ProviderFailure>();
      this.byProvider.set(provider, failures);
      const before = failures.get(error.code);
      const count = before === undefined || ended - before.last > DAY_MS ? 1 : before.count + 1;
      failures.set(error.code, { code: error.code, count, text: error.message, last: ended });
    });
  }

  /** Returns the failures of a provider, the latest first. */
  of(provider: string): ProviderFailure[] {
    const oldest = this.clock.now() - DAY_MS;
    return [...(this.byProvider.get(provider)?.values() ?? [])]
      .filter(({ last }) => last >= oldest)
      .sort((a, b) => b.last - a.last);
  }
}

/** Work on single records. The failure of one record delays only its own work. */

import { backOffMs, reasonOf, type LogFields, type ProviderContext } from '@nodepool/core';

interface Failure {
  count: number;
  /** Time of the next attempt, `Clock.monotonic` milliseconds. */
  retryAt: number;
}

export class IsolatedWork {
  /** Failures by key, since the last success. */
  private readonly failures = new Map<string, Failure>();

  constructor(
    private readonly context: Pick<ProviderContext, 'clock' | 'random' | 'log'>,
    private readonly signal: AbortSignal,
  ) {}

  /** Returns true until the next attempt after a failure is due. */
  isWaiting(key: string): boolean {
    return (this.failures.get(key)?.retryAt ?? -Infinity) > this.context.clock.monotonic();
  }

  /** Returns true if the last attempt failed. */
  isFailing(key: string): boolean {
    return this.failures.has(key);
  }

  /**
   * Resolves with the result of the work; with undefined if it failed. The first of several failures is logged. `what`
   * names the work, e.g. `A backing node could not be written`.
   */
  async run<T>(key: string, what: string, fields: LogFields, work: () => Promise<T>): Promise<T | undefined> {
    const { clock, random, log } = this.context;
    try {
      const result = await work();
      const failure = this.failures.get(key);
      if (failure !== undefined) log.info('The work on a record succeeded after failures', { ...fields, ...failure });
      this.failures.delete(key);
      return result;
    } catch (error) {
      if (this.signal.aborted) return undefined;
      const count = (this.failures.get(key)?.count ?? 0) + 1;
      const waitMs = backOffMs(count, error, random);
      this.failures.set(key, { count, retryAt: clock.monotonic() + waitMs });
      const details = { ...fields, retry_in_ms: Math.round(waitMs), error };
      if (count === 1) log.warn(`${what}; retrying: ${reasonOf(error)}`, details);
      else log.debug(`${what} again; retrying`, details);
      return undefined;
    }
  }

  /** Forgets the failures of records that do not exist any more. */
  retain(isKnown: (key: string) => boolean): void {
    for (const key of this.failures.keys()) if (!isKnown(key)) this.failures.delete(key);
  }

  /** Milliseconds until the next attempt is due; `Infinity` if none is. */
  get nextRetryMs(): number {
    const now = this.context.clock.monotonic();
    const due = [...this.failures.values()].map(({ retryAt }) => retryAt - now);
    // An attempt that is due now belongs to work that is not wanted any more, or to the next change.
    return Math.min(...due.filter((ms) => ms > 0));
  }
}

/** Work on single records. The failure of one record delays only its own work. */

import { backOffMs, reasonOf, type LogFields, type ProviderContext } from '@nodepool/core';

/** Number of failures in a row after which other records replace this one, e.g. by a new backing node. */
const MANY_FAILURES = 3;

/** Failures of the work on one record since the last success. */
interface Failure {
  readonly count: number;
  /** Time of the next attempt, `Clock.monotonic` milliseconds. */
  readonly retryAt: number;
  /** Logs the failure; undefined if that was done. */
  readonly report: (() => void) | undefined;
}

export class IsolatedWork {
  private readonly failures = new Map<string, Failure>();
  /** True after a failure, until the effects of all writes are known. */
  private isUncertain = false;

  constructor(
    private readonly context: Pick<ProviderContext, 'clock' | 'random' | 'log'>,
    private readonly signal: AbortSignal,
  ) {}

  /** Returns true until the next attempt after a failure is due. */
  isWaiting(key: string): boolean {
    return (this.failures.get(key)?.retryAt ?? -Infinity) > this.context.clock.monotonic();
  }

  /** Returns true if several attempts in a row have failed, so that the trouble will probably last. */
  isBroken(key: string): boolean {
    return (this.failures.get(key)?.count ?? 0) >= MANY_FAILURES;
  }

  /** True if `settle` must be called before anything is decided. */
  get isUnsettled(): boolean {
    return this.isUncertain;
  }

  /**
   * Resolves with the result of the work; with undefined if it failed. `what` names the failure in the log, e.g. `A
   * backing node could not be written`.
   */
  async run<T>(key: string, what: string, fields: LogFields, work: () => Promise<T>): Promise<T | undefined> {
    const { log } = this.context;
    try {
      const result = await work();
      const failure = this.failures.get(key);
      if (failure !== undefined) log.info('The work on a record succeeded', { ...fields, failures: failure.count });
      this.failures.delete(key);
      return result;
    } catch (error) {
      if (this.signal.aborted) return undefined;
      this.failed(key, what, fields, error);
      return undefined;
    }
  }

  /**
   * Waits after failures until the effects of all writes are known, and logs the first failure of each record. If
   * `refresh` rejects, the trouble is not that of single records: their failures are forgotten, and this rejects, too.
   */
  async settle(refresh: () => Promise<void>): Promise<void> {
    if (!this.isUncertain) return;
    const isNew = [...this.failures].filter(([, { report }]) => report !== undefined);
    try {
      await refresh();
    } catch (error) {
      for (const [key] of isNew) this.failures.delete(key);
      throw error;
    }
    this.isUncertain = false;
    for (const [key, failure] of isNew) {
      failure.report?.();
      this.failures.set(key, { ...failure, report: undefined });
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

  private failed(key: string, what: string, fields: LogFields, error: unknown): void {
    const { clock, random, log } = this.context;
    const count = (this.failures.get(key)?.count ?? 0) + 1;
    const waitMs = backOffMs(count, error, random);
    const details = { ...fields, retry_in_ms: Math.round(waitMs), error };
    const report = (): void => {
      if (count === 1) log.warn(`${what}; retrying: ${reasonOf(error)}`, details);
      else log.debug(`${what} again; retrying`, details);
    };
    this.failures.set(key, { count, retryAt: clock.monotonic() + waitMs, report });
    this.isUncertain = true;
  }
}

/**
 * Runners that have ended while GitHub still counts their job as assigned. Until it does not, they are subtracted from
 * the statistics, so that no further runner is requested for a job that has ended.
 */

/** Time in which GitHub counts an ended job as running, unless a message tells its end (ms). */
const SETTLE_MS = 5000;

export class SettlingRunners {
  /** Names with the time (`Clock.monotonic`) from which on GitHub does not count the job; Infinity if unknown. */
  private readonly until = new Map<string, number>();

  /** Notes a runner that has ended. The job of a `killed` one runs for GitHub until it misses the runner. */
  add(name: string, now: number, isKilled: boolean): void {
    this.until.set(name, isKilled ? Infinity : now + SETTLE_MS);
  }

  /** Forgets a runner, since a message tells the end of its job. */
  delete(name: string): void {
    this.until.delete(name);
  }

  /** Forgets the runners whose time is over. Returns the number of the others, and when the next one is forgotten. */
  count(now: number): { readonly runners: number; readonly nextAt: number } {
    for (const [name, until] of this.until) if (until <= now) this.until.delete(name);
    return { runners: this.until.size, nextAt: Math.min(Infinity, ...this.until.values()) };
  }

  /** Forgets killed runners that GitHub does not list any more. Returns true if there was one. */
  compare(listed: ReadonlySet<string>): boolean {
    const gone = [...this.until].filter(([name, until]) => until === Infinity && !listed.has(name));
    for (const [name] of gone) this.until.delete(name);
    return gone.length > 0;
  }
}

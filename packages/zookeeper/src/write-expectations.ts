/**
 * Matches the announced writes of a tree cache with events.
 *
 * An applied write causes one event, which arrives before its answer. If a path had no more events than applied writes,
 * the newest answer is the current state. If it had more, another client wrote as well, and the znode must be read.
 */

interface Account {
  /** Number of announcements that are not settled. */
  open: number;
  events: number;
  applied: number;
  /** True if the outcome of a write is unknown. */
  uncertain: boolean;
  /** True if the last event was a deletion. */
  deleted: boolean;
}

/** The state of a path after one of its announcements was settled. */
export interface Settlement {
  /** True if another client wrote too, or may have written. */
  readonly mustRead: boolean;
  /** True if the last event was a deletion. */
  readonly deleted: boolean;
}

export class WriteExpectations {
  private readonly accounts = new Map<string, Account>();

  announce(path: string): void {
    const account = this.accounts.get(path);
    if (account === undefined)
      this.accounts.set(path, { open: 1, events: 0, applied: 0, uncertain: false, deleted: false });
    else account.open++;
  }

  /** Counts an event. Returns true if an announced write may have caused it, so that no read is needed yet. */
  noteEvent(path: string, type: 'created' | 'changed' | 'deleted'): boolean {
    if (this.accounts.size === 0) return false;
    const account = this.accounts.get(path);
    if (account === undefined) return false;
    account.events++;
    account.deleted = type === 'deleted';
    return true;
  }

  /** Settles one announcement. */
  settle(path: string, outcome: 'applied' | 'untouched' | 'unknown'): Settlement {
    const account = this.accounts.get(path);
    if (account === undefined) return { mustRead: true, deleted: false };
    if (outcome === 'applied') account.applied++;
    if (outcome === 'unknown') account.uncertain = true;
    account.open--;
    const { deleted } = account;
    if (account.open > 0) return { mustRead: outcome === 'unknown', deleted };
    this.accounts.delete(path);
    return { mustRead: account.uncertain || account.events > account.applied, deleted };
  }
}

/**
 * The writes that the owner of a cached tree has announced, and which events they account for.
 *
 * An applied write of a znode causes one event, which comes before its answer. So when a path had no more events than
 * applied writes since they were announced, the newest answer says all there is to know; when it had more, somebody else
 * wrote as well, and the znode must be read.
 */

interface Account {
  /** Announcements that were not settled. */
  open: number;
  events: number;
  applied: number;
  /** The outcome of a write is not known. */
  doubtful: boolean;
  /** The last event was a deletion. */
  gone: boolean;
}

/** What is known of a path when one of its announcements is settled. */
export interface Settlement {
  /** Others wrote as well, or may have: it must be read. */
  readonly mustRead: boolean;
  /** It was deleted, as far as events tell. */
  readonly gone: boolean;
}

export class WriteExpectations {
  private readonly accounts = new Map<string, Account>();

  announce(path: string): void {
    const account = this.accounts.get(path);
    if (account === undefined)
      this.accounts.set(path, { open: 1, events: 0, applied: 0, doubtful: false, gone: false });
    else account.open++;
  }

  /** Notes an event. True: it may be that of an announced write, so that nothing needs to be read for it yet. */
  noteEvent(path: string, type: 'created' | 'changed' | 'deleted'): boolean {
    if (this.accounts.size === 0) return false;
    const account = this.accounts.get(path);
    if (account === undefined) return false;
    account.events++;
    account.gone = type === 'deleted';
    return true;
  }

  /** Settles one announcement. */
  settle(path: string, outcome: 'applied' | 'untouched' | 'unknown'): Settlement {
    const account = this.accounts.get(path);
    if (account === undefined) return { mustRead: true, gone: false };
    if (outcome === 'applied') account.applied++;
    if (outcome === 'unknown') account.doubtful = true;
    account.open--;
    const { gone } = account;
    if (account.open > 0) return { mustRead: outcome === 'unknown', gone };
    this.accounts.delete(path);
    return { mustRead: account.doubtful || account.events > account.applied, gone };
  }
}

/**
 * Matches the announced writes of a tree cache with events.
 *
 * An applied write causes one event, which arrives before its answer. If a path had no more events than applied writes,
 * the newest answer is the current state. If it had more, another client wrote as well, and the znode must be read.
 */

import type { TreeNode, WriteExpectation } from './recipes-api.js';

/** A path after a transaction, see `WriteExpectation.applied`. */
export interface Written {
  readonly path: string;
  readonly node: Pick<TreeNode, 'data' | 'stat'> | undefined;
}

interface Account {
  /** Number of announcements that are not settled. */
  open: number;
  events: number;
  applied: number;
  /** True if the outcome of a write is unknown. */
  uncertain: boolean;
  /** See `Settlement`. */
  mustRead: boolean;
  deleted: boolean;
}

/** The state of a path after one of its announcements was settled. */
export interface Settlement {
  /** True if another client wrote too, or may have written. */
  readonly mustRead: boolean;
  /** True if the last event was a deletion. */
  readonly deleted: boolean;
}

const UNANNOUNCED: Settlement = { mustRead: true, deleted: false };

export class WriteExpectations {
  private readonly accounts = new Map<string, Account>();

  announce(path: string): void {
    const account = this.accounts.get(path);
    if (account !== undefined) account.open++;
    else {
      const fresh = { open: 1, events: 0, applied: 0, uncertain: false, mustRead: false, deleted: false };
      this.accounts.set(path, fresh);
    }
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

  /** Returns true if a change was attributed to an announced write whose outcome is not known yet. */
  hasUnread(path: string): boolean {
    if (this.accounts.size === 0) return false;
    const account = this.accounts.get(path);
    return account !== undefined && account.events > account.applied;
  }

  /** Settles one announcement. The result is valid until the next call. */
  settle(path: string, outcome: 'applied' | 'untouched' | 'unknown'): Settlement {
    const account = this.accounts.get(path);
    if (account === undefined) return UNANNOUNCED;
    if (outcome === 'applied') account.applied++;
    if (outcome === 'unknown') account.uncertain = true;
    account.open--;
    if (account.open > 0) account.mustRead = outcome === 'unknown';
    else {
      account.mustRead = account.uncertain || account.events > account.applied;
      this.accounts.delete(path);
    }
    return account;
  }
}

/** Receives the outcome of each announced write. */
export interface OutcomeHandler {
  /** The write was applied; `generation` is that of the announcement. */
  onApplied(path: string, node: Written['node'], generation: number): void;
  onNotApplied(path: string, outcome: 'untouched' | 'unknown'): void;
}

/** The announced writes of one transaction. */
export class Announcement implements WriteExpectation {
  /** Each of the paths becomes undefined when the outcome of its write is passed on. */
  constructor(
    private readonly paths: (string | undefined)[],
    private readonly generation: number,
    private readonly handler: OutcomeHandler,
  ) {}

  applied(nodes: readonly Written[]): void {
    const { paths } = this;
    let next = 0;
    // Indexes, because every write comes here: they need no closure or iterator.
    for (let at = 0; at < nodes.length; at += 1) {
      const written = nodes[at];
      if (written === undefined) break;
      const { path, node } = written;
      // A search is rarely needed, because most callers list the nodes in the order of the announcement.
      const index = paths[next] === path ? next : paths.indexOf(path);
      if (index < 0) continue;
      next = index + 1;
      paths[index] = undefined;
      this.handler.onApplied(path, node, this.generation);
    }
    this.endWith('untouched');
  }

  unknown(): void {
    this.endWith('unknown');
  }

  private endWith(outcome: 'untouched' | 'unknown'): void {
    const { paths } = this;
    for (let index = 0; index < paths.length; index += 1) {
      const path = paths[index];
      paths[index] = undefined;
      if (path !== undefined) this.handler.onNotApplied(path, outcome);
    }
  }
}

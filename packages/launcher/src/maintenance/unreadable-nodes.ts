/**
 * Empty node records: who waits for the lock of a node that is removed meanwhile leaves one behind, for locks are made
 * with their parents. They are removed when nobody has held them for a while. Other records that cannot be read are left
 * to people; the store says which they are, and why.
 */

import { nodeLockPath } from '@nodepool/store';
import type { Timer } from '@nodepool/core';
import { isZooKeeperError, type TransactionOp } from '@nodepool/zookeeper';
import type { LauncherContext } from '../context.js';

/** Unreadable records are no news to anybody; so it is looked for them once in a while. */
const INTERVAL_MS = 60_000;

/** An empty record, as it was when it was looked at. */
interface EmptyRecord {
  readonly version: number;
  /** Of the creation: another record of the same name is another record. */
  readonly czxid: bigint;
}

export class UnreadableNodes {
  private timer: Timer;
  private empty: ReadonlyMap<string, EmptyRecord> = new Map();
  private readonly stopping = new AbortController();

  constructor(private readonly context: LauncherContext) {
    this.timer = this.schedule();
  }

  stop(): void {
    this.stopping.abort(new Error('the launcher is stopped'));
    this.timer.cancel();
  }

  private schedule(): Timer {
    return this.context.clock.schedule(INTERVAL_MS, () => {
      const { store, tasks } = this.context;
      const paths = store.complete ? Array.from(store.nodes.corrupt(), ({ path }) => path) : [];
      if (paths.length > 0) tasks.run('remove empty node records', () => this.look(paths));
      else this.empty = new Map();
      this.timer = this.schedule();
    });
  }

  private async look(paths: readonly string[]): Promise<void> {
    const found = new Map<string, EmptyRecord>();
    try {
      for (const path of paths) {
        const record = await this.readEmpty(path);
        if (record === undefined) continue;
        const seen = this.empty.get(path);
        if (seen?.czxid === record.czxid && seen.version === record.version) await this.remove(path, record);
        else found.set(path, record);
      }
      this.empty = found;
    } catch (error) {
      if (this.stopping.signal.aborted) return;
      this.context.log.warn('Empty node records could not be removed; it is tried again', { error });
    }
  }

  /** Undefined when it is gone, or not empty. */
  private async readEmpty(path: string): Promise<EmptyRecord | undefined> {
    try {
      const { data, stat } = await this.context.store.zooKeeper.get(path, { signal: this.stopping.signal });
      return data.length > 0 ? undefined : { version: stat.version, czxid: stat.czxid };
    } catch (error) {
      if (isZooKeeperError(error, 'no-node')) return undefined;
      throw error;
    }
  }

  /** Nothing is removed from below anybody: a lock that is contended for is not empty, so that its removal fails. */
  private async remove(path: string, { version }: EmptyRecord): Promise<void> {
    const { store, log } = this.context;
    const { signal } = this.stopping;
    const lock = nodeLockPath(path.slice(path.lastIndexOf('/') + 1));
    const hasLock = (await store.zooKeeper.exists(lock, { signal })) !== undefined;
    const ops: TransactionOp[] = [{ type: 'delete', path, version }];
    if (hasLock) ops.unshift({ type: 'delete', path: lock });
    try {
      await store.zooKeeper.transaction(ops, { signal });
      log.info('Removed an empty node record', { path });
    } catch (error) {
      const codes = ['no-node', 'not-empty', 'bad-version'] as const;
      if (!codes.some((code) => isZooKeeperError(error, code))) throw error;
      // It is gone, or in use again.
    }
  }
}

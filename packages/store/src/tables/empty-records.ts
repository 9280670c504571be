/**
 * Empty records of nodes and builds. A contender for the lock of a record that is deleted meanwhile leaves such a
 * record behind, because the lock recipe creates missing parents.
 */

import { isZooKeeperError, type CallOptions } from '@nodepool/zookeeper';
import type { StoreContext } from '../context.js';
import type { CorruptRecord } from '../errors.js';
import { znodesBelow } from '../znodes-below.js';

interface EmptyRecord {
  readonly path: string;
  readonly version: number;
  /** Transaction id of the creation: distinguishes the record from a later one of the same path. */
  readonly created: bigint;
  /** Paths of its descendants, parents first. */
  readonly below: readonly string[];
}

export class EmptyRecords {
  private seen: ReadonlyMap<string, EmptyRecord> = new Map();

  /**
   * `isLeftover` returns true for a path below a record that a former contender may have left. A record with any other
   * znode below it is in use.
   */
  constructor(
    private readonly context: StoreContext,
    private readonly corrupt: () => Iterable<CorruptRecord>,
    private readonly isLeftover: (path: string) => boolean,
  ) {}

  /** Deletes the records that this call and the previous one found empty, unused and unchanged. */
  async remove(options?: CallOptions): Promise<void> {
    const found = new Map<string, EmptyRecord>();
    for (const { path } of this.context.caches.complete ? [...this.corrupt()] : []) {
      const record = await this.read(path, options);
      if (record === undefined) continue;
      const before = this.seen.get(path);
      if (before?.created !== record.created || before.version !== record.version) found.set(path, record);
      else await this.removeUnchanged(record, options);
    }
    this.seen = found;
  }

  /** Reads past the cache. Resolves with undefined if the record does not exist, has content or is in use. */
  private async read(path: string, options?: CallOptions): Promise<EmptyRecord | undefined> {
    const { zooKeeper } = this.context;
    try {
      const { data, stat } = await zooKeeper.get(path, options);
      if (data.length > 0) return undefined;
      const below = await znodesBelow(zooKeeper, path, options);
      return below.every(this.isLeftover) ? { path, version: stat.version, created: stat.czxid, below } : undefined;
    } catch (error) {
      if (isZooKeeperError(error, 'no-node')) return undefined;
      throw error;
    }
  }

  /**
   * Deletes the record and its descendants in one transaction. Changes nothing if the record has changed, if one of the
   * znodes has a new child, or if one no longer exists.
   */
  private async removeUnchanged({ path, version, below }: EmptyRecord, options?: CallOptions): Promise<void> {
    const { zooKeeper, log } = this.context;
    const leftovers = below.toReversed().map((child) => ({ type: 'delete', path: child }) as const);
    try {
      await zooKeeper.transaction([...leftovers, { type: 'delete', path, version }], options);
      log.info('Removed an empty record, which a contender for a lock had left', { path });
    } catch (error) {
      const codes = ['no-node', 'not-empty', 'bad-version'] as const;
      if (!codes.some((code) => isZooKeeperError(error, code))) throw error;
    }
  }
}

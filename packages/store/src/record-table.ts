/** The known records of one kind: entries, contenders of their locks, unreadable records, and listeners. */

import type { TreeNode } from '@nodepool/zookeeper';
import type { Codec, Source, Stated } from './codec/codec.js';
import type { Emitter, Logger } from '@nodepool/core';
import type { CorruptRecord } from './errors.js';
import type { Change } from './api.js';
import { Index } from './indexes.js';
import { storeEmitter } from './listeners.js';

/** The fields of every entry of a table. */
export interface TableEntry<T> {
  readonly id: string;
  readonly version: number;
  readonly locked: boolean;
  readonly source: Source<T>;
}

interface EntryIndex<E> {
  update(before: E | undefined, after: E | undefined): void;
}

/** `T`: the record with its id, `D`: without it, `E`: the entries of the table. */
export interface TableOptions<D extends Stated, E extends object> {
  /** For messages, e.g. `node`. */
  readonly what: string;
  readonly codec: Codec<{ readonly id: string }, D>;
  readonly path: (id: string) => string;
  readonly entry: (source: Source<{ readonly id: string } & D>, version: number, locked: boolean) => E;
  /** Returns true if `entry` created the entry. */
  readonly isEntry: (entry: object) => entry is E;
  /** Updated before listeners are notified of a change, unless only `locked` changes. */
  readonly indexes: readonly EntryIndex<E>[];
  /** Further indexes, which depend on `locked` too. */
  readonly lockIndexes: readonly EntryIndex<E>[];
  readonly log: Logger;
}

const EVERYTHING: readonly string[] = [''];

export class RecordTable<D extends Stated, E extends TableEntry<{ readonly id: string } & D>> {
  readonly entries = new Map<string, E>();
  private readonly unreadable = new Map<string, CorruptRecord>();
  /** Number of contenders for the lock, by id. A lock may exist without its record. */
  private readonly contenders = new Map<string, number>();
  /** Ids with paused notifications: the number of pauses, and the entry of the last notification. */
  private readonly paused = new Map<string, { count: number; readonly reported: E | undefined }>();
  private readonly inOrder = new Index<E>(() => EVERYTHING);
  private readonly changes: Emitter<Change<E>>;

  constructor(private readonly options: TableOptions<D, E>) {
    this.changes = storeEmitter(options.log);
  }

  all(): Iterable<E> {
    return this.inOrder.select('', this.entries);
  }

  corrupt(): Iterable<CorruptRecord> {
    return this.unreadable.values();
  }

  /** Returns true if the record exists, readable or not. */
  has(id: string): boolean {
    return this.entries.has(id) || this.unreadable.has(id);
  }

  isContended(id: string): boolean {
    return this.contenders.has(id);
  }

  onChange(listener: (change: Change<E>) => void): () => void {
    return this.changes.on(listener);
  }

  /** Notifies listeners of a change around a record that does not exist. */
  notifyAbsent(id: string): void {
    this.changes.emit({ id, before: undefined, after: undefined });
  }

  /**
   * Returns the entry to lock and write; undefined if it is known to be locked or changed since, or is not from this
   * table.
   */
  lockable(entry: { readonly id: string; readonly version: number }): E | undefined {
    const known = this.entries.get(entry.id);
    if (known?.version === entry.version) return known.locked ? undefined : known;
    if (known !== undefined && (known.locked || known.version > entry.version)) return undefined;
    return this.options.isEntry(entry) && !entry.locked ? entry : undefined;
  }

  /** Creates an entry from a znode's data, or returns the reason why it cannot be read. */
  decode(id: string, znode: Pick<TreeNode, 'data' | 'stat'>, locked: boolean): E | CorruptRecord {
    const decoded = this.options.codec.decode(znode.data, { id }, znode.stat.mtime / 1000);
    return decoded.ok
      ? this.options.entry(decoded.source, znode.stat.version, locked)
      : {
          path: this.options.path(id),
          reason: `the record of ${this.options.what} ${id} cannot be read: ${decoded.reason}`,
          version: znode.stat.version,
        };
  }

  put(id: string, znode: TreeNode): void {
    const known = this.entries.get(id);
    const decoded = this.decode(id, znode, this.isContended(id));
    if (isCorrupt(decoded)) {
      this.unreadable.set(id, decoded);
      this.options.log.warn('A record cannot be read and is ignored', {
        path: decoded.path,
        reason: decoded.reason,
        version: decoded.version,
      });
      this.replace(id, known, undefined);
    } else if (known?.version !== decoded.version || Buffer.compare(known.source.data, decoded.source.data) !== 0) {
      this.unreadable.delete(id);
      this.replace(id, known, decoded);
    }
  }

  remove(id: string): void {
    this.unreadable.delete(id);
    this.replace(id, this.entries.get(id), undefined);
  }

  /** Pauses notifications of this id; changes are reported as one after the same number of `resume` calls. */
  pause(id: string): void {
    const paused = this.paused.get(id);
    if (paused === undefined) this.paused.set(id, { count: 1, reported: this.entries.get(id) });
    else paused.count += 1;
  }

  resume(id: string): void {
    const paused = this.paused.get(id);
    if (paused === undefined) return;
    paused.count -= 1;
    if (paused.count > 0) return;
    this.paused.delete(id);
    const after = this.entries.get(id);
    if (paused.reported !== after) this.changes.emit({ id, before: paused.reported, after });
  }

  /** A znode that is not a contender also blocks the lock, which is acquired by recreating its directory. */
  foreignAdded(id: string, path: string): void {
    this.options.log.warn(
      `A znode below the lock of a ${this.options.what} is no contender, so the ${this.options.what} counts as locked: ` +
        'remove the znode',
      { path },
    );
    this.contenderAdded(id);
  }

  contenderAdded(id: string): void {
    const count = this.contenders.get(id) ?? 0;
    this.contenders.set(id, count + 1);
    if (count === 0) this.lockChanged(id, true);
  }

  contenderRemoved(id: string): void {
    const count = this.contenders.get(id) ?? 0;
    if (count > 1) {
      this.contenders.set(id, count - 1);
      return;
    }
    this.contenders.delete(id);
    this.lockChanged(id, false);
  }

  private lockChanged(id: string, locked: boolean): void {
    const entry = this.entries.get(id);
    if (entry !== undefined && entry.locked !== locked) {
      this.replace(id, entry, this.options.entry(entry.source, entry.version, locked));
    }
  }

  private replace(id: string, before: E | undefined, after: E | undefined): void {
    if (before === undefined && after === undefined) return;
    if (after === undefined) this.entries.delete(id);
    else this.entries.set(id, after);
    if (before === undefined || after === undefined) this.inOrder.update(before, after);
    const { indexes, lockIndexes } = this.options;
    if (before?.source !== after?.source) indexes.forEach((index) => index.update(before, after));
    lockIndexes.forEach((index) => index.update(before, after));
    if (!this.paused.has(id)) this.changes.emit({ id, before, after });
  }
}

export function isCorrupt(decoded: object): decoded is CorruptRecord {
  return 'reason' in decoded;
}

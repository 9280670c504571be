/** The known records of one kind: entries, contenders of their locks, unreadable records, and listeners. */

import type { Stat, TreeNode } from '@nodepool/zookeeper';
import type { Codec, Source, Stated } from '../codec/codec.js';
import type { Emitter, Logger } from '@nodepool/core';
import type { CorruptRecord } from '../errors.js';
import type { Written } from './caches.js';
import type { Change } from './change.js';
import { SortedIds } from './indexes.js';
import { storeEmitter } from './listeners.js';
import { nameOf } from '../paths.js';

/** The fields of every entry of a table. */
export interface RecordEntry<T> {
  readonly id: string;
  readonly version: number;
  readonly locked: boolean;
  readonly source: Source<T>;
}

/** `T`: the record with its id, `D`: without it, `E`: the entries of the table. */
export interface TableOptions<D extends Stated, E extends object> {
  /** For messages, e.g. `node`. */
  readonly what: string;
  readonly codec: Codec<{ readonly id: string }, D>;
  readonly path: (id: string) => string;
  /** The class of the entries. */
  readonly entry: new (source: Source<{ readonly id: string } & D>, version: number, locked: boolean) => E;
  /** Updates the indexes. Called before listeners are notified of a change. */
  readonly reindex: (id: string, before: E | undefined, after: E | undefined) => void;
  readonly log: Logger;
}

/** A record with paused notifications. */
interface PausedRecord<E> {
  /** Number of pauses. */
  count: number;
  /** The entry of the last notification. */
  readonly reported: E | undefined;
  /** The last content that this client has written meanwhile, if the record was removed. */
  written: Written['node'];
  /** True if the record was removed, and was free before. */
  wasFree: boolean;
}

export class RecordTable<D extends Stated, E extends RecordEntry<{ readonly id: string } & D>> {
  readonly entries = new Map<string, E>();
  private readonly unreadable = new Map<string, CorruptRecord>();
  /** Number of contenders for the lock, by id. A lock may exist without its record. */
  private readonly contenders = new Map<string, number>();
  private readonly paused = new Map<string, PausedRecord<E>>();
  private readonly ids = new SortedIds();
  private readonly changes: Emitter<Change<E>>;

  constructor(private readonly options: TableOptions<D, E>) {
    this.changes = storeEmitter(options.log);
  }

  /** Iterates over the present entries in the order of ids, except those that are removed in the meantime. */
  *all(): Iterable<E> {
    for (const id of this.ids.snapshot()) {
      const entry = this.entries.get(id);
      if (entry !== undefined) yield entry;
    }
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

  /** Returns true if the lock of the record is free, but the record counts as locked until it is read. */
  isUnlocking(id: string): boolean {
    return this.entries.get(id)?.locked === true && !this.contenders.has(id);
  }

  onChange(listener: (change: Change<E>) => void): () => void {
    return this.changes.on(listener);
  }

  /** Notifies listeners of a change around a record that does not exist. */
  notifyAbsent(id: string): void {
    this.changes.emit({ id, before: undefined, after: undefined });
  }

  /** Returns the entry to lock and write; undefined if it is known to be locked or changed, or of another table. */
  lockable(entry: { readonly id: string; readonly version: number }): E | undefined {
    const known = this.entries.get(entry.id);
    if (known?.version === entry.version) return known.locked ? undefined : known;
    if (known !== undefined && (known.locked || known.version > entry.version)) return undefined;
    return entry instanceof this.options.entry && !entry.locked ? entry : undefined;
  }

  /** Creates an entry from a znode's data, or returns the reason why it cannot be read. */
  decode(id: string, znode: Pick<TreeNode, 'data' | 'stat'>, locked: boolean): E | CorruptRecord {
    const { data, stat } = znode;
    const { codec, entry: Entry } = this.options;
    const decoded = codec.decode(data, { id }, stat.mtime / 1000);
    return decoded.ok ? new Entry(decoded.source, stat.version, locked) : this.corruptRecord(id, decoded.reason, stat);
  }

  put(id: string, { data, stat }: TreeNode): void {
    const known = this.entries.get(id);
    const { codec, entry: Entry } = this.options;
    const decoded = codec.decode(data, { id }, stat.mtime / 1000);
    if (!decoded.ok) {
      const corrupt = this.corruptRecord(id, decoded.reason, stat);
      this.unreadable.set(id, corrupt);
      this.options.log.warn('A record cannot be read and is ignored', { ...corrupt });
      this.replace(id, known, undefined);
    } else if (known?.version !== stat.version || Buffer.compare(known.source.data, decoded.source.data) !== 0) {
      this.unreadable.delete(id);
      this.replace(id, known, new Entry(decoded.source, stat.version, this.contenders.has(id)));
    }
  }

  /**
   * Returns false if there was no readable record, so that listeners are not notified. `isCurrent`: the entry has every
   * change before the deletion.
   */
  remove(id: string, isCurrent = false): boolean {
    this.unreadable.delete(id);
    const known = this.entries.get(id);
    this.replace(id, known, undefined, isCurrent && known?.locked === false && !this.isContended(id));
    return known !== undefined;
  }

  /** Pauses notifications of these records; changes are reported as one after the same number of `resume` calls. */
  pause(paths: readonly string[]): void {
    for (let index = 0; index < paths.length; index += 1) {
      const id = nameOf(paths[index] ?? '');
      const paused = this.paused.get(id);
      if (paused === undefined) this.paused.set(id, newPause(this.entries.get(id)));
      else paused.count += 1;
    }
  }

  /**
   * Resumes notifications. If another program has deleted a record right after this client wrote it, listeners are
   * notified of the write first: a fulfilled request is not a cancelled one.
   */
  resume(paths: readonly string[], written: readonly Written[]): void {
    for (let index = 0; index < paths.length; index += 1) {
      const path = paths[index] ?? '';
      const id = nameOf(path);
      const paused = this.paused.get(id);
      if (paused === undefined) continue;
      const isRemoved = !this.has(id);
      // A search is rarely needed, because hardly any record is deleted during a write.
      if (isRemoved) paused.written = written.find((each) => each.path === path)?.node ?? paused.written;
      paused.count -= 1;
      if (paused.count > 0) continue;
      this.paused.delete(id);
      const after = this.entries.get(id);
      if (paused.reported === after || (isRemoved && this.reportedWrite(id, paused))) continue;
      this.emit(id, paused.reported, after, paused.wasFree);
    }
  }

  /** Reports the last write of a removed record, and then its removal. Returns false if nothing new was written. */
  private reportedWrite(id: string, { reported, written }: PausedRecord<E>): boolean {
    if (reported === undefined || written === undefined || written.stat.version <= reported.version) return false;
    const entry = this.decode(id, written, this.contenders.has(id));
    if (isCorrupt(entry)) return false;
    // Listeners find the record that they are notified of.
    this.entries.set(id, entry);
    this.ids.add(id);
    this.options.reindex(id, undefined, entry);
    this.changes.emit({ id, before: reported, after: entry });
    this.replace(id, entry, undefined);
    return true;
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

  /** `reading`: a pending read of the record; its entry shows the lock when the read is done. */
  contenderAdded(id: string, reading?: Promise<void>): void {
    const count = this.contenders.get(id) ?? 0;
    this.contenders.set(id, count + 1);
    if (count > 0) return;
    if (reading === undefined) this.lockChanged(id, true);
    else this.lockRead(id, reading);
  }

  /**
   * `reading`: the pending read of the record. A program often writes a record and unlocks it in one transaction, so
   * the record counts as locked until the read is done: no decision relies on its former content.
   */
  contenderRemoved(id: string, reading?: Promise<void>): void {
    const count = this.contenders.get(id) ?? 0;
    if (count > 1) {
      this.contenders.set(id, count - 1);
      return;
    }
    this.contenders.delete(id);
    if (reading === undefined) this.lockChanged(id, false);
    else this.lockRead(id, reading);
  }

  private lockRead(id: string, reading: Promise<void>): void {
    void reading.then(() => this.lockChanged(id, this.contenders.has(id)));
  }

  private lockChanged(id: string, locked: boolean): void {
    const entry = this.entries.get(id);
    if (entry !== undefined && entry.locked !== locked) {
      this.replace(id, entry, new this.options.entry(entry.source, entry.version, locked));
    }
  }

  private corruptRecord(id: string, reason: string, { version }: Stat): CorruptRecord {
    const { what, path } = this.options;
    return { path: path(id), reason: `the record of ${what} ${id} cannot be read: ${reason}`, version };
  }

  private replace(id: string, before: E | undefined, after: E | undefined, wasFree = false): void {
    if (before === undefined && after === undefined) return;
    if (after === undefined) this.entries.delete(id);
    else this.entries.set(id, after);
    if (before === undefined) this.ids.add(id);
    else if (after === undefined) this.ids.remove(id);
    this.options.reindex(id, before, after);
    const paused = this.paused.get(id);
    if (paused === undefined) this.emit(id, before, after, wasFree);
    else paused.wasFree = wasFree;
  }

  private emit(id: string, before: E | undefined, after: E | undefined, wasFree: boolean): void {
    const change = { id, before, after };
    this.changes.emit(wasFree && after === undefined ? { ...change, wasFree } : change);
  }
}

function newPause<E>(reported: E | undefined): PausedRecord<E> {
  return { count: 1, reported, written: undefined, wasFree: false };
}

export function isCorrupt(decoded: object): decoded is CorruptRecord {
  return 'reason' in decoded;
}

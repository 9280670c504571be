/** Records of one kind by id. Deleted records are kept for lagging listings and deleted-since queries. */

/** Properties of every record of the cloud. */
export interface Owned {
  readonly id: string;
  /** Id of the owning project. */
  readonly project: string;
  /** Milliseconds since the epoch. */
  readonly createdAt: number;
}

/** Lag of a listing. */
export interface Lag {
  /** Age below which records are not listed yet (ms). */
  readonly lacksNewestMs: number;
  /** Time for which deleted records are still listed (ms). */
  readonly showsDeletedMs: number;
}

export interface Tombstone<R> {
  readonly record: R;
  readonly deletedAt: number;
}

/** Maximum number of deleted records that are kept. */
const TOMBSTONES = 5000;

export class Table<R extends Owned> {
  private readonly records = new Map<string, R>();
  private readonly tombstones = new Map<string, Tombstone<R>>();

  get size(): number {
    return this.records.size;
  }

  get(id: string): R | undefined {
    return this.records.get(id);
  }

  add(record: R): void {
    this.records.set(record.id, record);
  }

  /** Removes a record. Returns false if it does not exist. */
  remove(id: string, now: number): boolean {
    const record = this.records.get(id);
    if (record === undefined) return false;
    this.records.delete(id);
    this.tombstones.set(id, { record, deletedAt: now });
    const [oldest] = this.tombstones.keys();
    if (this.tombstones.size > TOMBSTONES && oldest !== undefined) this.tombstones.delete(oldest);
    return true;
  }

  all(): IterableIterator<R> {
    return this.records.values();
  }

  deleted(): IterableIterator<Tombstone<R>> {
    return this.tombstones.values();
  }

  /** Returns the records that a listing with this lag shows. */
  seen(now: number, lag: Lag): R[] {
    const seen = [...this.records.values()].filter((record) => record.createdAt <= now - lag.lacksNewestMs);
    if (lag.showsDeletedMs > 0) {
      for (const { record, deletedAt } of this.tombstones.values()) {
        if (deletedAt > now - lag.showsDeletedMs) seen.push(record);
      }
    }
    return seen;
  }
}

/** Orders records newest first, as nova, glance and cinder do. */
export function newestFirst(a: Owned, b: Owned): number {
  return b.createdAt - a.createdAt || (a.id < b.id ? 1 : -1);
}

/** Records of one kind, by id; those that are gone stay known for listings that lag and for deleted-since queries. */

/** What every record of the cloud has. */
export interface Owned {
  readonly id: string;
  /** Id of the project that it belongs to. */
  readonly project: string;
  /** Milliseconds since the epoch. */
  readonly createdAt: number;
}

/** A listing that is behind. */
export interface Lag {
  /** Records younger than this are not listed, milliseconds. */
  readonly lacksNewestMs: number;
  /** Records deleted less than this ago are still listed, milliseconds. */
  readonly showsDeletedMs: number;
}

export interface Tombstone<R> {
  readonly record: R;
  readonly deletedAt: number;
}

/** So many deleted records are remembered. */
const TOMBSTONES = 5000;

export class Table<R extends Owned> {
  private readonly records = new Map<string, R>();
  private readonly graves = new Map<string, Tombstone<R>>();

  get size(): number {
    return this.records.size;
  }

  get(id: string): R | undefined {
    return this.records.get(id);
  }

  add(record: R): void {
    this.records.set(record.id, record);
  }

  /** False: there is none. */
  remove(id: string, now: number): boolean {
    const record = this.records.get(id);
    if (record === undefined) return false;
    this.records.delete(id);
    this.graves.set(id, { record, deletedAt: now });
    const [oldest] = this.graves.keys();
    if (this.graves.size > TOMBSTONES && oldest !== undefined) this.graves.delete(oldest);
    return true;
  }

  all(): IterableIterator<R> {
    return this.records.values();
  }

  deleted(): IterableIterator<Tombstone<R>> {
    return this.graves.values();
  }

  /** What a listing shows that is behind like this. */
  seen(now: number, lag: Lag): R[] {
    const seen = [...this.records.values()].filter((record) => record.createdAt <= now - lag.lacksNewestMs);
    if (lag.showsDeletedMs > 0) {
      for (const { record, deletedAt } of this.graves.values()) {
        if (deletedAt > now - lag.showsDeletedMs) seen.push(record);
      }
    }
    return seen;
  }
}

/** Newest first, as nova, glance and cinder list. */
export function newestFirst(a: Owned, b: Owned): number {
  return b.createdAt - a.createdAt || (a.id < b.id ? 1 : -1);
}

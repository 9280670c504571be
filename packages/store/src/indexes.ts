/** Indexes over entries, updated with every change and iterated in the order of ids. */

const NO_KEYS: readonly string[] = [];

/** The keys of an entry: a single key does not need a list. */
export type Keys = string | readonly string[] | undefined;

/** Entries by computed keys. */
export class Index<E extends { readonly id: string }> {
  private readonly byKey = new Map<string, SortedIds>();

  /** `keysOf` must depend on the entry only. */
  constructor(private readonly keysOf: (entry: E) => Keys) {}

  update(before: E | undefined, after: E | undefined): void {
    const ofBefore = before === undefined ? undefined : this.keysOf(before);
    const ofAfter = after === undefined ? undefined : this.keysOf(after);
    // Most updates change no key.
    if (ofBefore === ofAfter) return;
    if (before !== undefined) this.removeFrom(ofBefore, before.id, ofAfter);
    if (after !== undefined) this.addTo(ofAfter, after.id, ofBefore);
  }

  /** Returns the present ids; later changes do not affect the result. */
  ids(key: string): readonly string[] {
    return this.byKey.get(key)?.snapshot() ?? NO_KEYS;
  }

  /** Returns the present entries that have this key. */
  present(key: string, entries: ReadonlyMap<string, E>): readonly E[] {
    const present: E[] = [];
    for (const id of this.byKey.get(key)?.present() ?? NO_KEYS) {
      const entry = entries.get(id);
      if (entry !== undefined) present.push(entry);
    }
    return present;
  }

  /**
   * Iterates over the entries that have this key at the time of the call, except those that lose it before the
   * iteration reaches them.
   */
  *select(key: string, entries: ReadonlyMap<string, E>): Iterable<E> {
    for (const id of this.ids(key)) {
      const entry = entries.get(id);
      if (entry !== undefined && hasKey(this.keysOf(entry), key)) yield entry;
    }
  }

  private removeFrom(keys: Keys, id: string, kept: Keys): void {
    if (typeof keys === 'string') {
      if (!hasKey(kept, keys)) this.remove(keys, id);
    } else if (keys !== undefined) {
      for (const key of keys) if (!hasKey(kept, key)) this.remove(key, id);
    }
  }

  private addTo(keys: Keys, id: string, known: Keys): void {
    if (typeof keys === 'string') {
      if (!hasKey(known, keys)) this.add(keys, id);
    } else if (keys !== undefined) {
      for (const key of keys) if (!hasKey(known, key)) this.add(key, id);
    }
  }

  private add(key: string, id: string): void {
    let ids = this.byKey.get(key);
    if (ids === undefined) {
      ids = new SortedIds();
      this.byKey.set(key, ids);
    }
    ids.add(id);
  }

  private remove(key: string, id: string): void {
    const ids = this.byKey.get(key);
    if (ids === undefined) return;
    ids.remove(id);
    if (ids.size === 0) this.byKey.delete(key);
  }
}

function hasKey(keys: Keys, key: string): boolean {
  return typeof keys === 'string' ? keys === key : keys?.includes(key) === true;
}

/** A sorted set with copy-on-write snapshots: a snapshot costs nothing until the next change. */
class SortedIds {
  private ids: string[] = [];
  /** The number of removed ids at the start of `ids`. */
  private start = 0;
  private shared = false;

  get size(): number {
    return this.ids.length - this.start;
  }

  /** Returns the present ids; valid until the next change. */
  present(): readonly string[] {
    if (this.start > 0) this.copy();
    return this.ids;
  }

  snapshot(): readonly string[] {
    const ids = this.present();
    this.shared = true;
    return ids;
  }

  add(id: string): void {
    if (this.shared) this.copy();
    const at = this.position(id);
    if (this.ids[at] !== id) this.ids.splice(at, 0, id);
  }

  remove(id: string): void {
    if (this.shared) this.copy();
    const at = this.position(id);
    if (this.ids[at] !== id) return;
    if (at - this.start < this.ids.length - at) this.removeFromStart(at);
    else this.ids.splice(at, 1);
  }

  /** Moves the ids before a removed one, because the lowest ids are usually the first to leave. */
  private removeFromStart(at: number): void {
    const { ids } = this;
    for (let to = at; to > this.start; to--) ids[to] = ids[to - 1] ?? '';
    ids[this.start] = '';
    this.start += 1;
    if (this.start > ids.length / 2) this.copy();
  }

  private copy(): void {
    this.ids = this.ids.slice(this.start);
    this.start = 0;
    this.shared = false;
  }

  /** Returns the index of the id, or its insertion point. */
  private position(id: string): number {
    let low = this.start;
    let high = this.ids.length;
    // New ids are usually the highest.
    const last = this.ids[high - 1];
    if (last === undefined || last < id) return high;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const other = this.ids[middle];
      if (other !== undefined && other < id) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

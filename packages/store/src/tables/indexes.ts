/** Indexes over entries, updated with every change and iterated in the order of ids. */

const NO_KEYS: readonly string[] = [];

/** The keys of an entry: a single key does not need a list. */
export type Keys = string | readonly string[] | null | undefined;

/** Ids by keys. Its owner compares the keys before a call, because most changes of an entry leave most keys alone. */
export class KeyIndex<E> {
  private readonly byKey = new Map<string, SortedIds>();

  /** Replaces the keys of an entry. */
  move(id: string, from: Keys, to: Keys): void {
    if (from === to) return;
    if (typeof from === 'object' || typeof to === 'object') {
      this.moveAll(id, listOf(from), listOf(to));
      return;
    }
    if (from !== undefined) this.remove(from, id);
    if (to !== undefined) this.add(to, id);
  }

  /** Returns true if an entry has the key. */
  has(key: string): boolean {
    return this.byKey.has(key);
  }

  /** Returns the present ids; later changes do not affect the result. */
  ids(key: string): readonly string[] {
    return this.byKey.get(key)?.snapshot() ?? NO_KEYS;
  }

  /** Returns the present entries that have this key. */
  present(key: string, entries: ReadonlyMap<string, E>): readonly E[] {
    const present: E[] = [];
    const ids = this.byKey.get(key)?.present() ?? NO_KEYS;
    for (let index = 0; index < ids.length; index += 1) {
      const entry = entries.get(ids[index] ?? '');
      if (entry !== undefined) present.push(entry);
    }
    return present;
  }

  /** Iterates over the entries that have this key now, except those that lose it before the iteration reaches them. */
  *select(key: string, entries: ReadonlyMap<string, E>): Iterable<E> {
    const ids = this.ids(key);
    for (const id of ids) {
      const entry = entries.get(id);
      if (entry !== undefined && this.byKey.get(key)?.stillHas(id, ids) === true) yield entry;
    }
  }

  private moveAll(id: string, from: readonly string[], to: readonly string[]): void {
    for (const key of from) if (!to.includes(key)) this.remove(key, id);
    for (const key of to) if (!from.includes(key)) this.add(key, id);
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
    if (this.byKey.get(key)?.remove(id) === true) this.byKey.delete(key);
  }
}

/** Entries by computed keys. */
export class Index<E extends { readonly id: string }> extends KeyIndex<E> {
  /** `keysOf` must depend on the entry only. */
  constructor(private readonly keysOf: (entry: E) => Keys) {
    super();
  }

  update(before: E | undefined, after: E | undefined): void {
    const entry = after ?? before;
    if (entry === undefined) return;
    const ofBefore = before === undefined ? undefined : this.keysOf(before);
    const ofAfter = after === undefined ? undefined : this.keysOf(after);
    this.move(entry.id, ofBefore, ofAfter);
  }
}

function listOf(keys: Keys): readonly string[] {
  if (typeof keys === 'string') return [keys];
  return keys ?? NO_KEYS;
}

/** A sorted set with copy-on-write snapshots: a snapshot costs nothing until the next change. */
export class SortedIds {
  private ids: string[] = [];
  /** The number of removed ids at the start of `ids`. */
  private start = 0;
  private shared = false;

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

  /** Returns true if an id of this snapshot is still present. */
  stillHas(id: string, snapshot: readonly string[]): boolean {
    return this.ids === snapshot || this.ids[this.position(id)] === id;
  }

  add(id: string): void {
    if (this.shared) this.copy();
    const { ids } = this;
    const last = ids[ids.length - 1];
    // New ids are usually the highest.
    if (last === undefined || last < id) {
      ids.push(id);
      return;
    }
    const at = this.position(id);
    if (ids[at] !== id) ids.splice(at, 0, id);
  }

  /** Returns true if no id is left. */
  remove(id: string): boolean {
    if (this.shared) this.copy();
    const { ids, start } = this;
    const at = this.position(id);
    if (ids[at] !== id) return false;
    if (at - start < ids.length - at) {
      // Moves the ids before the removed one, because the lowest ids are usually the first to leave.
      for (let to = at; to > start; to--) ids[to] = ids[to - 1] ?? '';
      ids[start] = '';
      this.start += 1;
      if (this.start > ids.length / 2) this.copy();
    } else ids.splice(at, 1);
    return this.ids.length === this.start;
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
    while (low < high) {
      const middle = (low + high) >>> 1;
      const other = this.ids[middle];
      if (other !== undefined && other < id) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

/** An event of one type with its listeners. */

interface Entry<E> {
  readonly listener: (event: E) => void;
  removed: boolean;
}

export class Emitter<E> {
  /** Replaced at every change, so that `emit` needs no copy. */
  private entries: readonly Entry<E>[] = [];

  /** `onError` receives the exceptions of listeners; the other listeners are still called. */
  constructor(private readonly onError: (error: unknown) => void) {}

  /** Adds a listener and returns a function that removes it. The same listener can be added repeatedly. */
  on(listener: (event: E) => void): () => void {
    const entry: Entry<E> = { listener, removed: false };
    this.entries = [...this.entries, entry];
    return () => {
      entry.removed = true;
      this.entries = this.entries.filter((each) => each !== entry);
    };
  }

  /** Calls the current listeners in the order of their addition, except those removed in the meantime. */
  emit(event: E): void {
    const { entries } = this;
    // The most frequent loop of a launcher: an index takes half the time of an iterator or a callback.
    for (let index = 0; index < entries.length; index += 1) {
      const entry = entries[index];
      if (entry === undefined || entry.removed) continue;
      try {
        entry.listener(event);
      } catch (error) {
        this.onError(error);
      }
    }
  }
}

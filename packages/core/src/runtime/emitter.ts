/** An event of one type with its listeners. */

export class Emitter<E> {
  private readonly listeners = new Set<{ readonly listener: (event: E) => void }>();

  /** `onError` receives the exceptions of listeners; the other listeners are still called. */
  constructor(private readonly onError: (error: unknown) => void) {}

  /** Adds a listener and returns a function that removes it. The same listener can be added repeatedly. */
  on(listener: (event: E) => void): () => void {
    const entry = { listener };
    this.listeners.add(entry);
    return () => {
      this.listeners.delete(entry);
    };
  }

  /** Calls the current listeners in the order of their addition, except those removed in the meantime. */
  emit(event: E): void {
    for (const entry of [...this.listeners]) {
      if (!this.listeners.has(entry)) continue;
      try {
        entry.listener(event);
      } catch (error) {
        this.onError(error);
      }
    }
  }
}

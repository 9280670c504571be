/** Events of one type. */

export class Emitter<E> {
  private readonly listeners = new Set<{ readonly listener: (event: E) => void }>();

  /** Calls `onError` with what a listener throws; the other listeners are called all the same. */
  constructor(private readonly onError: (error: unknown) => void) {}

  /** Returns the function that removes the listener. The same listener can be added more than once. */
  on(listener: (event: E) => void): () => void {
    const entry = { listener };
    this.listeners.add(entry);
    return () => {
      this.listeners.delete(entry);
    };
  }

  /** Calls the listeners of this moment, in the order in which they were added, without those removed meanwhile. */
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

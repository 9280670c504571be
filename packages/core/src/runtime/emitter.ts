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

  /** Calls all listeners, in the order in which they were added. */
  emit(event: E): void {
    for (const { listener } of this.listeners) {
      try {
        listener(event);
      } catch (error) {
        this.onError(error);
      }
    }
  }
}

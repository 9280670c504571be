export class Emitter<Events extends { [E in keyof Events]: unknown[] }> {
  private readonly listeners: { [E in keyof Events]?: Set<(...args: Events[E]) => void> } = {};

  on<E extends keyof Events>(event: E, listener: (...args: Events[E]) => void): void {
    (this.listeners[event] ??= new Set()).add(listener);
  }

  off<E extends keyof Events>(event: E, listener: (...args: Events[E]) => void): void {
    this.listeners[event]?.delete(listener);
  }

  /** Calls the listeners in the order of their addition, see `callListener`. */
  emit<E extends keyof Events>(event: E, ...args: Events[E]): void {
    const listeners = this.listeners[event];
    if (listeners === undefined) return;
    for (const listener of [...listeners]) callListener(listener, ...args);
  }
}

/**
 * Calls a listener of the application. An exception becomes an uncaught exception of the process, as with any event
 * listener, but does not interrupt the caller.
 */
export function callListener<A extends unknown[]>(listener: (...args: A) => void, ...args: A): void {
  try {
    listener(...args);
  } catch (error) {
    throwLater(error);
  }
}

/** Makes the exception of a listener an uncaught exception of the process. */
export function throwLater(error: unknown): void {
  process.nextTick(() => {
    throw error;
  });
}

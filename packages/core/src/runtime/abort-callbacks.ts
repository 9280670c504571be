/**
 * Callbacks of abort signals. A signal gets one listener for all its callbacks, because it compares each new listener
 * with all others: the next one takes 40 µs if there are 1,000.
 */

const callbacksOf = new WeakMap<AbortSignal, Set<() => void>>();

/** Calls `callback`, which must not throw, when the signal aborts, unless `unfollow` is called before. */
export function follow(signal: AbortSignal, callback: () => void): void {
  let callbacks = callbacksOf.get(signal);
  if (callbacks === undefined) {
    callbacks = new Set();
    callbacksOf.set(signal, callbacks);
    signal.addEventListener('abort', callAll, { once: true });
  }
  callbacks.add(callback);
}

/** Removes a callback. */
export function unfollow(signal: AbortSignal, callback: () => void): void {
  callbacksOf.get(signal)?.delete(callback);
}

function callAll({ target }: Event): void {
  if (!(target instanceof AbortSignal)) return;
  const callbacks = callbacksOf.get(target);
  callbacksOf.delete(target);
  callbacks?.forEach((callback) => callback());
}

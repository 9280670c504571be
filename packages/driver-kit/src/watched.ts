/** A promise with inspectable state, whose rejection is never reported as unhandled. */

export type Settled<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly error: unknown };

export interface Watched<T> {
  /** The outcome; undefined while the promise is pending. */
  readonly settled: Settled<T> | undefined;
}

export function watch<T>(promise: Promise<T>): Watched<T> {
  const watched: { settled: Settled<T> | undefined } = { settled: undefined };
  promise.then(
    (value) => (watched.settled = { ok: true, value }),
    (error: unknown) => (watched.settled = { ok: false, error }),
  );
  return watched;
}

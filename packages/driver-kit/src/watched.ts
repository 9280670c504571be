/** A promise with inspectable state, whose rejection is never reported as unhandled. */

export type Ending<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly error: unknown };

export interface Watched<T> {
  /** The outcome; undefined while the promise is pending. */
  readonly ending: Ending<T> | undefined;
}

export function watch<T>(promise: Promise<T>): Watched<T> {
  const watched: { ending: Ending<T> | undefined } = { ending: undefined };
  promise.then(
    (value) => (watched.ending = { ok: true, value }),
    (error: unknown) => (watched.ending = { ok: false, error }),
  );
  return watched;
}

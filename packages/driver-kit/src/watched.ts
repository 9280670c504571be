/** A promise that can be looked at, and whose rejection is never unhandled. */

export type Ending<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly error: unknown };

export interface Watched<T> {
  /** How it ended; undefined: it has not. */
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

/**
 * A change of one record, reported synchronously and in order. `before` or `after` is `undefined` if the record does
 * not exist at that time, or is corrupt (see `corrupt`).
 */
export interface Change<E> {
  readonly id: string;
  readonly before: E | undefined;
  readonly after: E | undefined;
  /** True for the deletion of a record that was not locked, as far as every change before the deletion shows. */
  readonly wasFree?: boolean;
}

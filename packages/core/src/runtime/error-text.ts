/** Reads whatever was thrown. */

import { types } from 'node:util';

/** Also true for errors that were made in another context of the process, which are no `instanceof Error` here. */
export function isError(value: unknown): value is Error {
  return value instanceof Error || types.isNativeError(value);
}

/** The message of whatever was thrown, for the sentence that says why something failed. */
export function reasonOf(thrown: unknown): string {
  if (isError(thrown)) return thrown.message;
  return typeof thrown === 'string' ? thrown : `something that is no error was thrown (${typeof thrown})`;
}

/** The `code` of an error, e.g. `ENOENT`. */
export function errorCodeOf(thrown: unknown): string | undefined {
  return isError(thrown) && 'code' in thrown && typeof thrown.code === 'string' ? thrown.code : undefined;
}

import { types } from 'node:util';

/** Returns true for errors, including those of another realm of the process, for which `instanceof Error` is false. */
export function isError(value: unknown): value is Error {
  return value instanceof Error || types.isNativeError(value);
}

/** Returns the message of a thrown value, for messages that explain a failure. */
export function reasonOf(thrown: unknown): string {
  if (isError(thrown)) return thrown.message === '' ? textOfMessageless(thrown) : thrown.message;
  return typeof thrown === 'string' ? thrown : `a non-Error value was thrown (${typeof thrown})`;
}

/** Connections to a host with several addresses fail with an error without message that has one error per address. */
function textOfMessageless(error: Error): string {
  const reasons = 'errors' in error && Array.isArray(error.errors) ? error.errors.map(reasonOf) : [];
  return reasons.length === 0 ? (errorCodeOf(error) ?? error.name) : reasons.join('; ');
}

/** Code, words, system call and path of an error of the file system; libraries put the class of the error before it. */
const FILE_ERROR = /^(?:Error: )?(E[A-Z]+): (.+), [a-z]+(?: '.*')?$/su;

/**
 * Returns why a file cannot be used, for a message that names it: Node.js repeats the path. `use`: a file or a folder
 * that is read, or an output that is written.
 */
export function fileFaultOf(error: unknown, use: 'file' | 'folder' | 'output' = 'file'): string {
  const reason = reasonOf(error);
  const [, code = errorCodeOf(error), words = reason] = FILE_ERROR.exec(reason) ?? [];
  switch (code) {
    case 'ENOENT':
      return use === 'output' ? 'its folder does not exist' : `there is no such ${use}`;
    case 'EACCES':
      return `this user may not ${use === 'output' ? 'write' : 'read'} it`;
    case 'EISDIR':
      return 'it is a folder';
    default:
      return words;
  }
}

/** Returns the `code` of an error, e.g. `ENOENT`; undefined if there is none. */
export function errorCodeOf(thrown: unknown): string | undefined {
  return isError(thrown) && 'code' in thrown && typeof thrown.code === 'string' ? thrown.code : undefined;
}

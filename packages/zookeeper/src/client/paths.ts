/** Paths of znodes: validation, and the chroot of a client. */

import { InvalidArgumentError } from '../errors.js';

/**
 * Matches paths whose names have no character that ZooKeeper refuses (`PathUtils.validatePath`): controls, surrogates,
 * private use, specials. ZooKeeper checks UTF-16 units, so it refuses every surrogate pair.
 */
// eslint-disable-next-line no-control-regex -- excludes control characters
const VALID = /^(?:\/(?!\.{1,2}(?:\/|$))[^/\u0000-\u001f\u007f-\u009f\ud800-\uf8ff\ufff0-\uffff]+)+$/;
const BAD_SEGMENT = /\/(?:\.{0,2})(?:\/|$)/;

/** Throws `InvalidArgumentError` if `path` is invalid. With `sequential`, the server will append a number to it. */
export function validatePath(path: string, operation: string, sequential = false): void {
  const whole = sequential ? `${path}0` : path;
  if (VALID.test(whole) || path === '/') return;
  const message = `${operation}: invalid path ${JSON.stringify(path)}: ${problemOf(path, whole)}`;
  throw new InvalidArgumentError('invalid-argument', message, { operation, path });
}

function problemOf(path: string, whole: string): string {
  if (!path.startsWith('/')) return 'it must start with a slash';
  if (BAD_SEGMENT.test(whole)) return 'it must not end with a slash nor have empty, "." or ".." names in it';
  return 'it has a character that ZooKeeper does not allow';
}

/** Returns the parent of a path, or undefined for the root. */
export function parentPath(path: string): string | undefined {
  if (path === '/') return undefined;
  const slash = path.lastIndexOf('/');
  return slash === 0 ? '/' : path.slice(0, slash);
}

/** Translates between the client's paths and the server's. */
export class Chroot {
  /** Without a trailing slash; empty if there is no chroot. */
  private readonly prefix: string;

  constructor(path: string) {
    const trimmed = path.replace(/\/+$/, '');
    if (trimmed !== '') validatePath(trimmed, 'chroot');
    this.prefix = trimmed;
  }

  toServer(path: string): string {
    if (this.prefix === '') return path;
    return path === '/' ? this.prefix : this.prefix + path;
  }

  /** Returns undefined for a path outside the chroot. */
  toClient(path: string): string | undefined {
    if (this.prefix === '') return path;
    if (!path.startsWith(this.prefix)) return undefined;
    if (path.length === this.prefix.length) return '/';
    return path.charCodeAt(this.prefix.length) === 0x2f ? path.slice(this.prefix.length) : undefined;
  }
}

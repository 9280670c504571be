/** Removes secrets from texts and errors that reach logs, pages and records. */

import { isError } from '../runtime/error-text.js';
import { DriverError } from './errors.js';

const REMOVED = '[secret]';
/** Shorter values are not searched in texts, because common words contain them. */
const MIN_LENGTH = 8;
/** Maximum number of causes of an error that are kept. */
const MAX_CAUSES = 5;

/** Names of values that are secret, as in JSON, forms, URLs and headers. */
const NAMES =
  'access_?token|id_?token|refresh_?token|auth_?token|x-auth-token|x-subject-token|client_?secret|client_?assertion|' +
  'private_?key|password|passwd|secret|assertion|subject_?token|sig|signature|x-amz-[a-z-]*token|api_?key|token';
const PATTERNS: readonly (readonly [pattern: RegExp, replacement: string])[] = [
  [/-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(-----END [A-Z ]*PRIVATE KEY-----|$)/g, REMOVED],
  // A quoted value ends at its quote, or at the end of a text that was shortened.
  [new RegExp(String.raw`(["'\\](?:${NAMES})\\?["']\s*:\s*\\?["'])(?:[^"'\\]|\\.){4,}`, 'gi'), `$1${REMOVED}`],
  [new RegExp(String.raw`((?:^|[?&\s;,{(])(?:${NAMES})=)[^\s&"';,)}]{4,}`, 'gi'), `$1${REMOVED}`],
  [/\b((?:x-auth-token|x-subject-token):\s*)\S{4,}/gi, `$1${REMOVED}`],
  [/\b(authorization['"]?\s*[:=]\s*['"]?)(?:\w+\s+)?[\w.~+/=-]{4,}/gi, `$1${REMOVED}`],
  [/\b((?:Bearer|Basic)\s+)[\w.~+/=-]{16,}/gi, `$1${REMOVED}`],
  // Tokens of Google, JSON web tokens, and tokens of keystone.
  [/\bya29\.[\w.~+/=-]+/g, REMOVED],
  [/\beyJ[\w-]{8,}(\.[\w-]*){0,2}/g, REMOVED],
  [/\bgAAAA[\w=-]{20,}/g, REMOVED],
  [/(\/\/[^\s/:@]*:)[^\s/@]+(?=@)/g, `$1${REMOVED}`],
];

/**
 * Returns the text without secrets: known values, and everything that has the form or the name of one. Drivers call it
 * for texts of a cloud that are used outside of errors of calls.
 */
export function withoutSecrets(text: string, known: readonly (string | undefined)[] = []): string {
  let clean = text;
  for (const value of known) {
    if (value === undefined || value.length < MIN_LENGTH) continue;
    clean = clean.replaceAll(value, REMOVED);
    clean = clean.replaceAll(encodeURIComponent(value), REMOVED);
  }
  for (const [pattern, replacement] of PATTERNS) clean = clean.replace(pattern, replacement);
  return clean;
}

/**
 * Removes secrets from the texts of an error, in place, so that it keeps its class. Its causes are replaced by errors
 * with name, code and texts only: errors of libraries contain requests and answers in full.
 */
export function removeSecrets(error: DriverError, known: readonly (string | undefined)[] = []): DriverError {
  error.message = withoutSecrets(error.message, known);
  if (error.stack !== undefined) error.stack = withoutSecrets(error.stack, known);
  if (error.cause !== undefined) error.cause = plainCause(error.cause, known, MAX_CAUSES);
  return error;
}

function plainCause(cause: unknown, known: readonly (string | undefined)[], left: number): unknown {
  if (typeof cause === 'string') return withoutSecrets(cause, known);
  if (!isError(cause)) return typeof cause === 'object' ? undefined : cause;
  // These contain no requests, and the framework recognizes errors of calls among the causes.
  if (cause instanceof DriverError) return removeSecrets(cause, known);
  const inner = cause.cause === undefined || left === 0 ? undefined : plainCause(cause.cause, known, left - 1);
  const plain = new Error(withoutSecrets(cause.message, known), inner === undefined ? undefined : { cause: inner });
  plain.name = cause.name;
  plain.stack = withoutSecrets(cause.stack ?? plain.message, known);
  for (const key of ['code', 'status', 'statusCode', 'errno', 'syscall', 'outcome'] as const) {
    const value: unknown = Reflect.get(cause, key);
    if (typeof value === 'number') Object.assign(plain, { [key]: value });
    else if (typeof value === 'string') Object.assign(plain, { [key]: withoutSecrets(value, known) });
  }
  return plain;
}

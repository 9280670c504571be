/** Problems of a configuration file with their places, and their format. Values that may be secret are never shown. */

import type { JsonValue } from '@nodepool/core';

/** Keys and indexes from the top of the file, e.g. `['providers', 0, 'name']`. */
export type KeyPath = readonly (string | number)[];

export interface ConfigProblem {
  /** Path of the file as given. */
  readonly file: string;
  /** Counted from 1; 0 means the file as a whole. */
  readonly line: number;
  /** Counted from 1; 0 means the file as a whole. */
  readonly column: number;
  /** e.g. `providers[0].pools[1].labels[0].diskimage`; '' for the file as a whole. */
  readonly path: string;
  readonly expected: string;
  /** The existing value, with secrets masked. */
  readonly found: string | undefined;
  /** Advice for the operator. */
  readonly hint: string | undefined;
}

/** Formats one line: `file:line:column: path: expected …, found …; hint`. */
export function formatProblem(problem: ConfigProblem): string {
  const place = problem.line === 0 ? problem.file : `${problem.file}:${problem.line}:${problem.column}`;
  const path = problem.path === '' ? '' : `${problem.path}: `;
  const found = problem.found === undefined ? '' : `, found ${problem.found}`;
  const hint = problem.hint === undefined ? '' : `; ${problem.hint}`;
  return `${place}: ${path}expected ${problem.expected}${found}${hint}`;
}

/** Formats a path, e.g. `providers[0].node-attributes["a.b"]`. */
export function formatPath(path: KeyPath): string {
  let text = '';
  for (const step of path) {
    if (typeof step === 'number') text += `[${step}]`;
    else if (!/^[\w-]+$/.test(step)) text += `[${JSON.stringify(step)}]`;
    else text += text === '' ? step : `.${step}`;
  }
  return text;
}

/** Returns true if values at this path must not be shown: passwords, keys, and the environment of image builds. */
export function isSecretPath(path: KeyPath): boolean {
  return path.some((step) => typeof step === 'string' && SECRET_KEY.test(step));
}

const SECRET_KEY =
  /pass(word|phrase|wd)|secret|token|credential|private|(^|[-_])(key|auth)$|^env-vars$|^user-?data$|^custom-data$/i;
const MAX_SHOWN = 60;

/** Describes a value for a message; a masked one by its type only. */
export function describeValue(value: JsonValue | undefined, masked: boolean): string {
  if (value === undefined || value === null) return 'nothing';
  if (Array.isArray(value)) return value.length === 0 ? 'an empty list' : `a list of ${value.length}`;
  if (typeof value === 'object') return Object.keys(value).length === 0 ? 'an empty mapping' : 'a mapping';
  if (masked) return `a ${typeof value} that is not shown here`;
  if (typeof value !== 'string') return String(value);
  const shown = value.length > MAX_SHOWN ? `${value.slice(0, MAX_SHOWN)}…` : value;
  return JSON.stringify(shown);
}

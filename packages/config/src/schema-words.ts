import type { ErrorObject } from 'ajv/dist/2020.js';
import { isJsonObject, type JsonValue } from '@nodepool/core';

const TYPE_WORDS: Readonly<Record<string, string>> = {
  string: 'a string',
  integer: 'a whole number',
  number: 'a number',
  boolean: 'true or false',
  array: 'a list',
  object: 'a mapping',
};

/** Returns `the key a` or e.g. `one of the keys a, b or c`. */
export function keysText(several: string, keys: readonly string[]): string {
  return keys.length === 1 ? `the key ${keys.join('')}` : `${several} ${joinOr(keys)}`;
}

export function joinOr(words: readonly string[]): string {
  return words.length < 2 ? words.join('') : `${words.slice(0, -1).join(', ')} or ${words.at(-1) ?? ''}`;
}

/** Describes a schema, e.g. `a string`, `"a" or "b"`, `a whole number or a string`. */
export function describeSchema(schema: unknown): string {
  if (!isJsonObject(schema)) return 'a value';
  if (schema['const'] !== undefined) return JSON.stringify(schema['const']);
  if (Array.isArray(schema['enum'])) return joinOr(schema['enum'].map((each) => JSON.stringify(each)));
  const branches = schema['oneOf'] ?? schema['anyOf'];
  if (schema['type'] === undefined && Array.isArray(branches))
    return joinOr([...new Set(branches.map(describeSchema))]);
  if (Array.isArray(schema['required']) && schema['type'] === undefined)
    return `a mapping with ${schema['required'].join(' and ')}`;
  return typeWords(schema['type']);
}

function typeWords(type: unknown): string {
  const types: readonly unknown[] = Array.isArray(type) ? type : [type];
  const words = types.flatMap((each) =>
    typeof each === 'string' && each !== 'null' ? [TYPE_WORDS[each] ?? each] : [],
  );
  return words.length === 0 ? 'a value' : joinOr(words);
}

/** Names that are a single segment of a znode or file path. */
export const PATH_NAME_PATTERN = '^(?!\\.{1,2}$)[^/\\u0000-\\u001f\\u007f-\\u009f]+$';

/** A percentage, and one of more than 0 and less than 100. */
export const PERCENT_PATTERN = '^(?:100|[0-9]{1,2}(?:\\.[0-9]+)?)%$';
export const INNER_PERCENT_PATTERN = '^(?!0+(?:\\.0+)?%)[0-9]{1,2}(?:\\.[0-9]+)?%$';

/** Describes the requirement of the keyword that failed. */
export function expectation(error: ErrorObject): string {
  const limit: unknown = error.schema;
  const kind = describeSchema(error.parentSchema);
  switch (error.keyword) {
    case 'type':
    case 'const':
    case 'enum':
      return kind;
    case 'minimum':
      return `${kind} of at least ${String(limit)}`;
    case 'maximum':
      return `${kind} of at most ${String(limit)}`;
    case 'exclusiveMinimum':
      return `${kind} of more than ${String(limit)}`;
    case 'exclusiveMaximum':
      return `${kind} of less than ${String(limit)}`;
    case 'minLength':
      return limit === 1 ? 'a string that is not empty' : `a string of at least ${String(limit)} characters`;
    case 'maxLength':
      return `a string of at most ${String(limit)} characters`;
    case 'minItems':
      return `a list of at least ${String(limit)}`;
    case 'maxItems':
      return `a list of at most ${String(limit)}`;
    case 'minProperties':
      return limit === 1 ? 'a mapping that is not empty' : `a mapping of at least ${String(limit)} keys`;
    case 'uniqueItems':
      return 'a list without repetitions';
    case 'pattern':
      if (limit === PATH_NAME_PATTERN) return 'a name without slashes and control characters, other than "." and ".."';
      if (limit === PERCENT_PATTERN) return kind.replace('a string', 'a percentage, e.g. "20%"');
      if (limit === INNER_PERCENT_PATTERN) return 'a percentage of more than "0%" and less than "100%"';
      return `${kind} that matches ${String(limit)}`;
    default:
      return `a value that ${error.message ?? 'is valid'}`;
  }
}

/** Suggests quotes, which decide the YAML type of a scalar: the usual cause of a wrong type. */
export function quoteHint(wanted: unknown, data: unknown): string | undefined {
  const types = (Array.isArray(wanted) ? wanted : [wanted]) as readonly JsonValue[];
  if (types.includes('string') && (typeof data === 'number' || typeof data === 'boolean')) return 'put it in quotes';
  const isNumeric = typeof data === 'string' && /^-?\d+(\.\d+)?$/.test(data);
  if (isNumeric && (types.includes('integer') || types.includes('number'))) return 'write it without quotes';
  const isTruth = typeof data === 'string' && /^(true|false|yes|no)$/i.test(data);
  if (isTruth && types.includes('boolean')) return 'write it without quotes';
  return undefined;
}

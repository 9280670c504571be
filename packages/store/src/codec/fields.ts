/**
 * Reads single fields of a record. A field of the wrong type is read as its default, so that one bad field does not
 * make the record unreadable; writes preserve the original value (see `codec.ts`).
 */

import { isJsonObject, type JsonObject, type JsonValue, type ExternalId } from '@nodepool/core';

/** A parsed field: any JSON value, or undefined if missing. */
export type RawField = JsonValue | undefined;

export function text(raw: RawField): string | null {
  return typeof raw === 'string' ? raw : null;
}

/** Limit of the shared texts, and of the shared lists, because other programs may write any. */
const MAX_SHARED = 10_000;
/** V8 itself shares the texts of parsed JSON up to this length. */
const SHARED_BY_V8 = 10;

const sharedByText = new Map<string, string>();
const sharedLists = new Map<string, readonly string[]>();
/** By their JSON text. */
const sharedObjects = new Map<string, JsonObject>();
/** Characters. Longer values are rarely the same, and would outlive their records. */
const MAX_SHARED_LENGTH = 200;

/** Reads a text that many records have, such as the name of a pool: one copy serves them all. */
export function sharedText(raw: RawField): string | null {
  return typeof raw !== 'string' || raw.length <= SHARED_BY_V8 ? text(raw) : shared(sharedByText, raw, raw);
}

/** Returns the strings of a list. One copy serves all records whose list has the same single string. */
export function sharedTexts(raw: RawField): readonly string[] {
  const list = texts(raw);
  const [only] = list;
  return only === undefined || list.length > 1 ? list : shared(sharedLists, only, list);
}

/** Reads an object that many records have, such as the resources of a node: one copy serves them all. */
export function sharedObject(raw: RawField): JsonObject | null {
  const found = object(raw);
  if (found === null) return null;
  return shared(sharedObjects, JSON.stringify(found), found);
}

function shared<V>(known: Map<string, V>, key: string, value: V): V {
  if (key.length > MAX_SHARED_LENGTH) return value;
  const found = known.get(key);
  if (found !== undefined) return found;
  if (known.size >= MAX_SHARED) known.clear();
  known.set(key, value);
  return value;
}

export function number(raw: RawField): number | null {
  return typeof raw === 'number' ? raw : null;
}

export function object(raw: RawField): JsonObject | null {
  return isJsonObject(raw) ? raw : null;
}

export function value(raw: RawField): JsonValue {
  return raw ?? null;
}

/** Returns the strings of a list. */
export function texts(raw: RawField): readonly string[] {
  if (!Array.isArray(raw)) return [];
  return raw.every(isText) ? raw : raw.filter(isText);
}

/** Returns the strings of an object by their keys. */
export function textMap(raw: RawField): Readonly<Record<string, string>> {
  const entries = Object.entries(object(raw) ?? {});
  return Object.fromEntries(entries.filter((entry): entry is [string, string] => isText(entry[1])));
}

/** Returns the value, typed, if it is one of `values`. */
export function oneOf<V extends string>(raw: RawField, values: readonly V[]): V | undefined {
  const known: readonly RawField[] = values;
  return values[known.indexOf(raw)];
}

/** Returns the id as text. Numbers are converted, so that a known instance is not lost. */
export function externalId(raw: RawField): ExternalId | null {
  return typeof raw === 'number' ? String(raw) : (text(raw) ?? object(raw));
}

/** Returns the reason why a state cannot be read. */
export function unknownState(raw: RawField, states: readonly string[]): string {
  const found = raw === undefined ? 'is missing' : `is ${abbreviated(JSON.stringify(raw))}`;
  return `its "state" ${found}; expected one of: ${states.join(', ')}`;
}

/** Returns at most the start of a long text. */
function abbreviated(long: string): string {
  return long.length > 60 ? `${long.slice(0, 57)}...` : long;
}

export function isText(raw: unknown): raw is string {
  return typeof raw === 'string';
}

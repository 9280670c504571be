/**
 * Reads keys of a configuration section. The section has passed its schema, or its configuration is rejected anyway. A
 * key of an unexpected type therefore reads as absent.
 */

import { isJsonObject, type JsonObject, type JsonValue } from '../model/json.js';

export function stringAt(section: JsonObject, key: string): string | undefined {
  const value = section[key];
  return typeof value === 'string' ? value : undefined;
}

export function booleanAt(section: JsonObject, key: string): boolean | undefined {
  const value = section[key];
  return typeof value === 'boolean' ? value : undefined;
}

/** Returns a number, or the parsed value of a numeric string; undefined for other values. */
export function numberAt(section: JsonObject, key: string): number | undefined {
  const value = section[key];
  if (typeof value === 'number') return value;
  if (typeof value !== 'string' || value.trim() === '') return undefined;
  const number = Number(value);
  return Number.isFinite(number) ? number : undefined;
}

export function objectAt(section: JsonObject, key: string): JsonObject | undefined {
  const value = section[key];
  return isJsonObject(value) ? value : undefined;
}

export function stringsAt(section: JsonObject, key: string): readonly string[] | undefined {
  const value = section[key];
  return isList(value) ? value.filter((item): item is string => typeof item === 'string') : undefined;
}

/** An entry of a list of mappings, with its index in the list. */
export interface Entry {
  readonly index: number;
  readonly section: JsonObject;
  /** Value of `name`; empty if the entry has none. */
  readonly name: string;
}

/** Returns the mappings of a list; empty if the key is absent. */
export function entriesAt(section: JsonObject, key: string): readonly Entry[] {
  const value = section[key];
  if (!isList(value)) return [];
  return value.flatMap((item, index) =>
    isJsonObject(item) ? [{ index, section: item, name: stringAt(item, 'name') ?? '' }] : [],
  );
}

/** First entry of each name in the lists that `entryNamed` has searched. */
const indexes = new WeakMap<readonly JsonValue[], ReadonlyMap<string, Entry>>();

/** Returns the first entry of the name; undefined if there is none. Indexes each list once, at its first search. */
export function entryNamed(section: JsonObject, key: string, name: string): Entry | undefined {
  const value = section[key];
  if (!isList(value)) return undefined;
  let index = indexes.get(value);
  if (index === undefined) {
    const entries = entriesAt(section, key);
    index = new Map(entries.toReversed().map((entry) => [entry.name, entry]));
    indexes.set(value, index);
  }
  return index.get(name);
}

/** Returns a mapping from names to texts. Converts other scalars with `asText` and omits all other values. */
export function textsAt(section: JsonObject, key: string): Readonly<Record<string, string>> {
  const entries = Object.entries(objectAt(section, key) ?? {});
  return Object.fromEntries(
    entries.flatMap(([name, value]) => (typeof value === 'object' ? [] : [[name, asText(value)]])),
  );
}

/** Converts a scalar to text as the Python Nodepool does: booleans become `True` and `False`. */
export function asText(value: string | number | boolean): string {
  if (typeof value === 'boolean') return value ? 'True' : 'False';
  return String(value);
}

/** Returns a duration in seconds of the configuration as milliseconds. */
export function millisecondsAt(section: JsonObject, key: string): number | undefined {
  const seconds = numberAt(section, key);
  return seconds === undefined ? undefined : seconds * 1000;
}

function isList(value: JsonValue | undefined): value is readonly JsonValue[] {
  return Array.isArray(value);
}

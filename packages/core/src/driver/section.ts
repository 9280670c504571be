/**
 * Reads keys of a section of the configuration. The section has passed its schema, so a key that has another type than
 * asked for can only be there in a configuration that is refused: it reads as if it were not there.
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

/** Numbers, and strings that say one. */
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

/** An entry of a list of mappings, with its place in the list. */
export interface Entry {
  readonly index: number;
  readonly section: JsonObject;
  /** Its `name`, '' when it has none. */
  readonly name: string;
}

/** The mappings in a list; none when the key is absent. */
export function entriesAt(section: JsonObject, key: string): readonly Entry[] {
  const value = section[key];
  if (!isList(value)) return [];
  return value.flatMap((item, index) =>
    isJsonObject(item) ? [{ index, section: item, name: stringAt(item, 'name') ?? '' }] : [],
  );
}

/** First entries by name of lists that `entryNamed` has searched. */
const indexes = new WeakMap<readonly JsonValue[], ReadonlyMap<string, Entry>>();

/** Returns the first entry of the name; undefined if there is none. A list is read once, however often it is searched. */
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

/** A mapping from names to texts; scalars of other types as texts (see `asText`), what is not a scalar left out. */
export function textsAt(section: JsonObject, key: string): Readonly<Record<string, string>> {
  const entries = Object.entries(objectAt(section, key) ?? {});
  return Object.fromEntries(
    entries.flatMap(([name, value]) => (typeof value === 'object' ? [] : [[name, asText(value)]])),
  );
}

/** As clouds were always given values that are not texts: booleans are `True` and `False`. */
export function asText(value: string | number | boolean): string {
  if (typeof value === 'boolean') return value ? 'True' : 'False';
  return String(value);
}

/** Seconds of the configuration as milliseconds. */
export function millisecondsAt(section: JsonObject, key: string): number | undefined {
  const seconds = numberAt(section, key);
  return seconds === undefined ? undefined : seconds * 1000;
}

function isList(value: JsonValue | undefined): value is readonly JsonValue[] {
  return Array.isArray(value);
}

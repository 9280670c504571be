/** Traverses a JSON Schema, alone or together with a value. */

import { isJsonObject, type JsonObject, type JsonValue } from '@nodepool/core';

export type Path = readonly (string | number)[];

/** A key that a schema defines. */
export interface SchemaKey {
  /** e.g. `pools[].labels[].name`. */
  readonly pattern: string;
  readonly schema: JsonObject;
}

/** Returns all keys that a schema defines, including those of nested mappings and lists. */
export function keysOf(schema: JsonObject, pattern = ''): SchemaKey[] {
  const keys: SchemaKey[] = [];
  for (const part of partsOf(schema)) {
    for (const [key, value] of Object.entries(objectOr(part['properties']))) {
      if (!isJsonObject(value)) continue;
      const below = pattern === '' ? key : `${pattern}.${key}`;
      keys.push({ pattern: below, schema: value }, ...keysOf(value, below));
    }
    if (isJsonObject(part['items'])) keys.push(...keysOf(part['items'], `${pattern}[]`));
  }
  return keys;
}

/** A place in a value and its schema. */
export interface Place {
  readonly path: Path;
  readonly pattern: string;
  readonly value: JsonValue;
  readonly schema: JsonObject;
}

/** Returns every place of a value that the schema describes, starting with the value itself. */
export function placesIn(value: JsonValue, schema: JsonObject, path: Path = [], pattern = ''): Place[] {
  const places: Place[] = [{ path, pattern, value, schema }];
  for (const part of partsOf(schema)) {
    if (Array.isArray(value)) {
      const { items } = part;
      if (!isJsonObject(items)) continue;
      for (const [index, item] of (value as readonly JsonValue[]).entries()) {
        places.push(...placesIn(item, items, [...path, index], `${pattern}[]`));
      }
    } else if (isJsonObject(value)) {
      const properties = objectOr(part['properties']);
      for (const [key, item] of Object.entries(value)) {
        const below = properties[key];
        if (isJsonObject(below)) {
          places.push(...placesIn(item, below, [...path, key], pattern === '' ? key : `${pattern}.${key}`));
        }
      }
    }
  }
  return places;
}

/** Returns the names of the types that a schema allows, or undefined if it does not restrict them. */
export function typesOf(schema: JsonObject): ReadonlySet<string> | undefined {
  const types = partsOf(schema).flatMap(({ type }) => listOf(type));
  const known = types.filter((type) => typeof type === 'string');
  return known.length === 0 ? undefined : new Set(known);
}

/** Returns the schema and the schemas that it combines. */
function partsOf(schema: JsonObject): JsonObject[] {
  const combined = ['allOf', 'anyOf', 'oneOf'].flatMap((word) => listOf(schema[word]).filter(isJsonObject));
  return [schema, ...combined.flatMap(partsOf)];
}

/** Returns the items of a list, or the value itself if it is not a list. */
function listOf(value: JsonValue | undefined): readonly (JsonValue | undefined)[] {
  return Array.isArray(value) ? (value as readonly JsonValue[]) : [value];
}

function objectOr(value: JsonValue | undefined): JsonObject {
  return isJsonObject(value) ? value : {};
}

/** Returns a copy of the value with another value at a path. */
export function withValueAt(value: JsonValue, [step, ...rest]: Path, put: JsonValue): JsonValue {
  if (step === undefined) return put;
  if (Array.isArray(value)) {
    return (value as readonly JsonValue[]).map((item, index) => (index === step ? withValueAt(item, rest, put) : item));
  }
  const object = objectOr(value);
  return { ...object, [step]: withValueAt(object[String(step)] ?? null, rest, put) };
}

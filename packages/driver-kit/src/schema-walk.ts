/** Walks through a JSON Schema, alone or along a value. */

import { isJsonObject, type JsonObject, type JsonValue } from '@nodepool/core';

export type Path = readonly (string | number)[];

/** A key that a schema knows. */
export interface SchemaKey {
  /** e.g. `pools[].labels[].name`. */
  readonly pattern: string;
  readonly schema: JsonObject;
}

/** All keys that a schema knows, those of nested mappings and lists included. */
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

/** A place in a value, and what the schema says of it. */
export interface Place {
  readonly path: Path;
  readonly pattern: string;
  readonly value: JsonValue;
  readonly schema: JsonObject;
}

/** Every place of a value that the schema speaks of, the value itself first. */
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

/** Names of the types that a schema allows; undefined: it does not say. */
export function typesOf(schema: JsonObject): ReadonlySet<string> | undefined {
  const types = partsOf(schema).flatMap(({ type }) => listOf(type));
  const known = types.filter((type) => typeof type === 'string');
  return known.length === 0 ? undefined : new Set(known);
}

/** The schema and what it is combined of. */
function partsOf(schema: JsonObject): JsonObject[] {
  const combined = ['allOf', 'anyOf', 'oneOf'].flatMap((word) => listOf(schema[word]).filter(isJsonObject));
  return [schema, ...combined.flatMap(partsOf)];
}

/** The items of a list, or what is there instead of one. */
function listOf(value: JsonValue | undefined): readonly (JsonValue | undefined)[] {
  return Array.isArray(value) ? (value as readonly JsonValue[]) : [value];
}

function objectOr(value: JsonValue | undefined): JsonObject {
  return isJsonObject(value) ? value : {};
}

/** A copy of the value with another one at a place. */
export function withValueAt(value: JsonValue, [step, ...rest]: Path, put: JsonValue): JsonValue {
  if (step === undefined) return put;
  if (Array.isArray(value)) {
    return (value as readonly JsonValue[]).map((item, index) => (index === step ? withValueAt(item, rest, put) : item));
  }
  const object = objectOr(value);
  return { ...object, [step]: withValueAt(object[String(step)] ?? null, rest, put) };
}

/** Reads answers of the APIs, which are JSON from outside: what has another type than documented is as if it were not there. */

import { isJsonObject, stringAt, textsAt, type JsonObject } from '@nodepool/core';

/** The mappings of a list. */
export function listAt(object: JsonObject, key: string): readonly JsonObject[] {
  const value = object[key];
  return Array.isArray(value) ? (value as readonly unknown[]).filter(isJsonObject) : [];
}

/** An answer as an object; what is none has nothing in it. */
export function objectOf(data: unknown): JsonObject {
  return isJsonObject(data) ? data : {};
}

/** The last part of a URL of a resource: its name. */
export function nameIn(url: string): string {
  return url.slice(url.lastIndexOf('/') + 1);
}

export function labelsOf(object: JsonObject): Readonly<Record<string, string>> {
  return textsAt(object, 'labels');
}

/** The name in a URL that an object has. */
export function linkAt(object: JsonObject, key: string): string | undefined {
  const url = stringAt(object, key);
  return url === undefined ? undefined : nameIn(url);
}

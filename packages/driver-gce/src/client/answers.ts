/** Reads answers of the APIs. Values of an undocumented type count as missing. */

import { isJsonObject, stringAt, textsAt, TransientError, type JsonObject, type Outcome } from '@nodepool/core';

/** Returns the mappings of a list. */
export function listAt(object: JsonObject, key: string): readonly JsonObject[] {
  const value = object[key];
  return Array.isArray(value) ? (value as readonly unknown[]).filter(isJsonObject) : [];
}

/** Returns an answer as an object. Throws if it is not one, e.g. the page of a proxy. */
export function objectOf(data: unknown, operation: string, outcome: Outcome): JsonObject {
  if (isJsonObject(data)) return data;
  throw new TransientError(`${operation}: the answer is not a JSON object; is it of Google Cloud?`, { outcome });
}

/** Returns the resource's name, which is the last part of its URL. */
export function nameIn(url: string): string {
  return url.slice(url.lastIndexOf('/') + 1);
}

export function labelsOf(object: JsonObject): Readonly<Record<string, string>> {
  return textsAt(object, 'labels');
}

/** Returns the name in a URL property of an object. */
export function linkAt(object: JsonObject, key: string): string | undefined {
  const url = stringAt(object, key);
  return url === undefined ? undefined : nameIn(url);
}

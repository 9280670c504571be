/** Reads fields of JSON bodies. */

import { isJsonObject, type JsonObject, type JsonValue } from '@nodepool/core';

export function objectIn(body: JsonObject, key: string): JsonObject {
  const value = body[key];
  return isJsonObject(value) ? value : {};
}

export function textIn(body: JsonObject, key: string): string {
  const value = body[key];
  return typeof value === 'string' ? value : '';
}

export function listIn(body: JsonObject, key: string): readonly JsonObject[] {
  const value = body[key];
  return Array.isArray(value) ? (value as readonly JsonValue[]).filter(isJsonObject) : [];
}

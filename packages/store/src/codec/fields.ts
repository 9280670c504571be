/**
 * Reading single fields of a record. A field of the wrong type is read as its default: a record must not be lost to a
 * detail, and what the field really holds survives our writes (see `codec.ts`).
 */

import { isJsonObject, type JsonObject, type JsonValue, type ExternalId } from '@nodepool/core';

/** A field as it was parsed: missing, or whatever JSON can say. */
export type RawField = JsonValue | undefined;

export function text(raw: RawField): string | null {
  return typeof raw === 'string' ? raw : null;
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

/** The strings of a list. */
export function texts(raw: RawField): readonly string[] {
  if (!Array.isArray(raw)) return [];
  return raw.every(isText) ? raw : raw.filter(isText);
}

/** The value if it is one of those, as the type that lists them. */
export function oneOf<V extends string>(raw: RawField, values: readonly V[]): V | undefined {
  return values.find((candidate) => candidate === raw);
}

/** A number is taken for the text that it would be: an instance that we know must not be forgotten. */
export function externalId(raw: RawField): ExternalId | null {
  return typeof raw === 'number' ? String(raw) : (text(raw) ?? object(raw));
}

/** Why a state cannot be read. */
export function unknownState(raw: RawField, states: readonly string[]): string {
  const found = raw === undefined ? 'is missing' : `is ${abbreviated(JSON.stringify(raw))}`;
  return `its "state" ${found}; expected one of: ${states.join(', ')}`;
}

/** Start of a text that may be long. */
function abbreviated(long: string): string {
  return long.length > 60 ? `${long.slice(0, 57)}...` : long;
}

export function isText(raw: unknown): raw is string {
  return typeof raw === 'string';
}

/** Reads and prints values of records. */

import { isJsonObject, type JsonObject } from '@nodepool/core';

/** States that only a requestor sets. */
export const REQUESTORS_STATES: ReadonlySet<unknown> = new Set(['in-use', 'used', 'hold']);

/** Returns the ids of a request's nodes. */
export function nodesOf(request: JsonObject): readonly string[] {
  return stringsOf(request['nodes']);
}

/** Returns the strings of a list, or none if the value is not a list. */
export function stringsOf(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((each) => typeof each === 'string') : [];
}

/** Returns a readable text. */
export function textOf(value: unknown): string {
  if (typeof value === 'string') return value;
  return value === undefined ? 'nothing' : JSON.stringify(value);
}

/** Returns true if the hold time that the requestor set has expired. `nowMs` is wall-clock time. */
export function holdExpired(node: JsonObject, nowMs: number): boolean {
  const seconds = Number(node['hold_expiration'] ?? 0);
  return seconds > 0 && nowMs / 1000 >= Number(node['state_time']) + seconds;
}

/** Returns the review of the record of an upload. */
export function reviewOf(upload: JsonObject | undefined): JsonObject | undefined {
  const { review } = upload ?? {};
  return isJsonObject(review) ? review : undefined;
}

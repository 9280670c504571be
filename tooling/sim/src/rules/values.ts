/** Values of records, as rules read and print them. */

import type { JsonObject } from '@nodepool/core';

/** States in which only a requestor puts a node. */
export const REQUESTORS_STATES: ReadonlySet<unknown> = new Set(['in-use', 'used', 'hold']);

/** Ids of the nodes that a request got. */
export function nodesOf(request: JsonObject): readonly string[] {
  return stringsOf(request['nodes']);
}

/** The strings of a list; none if it is none. */
export function stringsOf(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((each) => typeof each === 'string') : [];
}

/** For people to read. */
export function textOf(value: unknown): string {
  if (typeof value === 'string') return value;
  return value === undefined ? 'nothing' : JSON.stringify(value);
}

/** Whether a held node has been held for as long as its requestor wanted. `nowMs`: by the wall clock. */
export function holdExpired(node: JsonObject, nowMs: number): boolean {
  const seconds = Number(node['hold_expiration'] ?? 0);
  return seconds > 0 && nowMs / 1000 >= Number(node['state_time']) + seconds;
}

/** Parses answers. A missing required property is reported as an error instead of causing a crash. */

import { isJsonObject, TransientError, type JsonObject, type JsonValue } from '@nodepool/core';
import type { HttpAnswer } from './transport.js';

/** Returns the JSON of an answer, or undefined if the answer is not JSON. */
export function jsonOf({ text }: HttpAnswer): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

/** The text of an answer and its JSON. */
export interface ReadAnswer {
  readonly text: string;
  readonly body: unknown;
}

/** Returns the reason if an answer is no JSON object: the page of a proxy, or a truncated one. */
export function notAnObject({ text, body }: ReadAnswer): string | undefined {
  return isJsonObject(body) ? undefined : unusable(`it is no JSON object: ${text.slice(0, 100)}`);
}

/** Returns the mapping at a key of an answer. */
export function memberOf(body: JsonObject, key: string, operation: string): JsonObject {
  const value = body[key];
  if (isJsonObject(value)) return value;
  throw unreadable(operation, `it has no ${key}`);
}

/** Returns the mappings in the list at a key. */
export function listOf(body: JsonObject, key: string, operation: string): readonly JsonObject[] {
  const value: JsonValue | undefined = body[key];
  if (!Array.isArray(value)) throw unreadable(operation, `it has no list of ${key}`);
  return (value as readonly JsonValue[]).map((item) => {
    if (isJsonObject(item)) return item;
    throw unreadable(operation, `its list of ${key} has something else in it`);
  });
}

export function requiredText(section: JsonObject, key: string, operation: string): string {
  const value = section[key];
  if (typeof value === 'string') return value;
  throw unreadable(operation, `it has no ${key}`);
}

/**
 * Returns the reason unless the answer to a deletion, or to data, is of a service: 202 (cinder) or 204 without content,
 * or any that has a request id. A proxy that answers itself has not passed on the call.
 */
export function foreignReceipt({ status, headers, text }: HttpAnswer): string | undefined {
  const isOfService = headers['x-openstack-request-id'] !== undefined;
  if (isOfService || ((status === 202 || status === 204) && text === '')) return undefined;
  return unusable(`${status} ${text.trim().slice(0, 100)}; is this the endpoint of an OpenStack service?`);
}

/** Returns the error for an answer without a required property. It may pass: a retry may be answered completely. */
function unreadable(operation: string, why: string): TransientError {
  return new TransientError(`${operation}: ${unusable(why)}`, { outcome: 'unknown' });
}

function unusable(why: string): string {
  return `the answer cannot be used: ${why}`;
}

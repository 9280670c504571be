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

/**
 * Returns the mapping in an answer. Throws `TransientError`, because a truncated or garbled answer may be complete on a
 * retry.
 */
export function objectOf(answer: HttpAnswer, operation: string): JsonObject {
  const value = jsonOf(answer);
  if (isJsonObject(value)) return value;
  throw unreadable(operation, `it is no JSON object: ${answer.text.slice(0, 100)}`);
}

/** Returns the mapping at a key of an answer. */
export function memberOf(answer: HttpAnswer, key: string, operation: string): JsonObject {
  const value = objectOf(answer, operation)[key];
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

/** Returns a required string. */
export function requiredText(section: JsonObject, key: string, operation: string): string {
  const value = section[key];
  if (typeof value === 'string') return value;
  throw unreadable(operation, `it has no ${key}`);
}

/**
 * Throws `TransientError` unless the answer to a deletion, or to data, is of a service: 202 (cinder) or 204 without
 * content, or any that has a request id. A proxy that answers itself has not passed on the call.
 */
export function expectReceipt({ status, headers, text }: HttpAnswer, operation: string): void {
  if (headers['x-openstack-request-id'] !== undefined || ((status === 202 || status === 204) && text === '')) return;
  throw unreadable(operation, `${status} ${text.trim().slice(0, 100)}; is this the endpoint of an OpenStack service?`);
}

function unreadable(operation: string, why: string): TransientError {
  return new TransientError(`${operation}: the answer cannot be used: ${why}`, { outcome: 'unknown' });
}

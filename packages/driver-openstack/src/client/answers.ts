/** Reading answers: what an answer must have and has not is an error that says so, not a crash. */

import { isJsonObject, TransientError, type JsonObject, type JsonValue } from '@nodepool/core';
import type { HttpAnswer } from './transport.js';

/** The JSON of an answer; undefined when it is none. */
export function jsonOf({ text }: HttpAnswer): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

/** The mapping in an answer. Throws `TransientError`: a cut or garbled answer may be whole the next time. */
export function objectOf(answer: HttpAnswer, operation: string): JsonObject {
  const value = jsonOf(answer);
  if (isJsonObject(value)) return value;
  throw unreadable(operation, `it is no JSON object: ${answer.text.slice(0, 100)}`);
}

/** The mapping at a key of an answer. */
export function memberOf(answer: HttpAnswer, key: string, operation: string): JsonObject {
  const value = objectOf(answer, operation)[key];
  if (isJsonObject(value)) return value;
  throw unreadable(operation, `it has no ${key}`);
}

/** The mappings in the list at a key. */
export function listOf(body: JsonObject, key: string, operation: string): readonly JsonObject[] {
  const value: JsonValue | undefined = body[key];
  if (!Array.isArray(value)) throw unreadable(operation, `it has no list of ${key}`);
  return (value as readonly JsonValue[]).map((item) => {
    if (isJsonObject(item)) return item;
    throw unreadable(operation, `its list of ${key} has something else in it`);
  });
}

/** A text that must be there. */
export function requiredText(section: JsonObject, key: string, operation: string): string {
  const value = section[key];
  if (typeof value === 'string') return value;
  throw unreadable(operation, `it has no ${key}`);
}

function unreadable(operation: string, why: string): TransientError {
  return new TransientError(`${operation}: the answer cannot be used: ${why}`, { outcome: 'unknown' });
}

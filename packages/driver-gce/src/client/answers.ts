/** Reads answers of the APIs. Values of an undocumented type count as missing. */

import { isJsonObject, stringAt, textsAt, TransientError, type JsonObject, type Outcome } from '@nodepool/core';

export function listAt(object: JsonObject, key: string): readonly JsonObject[] {
  const value = object[key];
  return Array.isArray(value) ? (value as readonly unknown[]).filter(isJsonObject) : [];
}

/**
 * Returns an answer with Google's `kind`, e.g. `compute#instanceList`. Throws for any other answer, e.g. JSON of a
 * proxy, which would look like an empty list.
 */
export function answerOf(kind: string, data: unknown, operation: string, outcome: Outcome): JsonObject {
  if (isJsonObject(data) && data['kind'] === kind) return data;
  throw foreignAnswer(operation, `the answer is not a ${kind}`, outcome);
}

/** Throws unless an answer has no content, as that of a deleted object. */
export function expectNoContent(data: unknown, operation: string): void {
  if (data === undefined || data === null || data === '') return;
  throw foreignAnswer(operation, 'the answer has content', 'unknown');
}

function foreignAnswer(operation: string, problem: string, outcome: Outcome): TransientError {
  return new TransientError(`${operation}: ${problem}; is it of Google Cloud, or of a proxy?`, { outcome });
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

/** Selectors of lists and watches. */

import { isJsonObject, type JsonValue } from '@nodepool/core';
import { apiError } from './api-error.js';
import type { StoredObject } from './store.js';

export type Matches = (object: StoredObject) => boolean;

/** Returns the test for `labelSelector` and `fieldSelector`. The simulation knows selectors of the form `key=value`. */
export function selectorIn(query: URLSearchParams): Matches {
  const labels = requirements(query.get('labelSelector'));
  const fields = requirements(query.get('fieldSelector'));
  return (object) =>
    labels.every(([key, value]) => object.metadata.labels?.[key] === value) &&
    fields.every(([path, value]) => valueAt(object, path.split('.')) === value);
}

function requirements(selector: string | null): readonly (readonly [key: string, value: string])[] {
  if (selector === null || selector === '') return [];
  return selector.split(',').map((part) => {
    const [, key, value] = /^([^=!()]+)==?([^=!()]*)$/.exec(part) ?? [];
    if (key === undefined || value === undefined) {
      throw apiError(400, `unable to parse requirement: the simulation does not know the selector ${part}`);
    }
    return [key, value] as const;
  });
}

function valueAt(value: JsonValue, [key, ...rest]: readonly string[]): JsonValue | undefined {
  if (key === undefined) return value;
  const inner = isJsonObject(value) ? value[key] : undefined;
  return inner === undefined ? undefined : valueAt(inner, rest);
}

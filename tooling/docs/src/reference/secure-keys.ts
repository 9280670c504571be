/** Generates the list of the keys that the secure file may contain. `nodepool.yaml` has the same keys. */

import { isDeepStrictEqual } from 'node:util';
import { configSchema, secureSchema } from '@nodepool/config';
import { isJsonObject, type JsonObject, type JsonValue } from '@nodepool/core';
import { code } from './markdown.js';

/** Returns the outermost keys with the schema that they have in `nodepool.yaml`, and what is below the others. */
export function secureKeys(): string {
  const names = keysOf(secureSchema).flatMap(([key, schema]) => {
    if (isDeepStrictEqual(schema, keysOf(configSchema).find(([name]) => name === key)?.[1])) return [key];
    return keysOf(schema['items']).map(([inner]) => `${key}[].${inner}`);
  });
  return names.map((name) => `- ${code(name)}`).join('\n');
}

function keysOf(schema: JsonValue | undefined): readonly (readonly [string, JsonObject])[] {
  const properties = isJsonObject(schema) ? schema['properties'] : undefined;
  if (!isJsonObject(properties)) return [];
  return Object.entries(properties).flatMap(([key, value]) => (isJsonObject(value) ? [[key, value] as const] : []));
}

/** Validates bodies against the published definitions, more strictly than a server: unknown fields are refused. */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { isJsonObject, objectAt, type JsonObject, type JsonValue } from '@nodepool/core';
import { Validator } from '@nodepool/simulated-cloud';

const FILES = ['kubernetes.json', 'openshift.json'];
const FOLDER = join(__dirname, '..', 'definitions');

/** Types whose published definition is narrower than the values that servers accept. */
const EXTENDED_TYPES: Readonly<Record<string, JsonObject>> = {
  'io.k8s.apimachinery.pkg.util.intstr.IntOrString': { type: ['integer', 'string'] },
  'io.k8s.apimachinery.pkg.api.resource.Quantity': { type: ['number', 'string'] },
};

let validator: Validator | undefined;

/** Returns why a body does not conform to a definition, or undefined if it does. */
export function problemOf(definition: string, body: JsonObject): string | undefined {
  validator ??= new Validator(readDefinitions());
  return validator.problem(definition, () => ({ $ref: `api#/$defs/${definition}` }), body);
}

function readDefinitions(): JsonObject {
  const all: Record<string, JsonValue> = {};
  for (const file of FILES) {
    const content: unknown = JSON.parse(readFileSync(join(FOLDER, file), 'utf8'));
    if (!isJsonObject(content)) throw new Error(`${file} is not a JSON object`);
    Object.assign(all, objectAt(content, 'definitions'));
  }
  return Object.fromEntries(
    Object.entries(all).map(([name, schema]) => [name, EXTENDED_TYPES[name] ?? strict(schema)]),
  );
}

/** Closes the objects with named properties, and makes their references refer to the shared document. */
function strict(schema: JsonValue): JsonValue {
  if (Array.isArray(schema)) return (schema as readonly JsonValue[]).map(strict);
  if (!isJsonObject(schema)) return schema;
  // Formats such as `int32` only document the values.
  const relevant = Object.entries(schema).filter(([key, value]) => key !== 'format' || typeof value !== 'string');
  const entries = relevant.map(([key, value]): [string, JsonValue] => {
    if (key === '$ref' && typeof value === 'string') return [key, value.replace('#/definitions/', 'api#/$defs/')];
    return [key, strict(value)];
  });
  const isClosed = isJsonObject(schema['properties'] ?? null) && schema['type'] === 'object';
  return { ...Object.fromEntries(entries), ...(isClosed ? { additionalProperties: false } : {}) };
}

/** Generates a list of a schema's keys, nested as in the file, with types, defaults and rules. */

import { isJsonObject, type JsonObject } from '@nodepool/core';
import { code, prose } from './markdown.js';
import { defaultText, innerOf, propertiesOf, rulesOf, strings, typeText } from './schema.js';

/**
 * Returns the list. The keys below those in `sections` follow under headings, another page describes those below
 * `elsewhere`. Throws if a key has no description.
 */
export function schemaOutline(
  schema: JsonObject,
  sections: readonly string[] = [],
  elsewhere: readonly string[] = [],
): string {
  const properties = propertiesOf(schema);
  const parts = [listOf(schema, '', [...sections, ...elsewhere])];
  for (const key of sections) {
    const inner = innerOf(properties[key] ?? {});
    if (inner === undefined) throw new Error(`the schema has no keys below ${key}`);
    parts.push(`### ${code(key)}`, listOf(inner.schema, '', []));
  }
  return parts.join('\n\n');
}

function listOf(schema: JsonObject, indent: string, without: readonly string[]): string {
  const required = new Set(strings(schema['required']));
  return Object.entries(propertiesOf(schema))
    .flatMap(([key, property]) => {
      const inner = innerOf(property);
      const line = `${indent}- ${lineOf(key, property, required.has(key), inner?.schema)}`;
      return inner === undefined || without.includes(key) ? [line] : [line, listOf(inner.schema, `${indent}  `, [])];
    })
    .join('\n');
}

function lineOf(key: string, property: JsonObject, isRequired: boolean, inner: JsonObject | undefined): string {
  const { description } = property;
  if (typeof description !== 'string') throw new Error(`the key ${key} has no description in its schema`);
  const value = isRequired ? '' : defaultText(property);
  const type = `${typeText(property)}${isRequired ? ', required' : ''}${property['compatible'] === false ? ' (new)' : ''}`;
  const rules = isJsonObject(inner) ? rulesOf(inner) : [];
  return [code(key), `${type}:`, prose(description), ...(value === '' ? [] : [`Default: ${value}.`]), ...rules].join(
    ' ',
  );
}

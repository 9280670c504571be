/**
 * Generates tables of a schema's keys, one per mapping and in the order of the schema, with types, defaults and rules.
 */

import { isJsonObject, type JsonObject, type JsonValue } from '@nodepool/core';
import { code, prose, table } from './markdown.js';

interface Section {
  readonly path: string;
  readonly schema: JsonObject;
}

/** Returns the tables; `depth` is the level of their headings. Throws if a key has no description. */
export function schemaReference(schema: JsonObject, depth = 2): string {
  return sectionsOf(schema)
    .map((section) => sectionText(section, '#'.repeat(depth)))
    .join('\n\n');
}

/** Returns the mappings of the schema, each before the mappings inside it. */
function sectionsOf(root: JsonObject): readonly Section[] {
  const sections: Section[] = [];
  const visit = (path: string, schema: JsonObject): void => {
    sections.push({ path, schema });
    for (const [key, property] of Object.entries(propertiesOf(schema))) {
      const inner = innerOf(property);
      if (inner !== undefined) visit(`${path === '' ? '' : `${path}.`}${key}${inner.suffix}`, inner.schema);
    }
  };
  visit('', root);
  return sections;
}

function sectionText({ path, schema }: Section, marks: string): string {
  const required = new Set(strings(schema['required']));
  const rows = Object.entries(propertiesOf(schema)).map(([key, property]) => {
    const description = property['description'];
    if (typeof description !== 'string') throw new Error(`the key ${path}.${key} has no description in its schema`);
    const meaning = property['compatible'] === false ? `(new) ${prose(description)}` : prose(description);
    return [code(key), typeText(property), required.has(key) ? 'required' : defaultText(property), meaning];
  });
  const { description } = schema;
  const rules = [schema, ...objects(schema['allOf'])].flatMap(ruleText);
  const others = schema['additionalProperties'];
  return [
    path === '' ? undefined : `${marks} ${code(path)}`,
    path !== '' && typeof description === 'string' ? prose(description) : undefined,
    table(['key', 'type', 'default', 'meaning'], rows),
    rules.length === 0 ? undefined : rules.join(' '),
    isJsonObject(others) && rows.length > 0 ? `Other keys are allowed, too: ${typeText(others)} each.` : undefined,
  ]
    .filter((part) => part !== undefined)
    .join('\n\n');
}

/** Returns the schema of a mapping, or of the items of a list of mappings, if its keys are defined. */
function innerOf(property: JsonObject): { readonly suffix: string; readonly schema: JsonObject } | undefined {
  if (hasKeys(property)) return { suffix: '', schema: property };
  const items = property['items'];
  if (isJsonObject(items) && hasKeys(items)) return { suffix: '[]', schema: items };
  const branches = [...objects(property['oneOf']), ...objects(property['anyOf'])];
  return branches.map(innerOf).find((found) => found !== undefined);
}

function hasKeys(schema: JsonObject): boolean {
  return Object.keys(propertiesOf(schema)).length > 0;
}

const TYPE_NAMES: Readonly<Record<string, string>> = { array: 'list', object: 'mapping', integer: 'whole number' };

function typeText(schema: JsonObject): string {
  if (schema['const'] !== undefined) return code(JSON.stringify(schema['const']));
  const choices = schema['enum'];
  if (Array.isArray(choices)) return choices.map((choice) => code(String(choice))).join(', ');
  const branches = [...objects(schema['oneOf']), ...objects(schema['anyOf'])];
  if (schema['type'] === undefined) return unique(branches.map(typeText)).join(' or ') || 'anything';
  const types = (Array.isArray(schema['type']) ? schema['type'] : [schema['type']]).filter((type) => type !== 'null');
  const items = schema['items'];
  const names = types.map((type) => TYPE_NAMES[String(type)] ?? String(type));
  // A number that may also be written as a string (with a pattern) is a single type for readers.
  const shown = schema['pattern'] !== undefined && names.length > 1 ? names.filter(isNotString) : names;
  if (types.length === 1 && types[0] === 'array' && isJsonObject(items)) return `list of ${plural(typeText(items))}`;
  return shown.join(' or ');
}

function isNotString(name: string): boolean {
  return name !== 'string';
}

function plural(type: string): string {
  return type.endsWith('s') || type.includes('`') || type.includes(' or ') ? type : `${type}s`;
}

function defaultText({ default: value }: JsonObject): string {
  if (value === undefined) return '';
  return code(typeof value === 'string' ? value : JSON.stringify(value));
}

/** Describes the other rules of a schema. Throws for an unsupported rule, because it would be missing on the page. */
function ruleText(schema: JsonObject): string[] {
  const texts: string[] = [];
  const oneOf = requirements(schema['oneOf']);
  const anyOf = requirements(schema['anyOf']);
  const not = isJsonObject(schema['not']) ? schema['not'] : undefined;
  if (oneOf !== undefined) texts.push(`Exactly one of ${oneOf.join(', ')} is required.`);
  if (anyOf !== undefined) texts.push(`At least one of ${anyOf.join(', ')} is required.`);
  if (not !== undefined) {
    const excluded = strings(not['required']).map(code);
    const either = requirements(not['anyOf']);
    if (excluded.length > 0) texts.push(`${excluded.join(' and ')} exclude each other.`);
    else if (either !== undefined) texts.push(`Not allowed together: ${either.join('; ')}.`);
  }
  if (schema['properties'] === undefined && schema['required'] !== undefined) {
    texts.push(`${strings(schema['required']).map(code).join(' and ')} must be there.`);
  }
  return texts;
}

/** Returns the keys that each branch requires. */
function requirements(branches: JsonValue | undefined): readonly string[] | undefined {
  const keys = objects(branches).map((branch) => strings(branch['required']).map(code).join(' with '));
  return keys.length === 0 || keys.includes('') ? undefined : keys;
}

function propertiesOf(schema: JsonObject): Readonly<Record<string, JsonObject>> {
  const properties = schema['properties'];
  if (!isJsonObject(properties)) return {};
  return Object.fromEntries(
    Object.entries(properties).flatMap(([key, value]) => (isJsonObject(value) ? [[key, value] as const] : [])),
  );
}

function objects(value: JsonValue | undefined): readonly JsonObject[] {
  return Array.isArray(value) ? value.filter(isJsonObject) : [];
}

function strings(value: JsonValue | undefined): readonly string[] {
  return Array.isArray(value) ? value.filter((each) => typeof each === 'string') : [];
}

function unique(texts: readonly string[]): readonly string[] {
  return [...new Set(texts)];
}

/**
 * Generates lists of a schema's keys, one per mapping and in the order of the schema, with types, defaults and rules.
 */

import { isJsonObject, type JsonObject, type JsonValue } from '@nodepool/core';
import { code, prose } from './markdown.js';

export interface ReferenceOptions {
  /** Level of the headings. Default: 2. */
  readonly depth?: number;
  /** A schema that another page describes: keys with the same meaning are omitted, and differences listed. */
  readonly base?: JsonObject;
  /** Paths of the mappings with a list of their own. The keys of the others are below their own key. Default: all. */
  readonly sections?: ReadonlySet<string>;
  /** Paths of mappings whose keys another page describes. */
  readonly elsewhere?: ReadonlySet<string>;
}

/** The line of a key. `type` and `meaning` identify what `base` describes, too. */
interface Row {
  readonly key: string;
  readonly type: string;
  readonly default: string;
  readonly isRequired: boolean;
  readonly isNew: boolean;
  readonly meaning: string;
}

interface Section {
  readonly path: string;
  readonly schema: JsonObject;
  /** Undefined if the line of the key has the same description. */
  readonly description: string | undefined;
  readonly rows: readonly Row[];
}

/** Returns the lists. Throws if a key has no description. */
export function schemaReference(schema: JsonObject, options: ReferenceOptions = {}): string {
  const { depth = 2, base } = options;
  const described = new Map((base === undefined ? [] : sectionsOf(base, options)).map((each) => [each.path, each]));
  return sectionsOf(schema, options)
    .map((section) => sectionText(section, '#'.repeat(depth), described.get(section.path)))
    .filter((text) => text !== '')
    .join('\n\n');
}

/** Returns the mappings of the schema that have a list, each before the mappings inside it. */
function sectionsOf(root: JsonObject, { sections: own, elsewhere }: ReferenceOptions): readonly Section[] {
  const sections: Section[] = [];
  const visit = (path: string, schema: JsonObject, outer?: JsonObject): void => {
    const rows: Row[] = [];
    const inner: (() => void)[] = [];
    const addRows = (prefix: string, mapping: JsonObject): void => {
      const required = new Set(strings(mapping['required']));
      for (const [key, property] of Object.entries(propertiesOf(mapping))) {
        const name = `${prefix}${key}`;
        const row = rowOf(name, property, required.has(key), path);
        const below = innerOf(property);
        const pathBelow = `${path === '' ? '' : `${path}.`}${name}${below?.suffix ?? ''}`;
        const hasSection = below !== undefined && own?.has(pathBelow) !== false;
        if (below === undefined || hasSection) rows.push(row);
        if (below === undefined) continue;
        if (hasSection) {
          inner.push(() => visit(pathBelow, below.schema, property));
        } else {
          rows.push({ ...row, meaning: [row.meaning, ...rulesOf(below.schema)].join(' ') });
          if (elsewhere?.has(pathBelow) !== true) addRows(`${name}${below.suffix}.`, below.schema);
        }
      }
    };
    addRows('', schema);
    const { description } = schema;
    const isOwn = path !== '' && typeof description === 'string' && description !== outer?.['description'];
    sections.push({ path, schema, description: isOwn ? prose(description) : undefined, rows });
    for (const each of inner) each();
  };
  visit('', root);
  return sections;
}

function rowOf(key: string, property: JsonObject, isRequired: boolean, path: string): Row {
  const { description } = property;
  if (typeof description !== 'string') throw new Error(`the key ${path}.${key} has no description in its schema`);
  return {
    key,
    type: typeText(property),
    default: defaultText(property),
    isRequired,
    isNew: property['compatible'] === false,
    meaning: prose(description),
  };
}

function sectionText(section: Section, marks: string, base: Section | undefined): string {
  const { path, schema, description, rows } = section;
  const described = new Map((base?.rows ?? []).map((row) => [row.key, row]));
  const own = rows.filter((row) => {
    const same = described.get(row.key);
    return same?.type !== row.type || same.meaning !== row.meaning;
  });
  const others = schema['additionalProperties'];
  const known = new Set(base === undefined ? [] : rulesOf(base.schema));
  const parts = [
    own.length === 0 ? undefined : own.map((row) => lineOf(row, own)).join('\n'),
    base === undefined ? undefined : differences(rows, own, described),
    rulesOf(schema)
      .filter((rule) => !known.has(rule))
      .join(' '),
    isJsonObject(others) && rows.length > 0 ? `Other keys are allowed, too: ${typeText(others)} each.` : undefined,
  ].filter((part) => part !== undefined && part !== '');
  if (parts.length === 0) return '';
  const heading = path === '' ? undefined : `${marks} ${code(path)}`;
  const introduction = base === undefined ? description : undefined;
  return [heading, introduction, ...parts].filter((part) => part !== undefined).join('\n\n');
}

/** Returns the line of the key, indented below that of the mapping that contains it. */
function lineOf({ key, type, default: value, isRequired, isNew, meaning }: Row, rows: readonly Row[]): string {
  const outer = rows.filter((row) => key.startsWith(`${row.key}.`) || key.startsWith(`${row.key}[].`));
  const shown = key.slice(key.indexOf('.', outer.at(-1)?.key.length ?? key.length) + 1);
  const start = `${'  '.repeat(outer.length)}- ${code(shown)} ${type}`;
  const marks = `${isRequired ? ', required' : ''}${isNew ? ' (new)' : ''}:`;
  return [`${start}${marks}`, meaning, value === '' || isRequired ? '' : `Default: ${value}.`]
    .filter((text) => text !== '')
    .join(' ');
}

/** Describes how the omitted keys differ from those that the other page shows. */
function differences(rows: readonly Row[], own: readonly Row[], described: ReadonlyMap<string, Row>): string {
  const common = rows.flatMap((row) => {
    const other = own.includes(row) ? undefined : described.get(row.key);
    return other === undefined ? [] : [[row, other] as const];
  });
  const absent = [...described.keys()].filter((key) => rows.every((row) => row.key !== key));
  const outermost = absent.filter((key) => !absent.some((other) => key.startsWith(`${other}.`)));
  const required = common.filter(([row, other]) => row.isRequired && !other.isRequired);
  const defaults = common.filter(([row, other]) => row.default !== other.default && !row.isRequired);
  const isNew = common.filter(([row, other]) => row.isNew && !other.isNew);
  const list = (pairs: readonly (readonly [Row, Row])[]): string => pairs.map(([{ key }]) => code(key)).join(', ');
  return [
    outermost.length === 0 ? '' : `Not available: ${outermost.map(code).join(', ')}.`,
    required.length === 0 ? '' : `Required: ${list(required)}.`,
    defaults.length === 0 ? '' : `Other defaults: ${defaults.map(([row]) => defaultOf(row)).join(', ')}.`,
    isNew.length === 0 ? '' : `(new): ${list(isNew)}.`,
  ]
    .filter((text) => text !== '')
    .join(' ');
}

/** Returns the schema of a mapping, or of the items of a list of mappings, if its keys are defined. */
export function innerOf(property: JsonObject): { readonly suffix: string; readonly schema: JsonObject } | undefined {
  if (hasKeys(property)) return { suffix: '', schema: property };
  const items = property['items'];
  if (isJsonObject(items) && hasKeys(items)) return { suffix: '[]', schema: items };
  const branches = [...objects(property['oneOf']), ...objects(property['anyOf'])];
  return branches.map(innerOf).find((found) => found !== undefined);
}

function hasKeys(schema: JsonObject): boolean {
  return Object.keys(propertiesOf(schema)).length > 0;
}

const TYPE_NAMES: Readonly<Record<string, string>> = { array: 'list', object: 'mapping' };

export function typeText(schema: JsonObject): string {
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
  // The keys of a list of mappings show what it is.
  if (types.length === 1 && types[0] === 'array' && isJsonObject(items) && !hasKeys(items)) {
    return `list of ${plural(typeText(items))}`;
  }
  return shown.join(' or ');
}

function isNotString(name: string): boolean {
  return name !== 'string';
}

function plural(type: string): string {
  return type.endsWith('s') || type.includes('`') || type.includes(' or ') ? type : `${type}s`;
}

export function defaultText({ default: value }: JsonObject): string {
  if (value === undefined) return '';
  return code(typeof value === 'string' ? value : JSON.stringify(value));
}

function defaultOf({ key, default: value }: Row): string {
  return value === '' ? `no ${code(key)}` : code(`${key}: ${value.replaceAll('`', '')}`);
}

export function rulesOf(schema: JsonObject): readonly string[] {
  return [schema, ...objects(schema['allOf'])].flatMap(ruleText);
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

export function propertiesOf(schema: JsonObject): Readonly<Record<string, JsonObject>> {
  const properties = schema['properties'];
  if (!isJsonObject(properties)) return {};
  return Object.fromEntries(
    Object.entries(properties).flatMap(([key, value]) => (isJsonObject(value) ? [[key, value] as const] : [])),
  );
}

function objects(value: JsonValue | undefined): readonly JsonObject[] {
  return Array.isArray(value) ? value.filter(isJsonObject) : [];
}

export function strings(value: JsonValue | undefined): readonly string[] {
  return Array.isArray(value) ? value.filter((each) => typeof each === 'string') : [];
}

function unique(texts: readonly string[]): readonly string[] {
  return [...new Set(texts)];
}

/** The text of a first `nodepool.yaml`. Comments come from the schema of the driver and the lists of the cloud. */

import { createRequire } from 'node:module';
import {
  isJsonObject,
  objectAt,
  stringAt,
  type JsonObject,
  type JsonSchema,
  type JsonValue,
  type SiteChoice,
  type SiteDescription,
  type SiteOption,
} from '@nodepool/core';
import type * as Yaml from 'yaml';
import { describe, nounOf } from './answers.js';

const load = createRequire(__filename);

/** Keys that need no comment. */
const PLAIN: ReadonlySet<string> = new Set(['name', 'driver', 'host', 'port']);

/** Keys whose values name things of this file or user names, which can equal names of the cloud. */
const NAMED: ReadonlySet<string> = new Set(['cloud-image', 'username']);

/** Number of other entries of a list that a comment names. */
const OTHERS = 8;

const HEADER = ` A first configuration, written by "nodepool init". The reference of all keys: "docs/reference/configuration.md"
 and the page of the driver in "docs/drivers". "nodepool config-validate" checks this file, "nodepool doctor" the site.`;

const COMMENTS: Readonly<Record<string, string>> = {
  'zookeeper-servers': 'The servers of the ensemble. Without "zookeeper-tls", the connection is not encrypted.',
  labels: 'What CI systems request. "min-ready: 1" keeps a node ready.',
  providers: 'The clouds that provide the labels. The limits of pools are yours, in addition to those of the cloud.',
};

export interface DocumentParts {
  readonly zookeeper: { readonly host: string; readonly port: number };
  readonly label: string;
  readonly provider: JsonObject;
  readonly schema: JsonSchema;
  readonly site: SiteDescription;
  readonly chosen: Readonly<Partial<Record<SiteChoice, string>>>;
}

export function documentText({ zookeeper, label, provider, schema, site, chosen }: DocumentParts): string {
  const { Document, isMap, isSeq, visit } = load('yaml') as typeof Yaml;
  const content: JsonObject = {
    'zookeeper-servers': [{ ...zookeeper }],
    labels: [{ name: label }],
    providers: [provider],
  };
  // With version 1.1, the library quotes texts that other readers would take for a boolean or a number.
  const document = new Document(content, { version: '1.1', aliasDuplicateObjects: false });
  document.commentBefore = HEADER;
  const others = othersOf(site, chosen);
  visit(document, {
    Pair: (_key, pair, path) => {
      const key = keyText(pair.key);
      if (key === undefined || PLAIN.has(key)) return;
      const parents = path.flatMap((node) => ('key' in node ? (keyText(node.key) ?? []) : []));
      const comment =
        parents.length === 0 ? COMMENTS[key] : parents[0] === 'providers' ? meaning(schema, parents, key) : undefined;
      if (comment !== undefined && isNode(pair.key)) {
        pair.key.commentBefore = ` ${comment}`;
        if (parents.length === 0 && key !== 'zookeeper-servers') pair.key.spaceBefore = true;
      }
      if (NAMED.has(key)) return;
      const value = isNode(pair.value) && 'value' in pair.value ? pair.value.value : undefined;
      const note = typeof value === 'string' ? others.get(value) : undefined;
      if (note !== undefined && isNode(pair.value)) pair.value.comment = ` ${note}`;
    },
  });
  const providers = document.get('providers');
  if (isSeq(providers) && isMap(providers.items[0])) providers.items[0].commentBefore = optional(site, chosen) ?? null;
  return document.toString({ lineWidth: 0 });
}

type CommentedNode = { commentBefore?: string | null; spaceBefore?: boolean; comment?: string | null; value?: unknown };

function isNode(value: unknown): value is CommentedNode {
  return typeof value === 'object' && value !== null;
}

function keyText(key: unknown): string | undefined {
  if (typeof key === 'string') return key;
  return isNode(key) && typeof key.value === 'string' ? key.value : undefined;
}

/** Returns the first sentence of the key's description; `parents` begins with `providers`. */
function meaning(schema: JsonSchema, [, ...parents]: readonly string[], key: string): string | undefined {
  let section: JsonValue | undefined = schema;
  for (const parent of parents) section = itemsOf(propertyOf(section, parent));
  const property = propertyOf(section, key);
  const text = isJsonObject(property) ? stringAt(property, 'description') : undefined;
  return text === undefined ? undefined : /^.*?\.(?= \p{Lu}|$)/su.exec(text)?.[0].replaceAll('`', '"');
}

function propertyOf(section: JsonValue | undefined, key: string): JsonValue | undefined {
  return isJsonObject(section) ? objectAt(section, 'properties')?.[key] : undefined;
}

function itemsOf(property: JsonValue | undefined): JsonValue | undefined {
  return isJsonObject(property) ? (objectAt(property, 'items') ?? property) : undefined;
}

/** Returns a comment by chosen value: the properties of the entry, and other entries of its list. */
function othersOf(site: SiteDescription, chosen: DocumentParts['chosen']): ReadonlyMap<string, string> {
  const comments = new Map<string, string>();
  for (const [choice, value] of Object.entries(chosen)) {
    const options = site[choice as SiteChoice]?.options ?? [];
    const note = options.find(({ name }) => name === value)?.note;
    const names = options.filter(({ name }) => name !== value).map(({ name }) => name);
    const rest = names.length > OTHERS ? ', …' : '';
    const others = names.length === 0 ? undefined : `others: ${names.slice(0, OTHERS).join(', ')}${rest}`;
    const comment = [note, others].filter((part) => part !== undefined).join('; ');
    if (comment !== '') comments.set(value, oneLine(comment));
  }
  return comments;
}

/** Returns a comment about the lists from which nothing was chosen. */
function optional(site: SiteDescription, chosen: DocumentParts['chosen']): string | undefined {
  const lines = Object.entries(site).flatMap(([choice, { options }]) => {
    if (chosen[choice as SiteChoice] !== undefined || options.length === 0) return [];
    return [oneLine(` No ${nounOf(choice as SiteChoice)} is set; the cloud has: ${listed(options)}`)];
  });
  return lines.length === 0 ? undefined : lines.join('\n');
}

function listed(options: readonly SiteOption[]): string {
  const names = options.slice(0, OTHERS).map(describe).join(', ');
  return options.length > OTHERS ? `${names}, …` : names;
}

/** Names of the cloud can contain any characters; one that ends the line would end the comment. */
function oneLine(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+/gu, ' ');
}

/** Reads YAML into values of which the places in the file are known. Whatever the text is, it answers with problems rather than a crash. */

import { isAlias, isMap, isScalar, isSeq, parseDocument, type Document, type Node, type Pair } from 'yaml';
import type { JsonObject, JsonValue } from '../model/json.js';
import { reasonOf } from '../observe/error-text.js';
import { ConfigDocument, Places, type EntryPlace, type Span } from './document.js';
import { formatPath, type ConfigProblem, type KeyPath } from './problems.js';
import { resolvePlainScalar, resolveTaggedScalar } from './scalar.js';
import type { SourceText } from './source.js';
import { excessiveDepth } from './yaml-depth.js';

/** Aliases multiply: a few lines can say billions of values. A large site's file has a few thousand. */
const MAX_VALUES = 250_000;
/** Of values behind aliases; the text itself is checked before. */
const MAX_DEPTH = 400;
const COLLECTION_TAGS = new Set(['!', 'tag:yaml.org,2002:map', 'tag:yaml.org,2002:seq']);

export type ParseResult =
  | { readonly ok: true; readonly document: ConfigDocument }
  | { readonly ok: false; readonly document: ConfigDocument | undefined; readonly problems: readonly ConfigProblem[] };

/** Parses the text. `document` is there with problems too when the text could be read nevertheless, e.g. with a variable missing. */
export function parseYaml(source: SourceText): ParseResult {
  const deep = excessiveDepth(source.text);
  if (deep !== undefined) return { ok: false, document: undefined, problems: [tooDeep(source, deep)] };
  let document: Document.Parsed;
  try {
    // Scalars are resolved here, not by the library, because it reads YAML 1.1 otherwise than existing files expect.
    document = parseDocument(source.text, {
      schema: 'failsafe',
      prettyErrors: false,
      uniqueKeys: false,
      resolveKnownTags: false,
    });
  } catch (error) {
    return { ok: false, document: undefined, problems: [unreadable(source, error)] };
  }
  const [first] = document.errors.toSorted((a, b) => a.pos[0] - b.pos[0]);
  if (first !== undefined) return { ok: false, document: undefined, problems: [syntaxProblem(source, first)] };
  const composer = new Composer(source);
  const value = composer.convert(document.contents, []);
  const parsed = new ConfigDocument(value, source, composer.places);
  return composer.problems.length === 0
    ? { ok: true, document: parsed }
    : { ok: false, document: composer.fatal ? undefined : parsed, problems: composer.problems };
}

function tooDeep(source: SourceText, offset: number): ConfigProblem {
  return {
    ...source.position(offset),
    path: '',
    expected: 'fewer levels of nesting',
    found: 'too many',
    hint: undefined,
  };
}

function unreadable(source: SourceText, error: unknown): ConfigProblem {
  const found = reasonOf(error);
  return { ...source.position(0), path: '', expected: 'valid YAML', found, hint: undefined };
}

const INDENTATION_CODES = new Set(['BAD_INDENT', 'BLOCK_AS_IMPLICIT_KEY', 'MULTILINE_IMPLICIT_KEY', 'TAB_AS_INDENT']);

/** Only the first is told: those that follow are nearly always its consequences. */
function syntaxProblem(
  source: SourceText,
  error: { code: string; message: string; pos: [number, number] },
): ConfigProblem {
  const hint = INDENTATION_CODES.has(error.code)
    ? 'check the indentation of this line and of those before it'
    : undefined;
  return {
    ...source.position(firstContent(source.text, error.pos[0])),
    path: '',
    expected: 'valid YAML',
    // Behind a colon the library quotes the text, which may be a secret.
    found: `an error: ${error.message.replace(/: .*$/s, '')}`,
    hint,
  };
}

/** Past the blanks and comments at `offset`: the error is in what follows them. */
function firstContent(text: string, offset: number): number {
  const blank = /(?:\s+|#[^\n]*\n)*/y;
  blank.lastIndex = offset;
  const atLineStart = /(^|\n)[ \t]*$/.test(text.slice(Math.max(0, offset - 200), offset));
  if (!atLineStart) return offset;
  const match = blank.exec(text);
  const end = offset + (match?.[0].length ?? 0);
  return end < text.length ? end : offset;
}

interface Converted {
  readonly value: JsonValue;
  /** Number of values in it, those behind aliases counted each time. */
  readonly size: number;
  /** Number of levels below it. */
  readonly height: number;
}

/** Turns the library's nodes into values. */
class Composer {
  readonly places = new Places();
  readonly problems: ConfigProblem[] = [];
  /** The value is not worth looking at any further. */
  fatal = false;
  private readonly anchors = new Map<string, Node>();
  private readonly done = new Map<Node, Converted>();
  private size = 0;
  /** Levels of the deepest value so far. */
  private deepest = 0;

  constructor(private readonly source: SourceText) {}

  convert(node: Node | null, path: KeyPath): JsonValue {
    if (this.fatal) return null;
    if (node === null) return null;
    if (isAlias(node)) return this.convertAlias(node.source, node, path);
    const anchor = isScalar(node) || isMap(node) || isSeq(node) ? node.anchor : undefined;
    if (anchor !== undefined) this.anchors.set(anchor, node);
    const sizeBefore = this.size;
    const deepestBefore = this.deepest;
    this.grow(1, node, path);
    this.deepest = path.length;
    const value = this.convertNode(node, path);
    if (anchor !== undefined) {
      this.done.set(node, { value, size: this.size - sizeBefore, height: this.deepest - path.length });
    }
    this.deepest = Math.max(this.deepest, deepestBefore);
    return value;
  }

  private convertNode(node: Node, path: KeyPath): JsonValue {
    if (isScalar(node)) return this.convertScalar(node, path);
    const tag = (node as { tag?: string }).tag;
    if (tag !== undefined && !COLLECTION_TAGS.has(tag)) {
      this.problem(span(node), path, 'a plain mapping or list', `the tag ${tag}`, 'remove the tag');
    }
    if (isMap(node)) return this.convertMap(node.items, span(node), path);
    if (isSeq(node)) return this.convertList(node.items, span(node), path);
    return null;
  }

  private convertScalar(node: Node, path: KeyPath): JsonValue {
    if (!isScalar(node)) return null;
    const place = span(node);
    for (const variable of this.source.missingVariables(place.start, place.end)) {
      const hint = `set the variable for this process, or remove %(${variable}) from the file`;
      this.problem(place, path, `the environment variable ${variable}`, 'that it is not set', hint);
    }
    const written = node.source ?? '';
    if (node.tag === undefined) return node.type === 'PLAIN' ? resolvePlainScalar(written) : written;
    const value = resolveTaggedScalar(node.tag, written);
    if (value !== undefined) return value;
    this.problem(
      place,
      path,
      'a value of a plain type',
      `the tag ${node.tag}`,
      'remove the tag, or write a value that fits it',
    );
    return null;
  }

  private convertAlias(name: string, node: Node, path: KeyPath): JsonValue {
    const target = this.anchors.get(name);
    if (target === undefined) {
      this.problem(span(node), path, `an anchor &${name} above this line`, 'none', undefined);
      return null;
    }
    const converted = this.done.get(target);
    if (converted === undefined) {
      this.problem(span(node), path, 'a value that does not contain itself', `*${name} inside of &${name}`, undefined);
      return null;
    }
    this.grow(converted.size, node, path);
    this.deepest = Math.max(this.deepest, path.length + converted.height);
    if (this.deepest > MAX_DEPTH) this.abandon(node, path, `at most ${MAX_DEPTH} levels of nesting`, undefined);
    return this.fatal ? null : converted.value;
  }

  private convertList(items: readonly unknown[], place: Span, path: KeyPath): JsonValue {
    const list: JsonValue[] = [];
    const entries = new Map<string | number, EntryPlace>();
    for (const [index, item] of items.entries()) {
      const node = asNode(item);
      list.push(this.convert(node, [...path, index]));
      const value = node === null ? place : span(node);
      entries.set(index, { key: value, value });
    }
    this.places.add(list, place, entries);
    return list;
  }

  private convertMap(items: readonly Pair[], place: Span, path: KeyPath): JsonObject {
    const values = new Map<string, JsonValue>();
    const entries = new Map<string | number, EntryPlace>();
    const merged: JsonObject[] = [];
    for (const pair of items) {
      const keyNode = asNode(pair.key);
      const valueNode = asNode(pair.value);
      const key = this.keyOf(keyNode, path, place);
      if (key === undefined) continue;
      if (key === '<<' && isScalar(keyNode) && keyNode.type === 'PLAIN') {
        merged.push(...this.mergedMappings(valueNode, path, keyNode));
        continue;
      }
      const keySpan = keyNode === null ? place : span(keyNode);
      const keyPath = [...path, key];
      const value = this.convert(valueNode, keyPath);
      if (values.has(key)) {
        this.problem(
          keySpan,
          keyPath,
          'each key once in a mapping',
          'it a second time',
          'remove or rename one of the two',
        );
        continue;
      }
      values.set(key, value);
      entries.set(key, { key: keySpan, value: valueNode === null ? keySpan : span(valueNode) });
    }
    for (const mapping of merged) this.mergeInto(values, entries, mapping);
    // Not by assignment: that would take a key `__proto__` for something else.
    const object: JsonObject = Object.fromEntries(values);
    this.places.add(object, place, entries);
    return object;
  }

  /** The mappings behind a merge key, `<<: *a` or `<<: [*a, *b]`. */
  private mergedMappings(node: Node | null, path: KeyPath, keyNode: Node): JsonObject[] {
    const value = this.convert(node, [...path, '<<']);
    const candidates: readonly JsonValue[] = Array.isArray(value) ? value : [value];
    const mappings = candidates.filter(
      (each): each is JsonObject => typeof each === 'object' && each !== null && !Array.isArray(each),
    );
    if (mappings.length < candidates.length) {
      this.problem(
        span(node ?? keyNode),
        [...path, '<<'],
        'a mapping, or a list of mappings, to merge',
        'something else',
        undefined,
      );
    }
    return mappings;
  }

  /** What is there already wins: the mapping's own keys, then those merged first. */
  private mergeInto(
    values: Map<string, JsonValue>,
    entries: Map<string | number, EntryPlace>,
    mapping: JsonObject,
  ): void {
    const places = this.places.entriesOf(mapping);
    for (const [key, value] of Object.entries(mapping)) {
      if (values.has(key)) continue;
      values.set(key, value);
      const place = places?.get(key);
      if (place !== undefined) entries.set(key, place);
    }
  }

  private keyOf(node: Node | null, path: KeyPath, place: Span): string | undefined {
    const target = isAlias(node) ? this.anchors.get(node.source) : node;
    if (isScalar(target) && target.source !== undefined && (target.source !== '' || target.type !== 'PLAIN')) {
      this.convert(node, [...path, target.source]);
      return target.source;
    }
    this.problem(node === null ? place : span(node), path, 'a text as the key', 'something else', undefined);
    return undefined;
  }

  private grow(count: number, node: Node, path: KeyPath): void {
    this.size += count;
    if (this.size <= MAX_VALUES || this.fatal) return;
    this.abandon(
      node,
      path,
      `at most ${MAX_VALUES} values, those repeated by aliases included`,
      'remove aliases that multiply each other',
    );
  }

  private abandon(node: Node, path: KeyPath, expected: string, hint: string | undefined): void {
    this.problem(span(node), path, expected, 'more', hint);
    this.fatal = true;
  }

  private problem(place: Span, path: KeyPath, expected: string, found: string, hint: string | undefined): void {
    this.problems.push({ ...this.source.position(place.start), path: formatPath(path), expected, found, hint });
  }
}

function asNode(value: unknown): Node | null {
  return isScalar(value) || isMap(value) || isSeq(value) || isAlias(value) ? value : null;
}

function span(node: Node): Span {
  const range = node.range;
  return { start: range?.[0] ?? 0, end: range?.[1] ?? 0 };
}

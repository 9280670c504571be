import type { Alias, Document, Node, Pair, YAMLMap, YAMLSeq } from 'yaml';
import { isAlias, isMap, isScalar, isSeq } from 'yaml';

export type YamlValue = null | boolean | number | string | readonly YamlValue[] | { readonly [key: string]: YamlValue };

/** Offsets into the text; `end` is exclusive. */
export interface Span {
  readonly start: number;
  readonly end: number;
}

/** Keys and indexes from the top, e.g. `['providers', 0, 'name']`. */
export type YamlPath = readonly (string | number)[];

/** The place of a value in the text. List entries have no key, so their `key` equals `value`. */
export interface YamlPlace {
  readonly key: Span;
  readonly value: Span;
}

/** A parsed text: its value, and where each part of it is written. */
export class YamlDocument {
  constructor(
    readonly value: YamlValue,
    private readonly document: Document.Parsed,
  ) {}

  /**
   * Returns the place of the value at `path`, through aliases and merge keys, and the number of existing steps
   * (`depth`). If a step is missing, the place is that of the innermost existing value. If the value is an alias,
   * `text` is the span of the value behind it.
   *
   * @example
   * document.locate(['providers', 0, 'rate']).place.value; // { start: 42, end: 45 }
   */
  locate(path: YamlPath): { readonly place: YamlPlace; readonly text: Span; readonly depth: number } {
    let node = this.resolve(this.document.contents);
    const whole = node === null ? { start: 0, end: 0 } : spanOf(node);
    let place: YamlPlace = { key: whole, value: whole };
    for (const [depth, step] of path.entries()) {
      const next = this.entry(node, step);
      if (next === undefined) {
        const container = node === null ? place.value : spanOf(node);
        return { place: { key: container, value: container }, text: container, depth };
      }
      place = next.place;
      node = this.resolve(next.node);
    }
    return { place, text: node === null ? place.value : spanOf(node), depth: path.length };
  }

  /** Returns the path of the scalar (key or value) at the offset, or undefined if there is none. */
  pathAt(offset: number): YamlPath | undefined {
    const path: (string | number)[] = [];
    let node: Node | null = this.document.contents;
    while (isMap(node) || isSeq(node)) {
      const entry = childAt(node, offset);
      if (entry === undefined) return undefined;
      path.push(entry.step);
      node = entry.node;
    }
    return contains(node, offset) ? path : undefined;
  }

  private entry(node: Node | null, step: string | number): { node: Node | null; place: YamlPlace } | undefined {
    if (isSeq(node) && typeof step === 'number') {
      if (step >= node.items.length) return undefined;
      const item = asNode(node.items[step]);
      const span = item === null ? spanOf(node) : spanOf(item);
      return { node: item, place: { key: span, value: span } };
    }
    if (!isMap(node) || typeof step !== 'string') return undefined;
    const own = node.items.findLast(
      (pair) => !isMergeKey(pair.key) && keyText(this.resolve(asNode(pair.key))) === step,
    );
    if (own !== undefined) {
      const keySpan = spanOf(asNode(own.key) ?? node);
      const value = asNode(own.value);
      return { node: value, place: { key: keySpan, value: value === null ? keySpan : spanOf(value) } };
    }
    for (const merged of mergePairs(node)) {
      const source = this.resolve(asNode(merged.value));
      for (const mapping of isSeq(source) ? source.items : [source]) {
        const found = this.entry(this.resolve(asNode(mapping)), step);
        if (found !== undefined) return found;
      }
    }
    return undefined;
  }

  private resolve(node: Node | null): Node | null {
    return isAlias(node) ? (node.resolve(this.document) ?? null) : node;
  }
}

function childAt(
  container: YAMLMap | YAMLSeq,
  offset: number,
): { readonly step: string | number; readonly node: Node | null } | undefined {
  if (isSeq(container)) {
    const step = container.items.findIndex((item) => contains(asNode(item), offset));
    return step < 0 ? undefined : { step, node: asNode(container.items[step]) };
  }
  for (const { key, value } of container.items) {
    const step = isMergeKey(key) ? '<<' : (keyText(asNode(key)) ?? '');
    for (const node of [asNode(key), asNode(value)]) if (contains(node, offset)) return { step, node };
  }
  return undefined;
}

function contains(node: Node | null, offset: number): boolean {
  if (node === null) return false;
  const { start, end } = spanOf(node);
  return start <= offset && offset < end;
}

/** Returns the pairs with the key `<<`, highest precedence first. */
export function mergePairs(map: YAMLMap): Pair[] {
  return map.items.filter((pair) => isMergeKey(pair.key));
}

export function isMergeKey(key: unknown): boolean {
  return isScalar(key) && typeof key.value === 'symbol';
}

/** Returns a scalar key as it is written, or undefined if the key is empty or a collection. */
export function keyText(key: Node | null): string | undefined {
  if (!isScalar(key) || key.source === undefined) return undefined;
  return key.source === '' && key.type === 'PLAIN' ? undefined : key.source;
}

export function asNode(value: unknown): Node | null {
  return isScalar(value) || isMap(value) || isSeq(value) || isAlias(value) ? value : null;
}

export function spanOf(node: Node | Alias): Span {
  return { start: node.range?.[0] ?? 0, end: node.range?.[1] ?? 0 };
}

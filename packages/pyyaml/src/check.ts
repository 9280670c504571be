/** Checks a parsed text beyond its grammar, and prepares its mappings for the library's conversion to values. */

import { type Alias, isAlias, isMap, isScalar, isSeq, type Node, type YAMLMap } from 'yaml';
import { asNode, isMergeKey, keyText, mergePairs, spanOf, type Span } from './document.js';
import type { RepeatedKey, YamlProblem } from './problem.js';
import { fitsTag } from './scalar-tags.js';

/** Limit of values per document; a value behind an alias counts each time. A large site's file has a few thousand. */
const MAX_VALUES = 250_000;
/** Limit of nested values, those behind aliases included. */
const MAX_DEPTH = 400;
const COLLECTION_TAGS = new Set(['!', 'tag:yaml.org,2002:map', 'tag:yaml.org,2002:seq']);

/** The extent of a value with everything behind its aliases. */
interface Extent {
  readonly values: number;
  readonly levels: number;
}

/** A value that can have an anchor. */
type Target = Exclude<Node, Alias>;

interface Total {
  values: number;
  levels: number;
}

const LEAF: Extent = { values: 1, levels: 0 };

/** Checks one document, once. `fatal` is set if its value must not be computed. */
export class DocumentCheck {
  readonly problems: YamlProblem[] = [];
  readonly repeatedKeys: RepeatedKey[] = [];
  fatal = false;
  private readonly anchors = new Map<string, Target>();
  /** The extents of the values with anchors. */
  private readonly extents = new Map<Node, Extent>();
  /** The place of the value that is visited. */
  private readonly path: (string | number)[] = [];

  visit(node: Node | null): Extent {
    if (node === null || this.fatal) return LEAF;
    if (isAlias(node)) return this.visitAlias(node);
    const { anchor } = node;
    if (anchor !== undefined) this.addAnchor(anchor, node);
    this.checkTag(node);
    const extent = isScalar(node) ? LEAF : this.withChildren(node);
    if (anchor !== undefined) this.extents.set(node, extent);
    this.checkExtent(extent, node);
    return extent;
  }

  private addAnchor(name: string, node: Target): void {
    if (this.anchors.has(name))
      this.refuse(spanOf(node), `the anchor &${name} once`, 'it a second time', 'rename one of the two');
    this.anchors.set(name, node);
  }

  private withChildren(node: Node): Extent {
    if (isMap(node)) return this.visitMap(node);
    const extent = { ...LEAF };
    if (isSeq(node)) for (const [index, item] of node.items.entries()) add(extent, this.visitAt(index, asNode(item)));
    return extent;
  }

  private visitAt(step: string | number, node: Node | null): Extent {
    this.path.push(step);
    const extent = this.visit(node);
    this.path.pop();
    return extent;
  }

  private visitAlias(alias: Alias): Extent {
    const name = alias.source;
    const target = this.anchors.get(name);
    const extent = target === undefined ? undefined : this.extents.get(target);
    if (target === undefined) this.refuse(spanOf(alias), `an anchor &${name} above this line`, 'none');
    else if (extent === undefined)
      this.refuse(spanOf(alias), 'a value that does not contain itself', `*${name} inside of &${name}`);
    else bind(alias, target);
    return extent ?? LEAF;
  }

  private visitMap(map: YAMLMap): Extent {
    const seen = new Map<string, Span[]>();
    const extent = { ...LEAF };
    for (const pair of map.items) {
      const keyNode = asNode(pair.key);
      if (isMergeKey(keyNode)) {
        this.visitMerge(asNode(pair.value), map, extent);
        continue;
      }
      const key = this.checkKey(keyNode, map);
      if (key === undefined) continue;
      if (isScalar(keyNode)) {
        // The library would use the resolved value, e.g. 8 for the key `010`, and would merge at the key `!!str <<`.
        keyNode.value = key;
        keyNode.type = 'QUOTE_DOUBLE';
      }
      this.path.push(key);
      const places = seen.get(key) ?? [];
      places.push(spanOf(keyNode ?? map));
      seen.set(key, places);
      add(extent, this.visit(asNode(pair.value)));
      this.path.pop();
    }
    for (const [key, places] of seen) this.addRepeated(key, places);
    const pairs = mergePairs(map);
    // PyYAML puts merged keys first, and the last merge key takes precedence. The library puts them at the merge key's
    // place, and the first takes precedence.
    if (pairs.length > 0) map.items = [...pairs.reverse(), ...map.items.filter((pair) => !isMergeKey(pair.key))];
    return extent;
  }

  private addRepeated(key: string, places: readonly Span[]): void {
    const used = places.at(-1);
    if (used === undefined || places.length === 1) return;
    this.repeatedKeys.push({ path: [...this.path, key], ignored: places.slice(0, -1), used });
  }

  private visitMerge(value: Node | null, map: YAMLMap, extent: Total): void {
    this.path.push('<<');
    add(extent, this.visit(value));
    if (!this.isMergeable(value))
      this.refuse(spanOf(value ?? map), 'a mapping, or a list of mappings, to merge', 'something else');
    this.path.pop();
  }

  private isMergeable(value: Node | null): boolean {
    const source = this.target(value);
    return isMap(source) || (isSeq(source) && source.items.every((item) => isMap(this.target(asNode(item)))));
  }

  private target(node: Node | null): Node | undefined {
    return isAlias(node) ? this.anchors.get(node.source) : (node ?? undefined);
  }

  private checkKey(node: Node | null, map: YAMLMap): string | undefined {
    const key = keyText(this.target(node) ?? null);
    if (key === undefined) this.refuse(spanOf(node ?? map), 'a text as the key', 'something else');
    else this.visitAt(key, node);
    return key;
  }

  private checkTag(node: Node): void {
    const tag = 'tag' in node ? node.tag : undefined;
    if (tag === undefined) return;
    if (isScalar(node)) {
      if (fitsTag(tag, node.source ?? '')) return;
      const hint = 'remove the tag, or write a value that fits it';
      this.add(spanOf(node), 'a value of a plain type', `the tag ${tag}`, hint);
    } else if (!COLLECTION_TAGS.has(tag))
      this.add(spanOf(node), 'a plain mapping or list', `the tag ${tag}`, 'remove the tag');
  }

  private checkExtent({ values, levels }: Extent, node: Node): void {
    if (this.fatal) return;
    if (levels + this.path.length > MAX_DEPTH)
      this.refuse(spanOf(node), `at most ${MAX_DEPTH} levels of nesting`, 'more');
    else if (values > MAX_VALUES) {
      const expected = `at most ${MAX_VALUES} values, those repeated by aliases included`;
      this.refuse(spanOf(node), expected, 'more', 'remove aliases that multiply each other');
    }
  }

  /** Adds a problem that leaves the document without a value. */
  private refuse(span: Span, expected: string, found: string, hint?: string): void {
    this.add(span, expected, found, hint);
    this.fatal = true;
  }

  private add(span: Span, expected: string, found: string, hint?: string): void {
    this.problems.push({ span, path: [...this.path], expected, found, hint });
  }
}

/** Fixes the value of an alias. The library would search the anchors before it, whose order `visitMap` changes. */
function bind(alias: Alias, target: Target): void {
  alias.resolve = () => target;
  alias.toJSON = (_arg, context): unknown => context?.anchors.get(target)?.res ?? target.toJSON('', context);
}

/** Adds the extent of a child to that of its parent. */
function add(total: Total, { values, levels }: Extent): void {
  total.values += values;
  total.levels = Math.max(total.levels, levels + 1);
}

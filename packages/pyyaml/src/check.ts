/** Checks a parsed text beyond its grammar, and prepares its mappings for the library's conversion to values. */

import type { Alias, Node, YAMLMap } from 'yaml';
import { asNode, isMergeKey, keyText, mergePairs, spanOf, type Span, type YamlPath } from './document.js';
import { isAlias, isMap, isScalar, isSeq } from './library.js';
import type { YamlProblem } from './problem.js';
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

const LEAF: Extent = { values: 1, levels: 0 };

/** Checks one document, once. `fatal` is set if its value must not be computed. */
export class DocumentCheck {
  readonly problems: YamlProblem[] = [];
  fatal = false;
  private readonly anchors = new Map<string, Node>();
  private readonly extents = new Map<Node, Extent>();

  visit(node: Node | null, path: YamlPath): Extent {
    if (node === null || this.fatal) return LEAF;
    if (isAlias(node)) return this.visitAlias(node, path);
    const anchor = isScalar(node) || isMap(node) || isSeq(node) ? node.anchor : undefined;
    if (anchor !== undefined) this.addAnchor(anchor, node, path);
    this.checkTag(node, path);
    const extent = this.withChildren(node, path);
    this.extents.set(node, extent);
    this.checkExtent(extent, node, path);
    return extent;
  }

  private addAnchor(name: string, node: Node, path: YamlPath): void {
    if (this.anchors.has(name))
      this.refuse(spanOf(node), path, `the anchor &${name} once`, 'it a second time', 'rename one of the two');
    this.anchors.set(name, node);
  }

  private withChildren(node: Node, path: YamlPath): Extent {
    if (isMap(node)) return this.visitMap(node, path);
    if (!isSeq(node)) return LEAF;
    return sum(node.items.map((item, index) => this.visit(asNode(item), [...path, index])));
  }

  private visitAlias(alias: Alias, path: YamlPath): Extent {
    const name = alias.source;
    const target = this.anchors.get(name);
    const extent = target === undefined ? undefined : this.extents.get(target);
    if (target === undefined) this.refuse(spanOf(alias), path, `an anchor &${name} above this line`, 'none');
    else if (extent === undefined)
      this.refuse(spanOf(alias), path, 'a value that does not contain itself', `*${name} inside of &${name}`);
    return extent ?? LEAF;
  }

  private visitMap(map: YAMLMap, path: YamlPath): Extent {
    const seen = new Set<string>();
    const extents: Extent[] = [];
    for (const pair of map.items) {
      const keyNode = asNode(pair.key);
      if (isMergeKey(keyNode)) continue;
      const key = this.checkKey(keyNode, map, path);
      if (key === undefined) continue;
      if (isScalar(keyNode)) {
        // The library would use the resolved value, e.g. 8 for the key `010`, and would merge at the key `!!str <<`.
        keyNode.value = key;
        keyNode.type = 'QUOTE_DOUBLE';
      }
      if (seen.has(key)) {
        const hint = 'remove or rename one of the two';
        this.add(spanOf(keyNode ?? map), [...path, key], 'each key once in a mapping', 'it a second time', hint);
      }
      seen.add(key);
      extents.push(this.visit(asNode(pair.value), [...path, key]));
    }
    return sum([...extents, ...this.visitMerges(map, path)]);
  }

  private visitMerges(map: YAMLMap, path: YamlPath): Extent[] {
    const pairs = mergePairs(map);
    const extents = pairs.map((pair) => {
      const value = asNode(pair.value);
      const extent = this.visit(value, [...path, '<<']);
      if (!this.isMergeable(value)) {
        const expected = 'a mapping, or a list of mappings, to merge';
        this.refuse(spanOf(value ?? map), [...path, '<<'], expected, 'something else');
      }
      return extent;
    });
    // PyYAML puts merged keys first, and the last merge key takes precedence. The library puts them at the merge key's
    // place, and the first takes precedence.
    if (pairs.length > 0) map.items = [...pairs.reverse(), ...map.items.filter((pair) => !isMergeKey(pair.key))];
    return extents;
  }

  private isMergeable(value: Node | null): boolean {
    const source = this.target(value);
    return isMap(source) || (isSeq(source) && source.items.every((item) => isMap(this.target(asNode(item)))));
  }

  private target(node: Node | null): Node | undefined {
    return isAlias(node) ? this.anchors.get(node.source) : (node ?? undefined);
  }

  private checkKey(node: Node | null, map: YAMLMap, path: YamlPath): string | undefined {
    const key = keyText(this.target(node) ?? null);
    if (key === undefined) this.refuse(spanOf(node ?? map), path, 'a text as the key', 'something else');
    else if (node !== null) this.visit(node, [...path, key]);
    return key;
  }

  private checkTag(node: Node, path: YamlPath): void {
    const tag = 'tag' in node ? node.tag : undefined;
    if (tag === undefined) return;
    if (isScalar(node)) {
      if (fitsTag(tag, node.source ?? '')) return;
      const hint = 'remove the tag, or write a value that fits it';
      this.add(spanOf(node), path, 'a value of a plain type', `the tag ${tag}`, hint);
    } else if (!COLLECTION_TAGS.has(tag))
      this.add(spanOf(node), path, 'a plain mapping or list', `the tag ${tag}`, 'remove the tag');
  }

  private checkExtent({ values, levels }: Extent, node: Node, path: YamlPath): void {
    if (this.fatal) return;
    if (levels + path.length > MAX_DEPTH)
      this.refuse(spanOf(node), path, `at most ${MAX_DEPTH} levels of nesting`, 'more');
    else if (values > MAX_VALUES) {
      const expected = `at most ${MAX_VALUES} values, those repeated by aliases included`;
      this.refuse(spanOf(node), path, expected, 'more', 'remove aliases that multiply each other');
    }
  }

  /** Adds a problem that leaves the document without a value. */
  private refuse(span: Span, path: YamlPath, expected: string, found: string, hint?: string): void {
    this.add(span, path, expected, found, hint);
    this.fatal = true;
  }

  private add(span: Span, path: YamlPath, expected: string, found: string, hint?: string): void {
    this.problems.push({ span, path, expected, found, hint });
  }
}

function sum(children: readonly Extent[]): Extent {
  return children.reduce(
    (all, { values, levels }) => ({ values: all.values + values, levels: Math.max(all.levels, levels + 1) }),
    LEAF,
  );
}

/**
 * Composes the nodes of a document. The library composes a document in one go, which takes 60 ms for 45,000 lines, so
 * the entries of long collections are composed in groups and then added to their collections.
 */

import type { CST, Document, Node, Pair, Range, YAMLMap, YAMLSeq } from 'yaml';
import { Composer, isMap, isSeq, YAMLParseError } from 'yaml';
import { scalarTags } from './scalar-tags.js';

type Collection = CST.BlockMap | CST.BlockSequence | CST.FlowCollection;
type Item = Collection['items'][number];

/** A collection whose entries are composed in groups. */
interface Long {
  readonly token: Collection;
  readonly items: readonly Item[];
  /** Offset after its last entry. */
  readonly end: number;
  /** Long collections among its entries. */
  readonly nested: readonly Long[];
}

/** Composes the first document, and yields after each part of about this length; a second document is an error. */
export function* compose(
  tokens: readonly CST.Token[],
  text: string,
  partLength: number,
): Generator<undefined, Document.Parsed> {
  const documents = tokens.filter((token) => token.type === 'document');
  const [first] = documents;
  const isPlain = documents.length === 1 && !tokens.some(({ type }) => type === 'directive');
  const long = isPlain && isCollection(first?.value) ? longOf(first.value, text.length, partLength) : undefined;
  if (long === undefined) return composeWhole(tokens, text);
  leaveOut(long);
  const document = composeWhole(tokens, text);
  const { contents } = document;
  const isComplete =
    document.errors.length === 0 && isNodeOf(contents, long.token) && (yield* addEntries(contents, long, partLength));
  restore(long);
  // The errors of a part would lack their context.
  return isComplete ? document : composeWhole(tokens, text);
}

function composeWhole(tokens: readonly CST.Token[], text: string): Document.Parsed {
  const composer = new Composer({
    schema: 'failsafe',
    customTags: scalarTags(),
    merge: true,
    prettyErrors: false,
    uniqueKeys: false,
    resolveKnownTags: false,
  });
  const [document, second] = composer.compose(tokens, true, text.length);
  if (document === undefined) throw new Error('the YAML composer returned no document');
  if (second !== undefined) {
    const [start, end] = second.range;
    document.errors.push(new YAMLParseError([start, end], 'MULTIPLE_DOCS', 'Source contains multiple documents'));
  }
  return document;
}

/** Returns the collection and the long ones in it; undefined if it is short or has an anchor or a tag. */
function longOf(token: Collection, end: number, partLength: number): Long | undefined {
  if (end - token.offset <= partLength) return undefined;
  const items: readonly Item[] = token.items;
  const nested = items.flatMap((item, index) => {
    const { value, start, sep = [] } = item;
    if (!isCollection(value) || [...start, ...sep].some(({ type }) => type === 'anchor' || type === 'tag')) return [];
    const next = items[index + 1];
    return longOf(value, next === undefined ? end : (startOf(next) ?? end), partLength) ?? [];
  });
  return { token, items, end, nested };
}

/** Removes the entries. A block collection keeps an empty comment at its end, so that its extent stays the same. */
function leaveOut({ token, end, nested }: Long): void {
  nested.forEach(leaveOut);
  if (token.type === 'flow-collection') token.items = [];
  else token.items = [endAt(end)];
}

function restore({ token, items, nested }: Long): void {
  nested.forEach(restore);
  token.items = [...items] as typeof token.items;
}

function endAt(offset: number): CST.BlockMap['items'][number] & CST.BlockSequence['items'][number] {
  return { start: [{ type: 'comment', offset, indent: 0, source: '' }] };
}

/** Composes the entries in groups and adds them to the node. Returns false if one has an error. */
function* addEntries(node: YAMLMap | YAMLSeq, long: Long, partLength: number): Generator<undefined, boolean> {
  const { token, items, nested } = long;
  let range: Range | null | undefined;
  let from = 0;
  while (from < items.length) {
    const begin = startOf(items[from]) ?? token.offset;
    let to = from + 1;
    while (to < items.length && (startOf(items[to]) ?? begin) - begin < partLength) to += 1;
    yield;
    const value = groupOf(token, items.slice(from, to), begin);
    const document = composeWhole([{ type: 'document', offset: begin, start: [], value }], '');
    const { contents, errors } = document;
    if (errors.length > 0) return false;
    if (isMap(contents) && isMap(node)) node.items.push(...contents.items);
    else if (isSeq(contents) && isSeq(node)) node.items.push(...contents.items);
    else return false;
    ({ range } = contents);
    from = to;
  }
  for (const child of nested) {
    const found = node.items.map((item) => valueOf(item)).find((value) => isNodeOf(value, child.token));
    if (!isNodeOf(found, child.token) || !(yield* addEntries(found, child, partLength))) return false;
    if (found !== valueOf(node.items.at(-1)) || !isRange(range) || !isRange(found.range)) continue;
    // The collection ends with this entry, unless a comment follows.
    const [start, end, commentEnd] = range;
    const [, , entryEnd] = found.range;
    range = [start, entryEnd, commentEnd > end ? commentEnd : entryEnd];
  }
  // A flow collection has its brackets, which tell its extent.
  if (token.type !== 'flow-collection' && isRange(range)) node.range = [token.offset, range[1], range[2]];
  return true;
}

/** Returns a collection of some of the entries. */
function groupOf(token: Collection, items: readonly Item[], offset: number): Collection {
  if (token.type !== 'flow-collection') return { ...token, offset, items: [...items] } as Collection;
  const [head, ...others] = items as readonly CST.FlowCollection['items'][number][];
  if (head === undefined) return token;
  // The comma before an entry belongs to it.
  const start = head.start.filter(({ type }) => type !== 'comma');
  return { ...token, offset, items: [{ ...head, start }, ...others] as typeof token.items };
}

function startOf(item: Item | undefined): number | undefined {
  return (item?.start[0] ?? item?.key ?? item?.sep?.[0] ?? item?.value)?.offset;
}

function isCollection(token: CST.Token | null | undefined): token is Collection {
  return token?.type === 'block-map' || token?.type === 'block-seq' || token?.type === 'flow-collection';
}

function valueOf(item: unknown): unknown {
  return isPair(item) ? item.value : item;
}

function isPair(item: unknown): item is Pair<unknown, Node | null> {
  return typeof item === 'object' && item !== null && 'key' in item && 'value' in item;
}

function isRange(range: Range | null | undefined): range is Range {
  return range !== null && range !== undefined;
}

/** Returns true if the token is this collection's. */
function isNodeOf(value: unknown, token: Collection): value is YAMLMap | YAMLSeq {
  return (isMap(value) || isSeq(value)) && value.range?.[0] === token.offset;
}

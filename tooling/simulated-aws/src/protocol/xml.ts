/** Outputs as XML, and inputs of S3 in XML. */

import type { ServiceModel, Shape, ShapeRef } from './service-model.js';
import { InputProblem, isStructure, join, scalarOf, timestampText, type Structure, type Value } from './values.js';

export const XML_HEADER = '<?xml version="1.0" encoding="UTF-8"?>\n';

const ESCAPES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };

export function escapeXml(text: string): string {
  return text.replaceAll(/[&<>"]/g, (character) => ESCAPES[character] ?? character);
}

export function element(name: string, content: string, attributes = ''): string {
  return `<${name}${attributes}>${content}</${name}>`;
}

/** Writes outputs. Throws if an output has a member that Amazon has not published. */
export class XmlWriter {
  constructor(private readonly model: ServiceModel) {}

  /** Returns the elements of the members that `includes` selects. */
  members(shape: Shape, value: Structure, includes: (ref: ShapeRef) => boolean = () => true): string {
    return Object.entries(value)
      .map(([name, each]) => {
        if (each === undefined) return '';
        const ref = shape.members?.[name];
        if (ref === undefined) throw new Error(`the simulation answers with an unpublished member ${name}`);
        return includes(ref) ? this.member(ref.locationName ?? name, ref, each) : '';
      })
      .join('');
  }

  private member(name: string, ref: ShapeRef, value: Value): string {
    const shape = this.model.shape(ref);
    if (shape.type === 'map' && isStructure(value)) return this.entries(name, shape, value);
    if (shape.type !== 'list') return element(name, this.content(ref, shape, value));
    const { member, flattened = false } = shape;
    if (!Array.isArray(value) || member === undefined) throw new Error(`the simulation answers ${name} without a list`);
    const each = (item: Value): string => this.content(member, this.model.shape(member), item);
    if (flattened) {
      const itemName = member.locationName ?? name;
      return (value as readonly Value[]).map((item) => element(itemName, each(item))).join('');
    }
    const items = (value as readonly Value[]).map((item) => element(member.locationName ?? 'member', each(item)));
    return element(name, items.join(''));
  }

  private entries(name: string, { key, value: type, flattened = false }: Shape, value: Structure): string {
    if (key === undefined || type === undefined) throw new Error(`the map ${name} has no types`);
    const entries = Object.entries(value).map(([entry, each]) => {
      const text = each === undefined ? '' : this.member(type.locationName ?? 'value', type, each);
      return element(flattened ? name : 'entry', element(key.locationName ?? 'key', escapeXml(entry)) + text);
    });
    return flattened ? entries.join('') : element(name, entries.join(''));
  }

  private content(ref: ShapeRef, shape: Shape, value: Value): string {
    if (value instanceof Date) {
      return timestampText(value, ref.timestampFormat ?? shape.timestampFormat ?? 'iso8601');
    }
    if (value instanceof Uint8Array) return Buffer.from(value).toString('base64');
    if (isStructure(value)) return this.members(shape, value);
    if (typeof value === 'object') throw new Error(`the simulation answers with a list for ${ref.shape}`);
    if (shape.type === 'structure') throw new Error(`the simulation answers without a structure for ${ref.shape}`);
    return escapeXml(String(value));
  }
}

/** An element of a document. */
export interface XmlElement {
  readonly name: string;
  readonly children: readonly XmlElement[];
  readonly text: string;
}

const ENTITIES: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" };

/** Parses a document without declarations of types. Returns undefined if it is malformed. */
export function parseXml(source: string): XmlElement | undefined {
  const stack: { name: string; children: XmlElement[]; text: string }[] = [{ name: '', children: [], text: '' }];
  const tokens = source.replace(/^\uFEFF?\s*<\?[^?]*\?>/, '').matchAll(/<(\/?)([\w:.-]+)([^<>]*?)(\/?)>|([^<]+)|(<)/g);
  for (const [, closing, name = '', , selfClosing, text, stray] of tokens) {
    const top = stack.at(-1);
    if (stray !== undefined || top === undefined) return undefined;
    if (text !== undefined) top.text += unescapeXml(text);
    else if (closing === '/') {
      const ended = stack.pop();
      if (ended?.name !== name) return undefined;
      stack.at(-1)?.children.push(ended);
    } else if (selfClosing === '/') top.children.push({ name, children: [], text: '' });
    else stack.push({ name, children: [], text: '' });
  }
  const [root] = stack;
  return stack.length === 1 && root?.children.length === 1 && root.text.trim() === '' ? root.children[0] : undefined;
}

function unescapeXml(text: string): string {
  return text.replaceAll(/&(#x[\da-fA-F]+|#\d+|\w+);/g, (whole, name: string) => {
    if (name.startsWith('#x')) return String.fromCodePoint(Number.parseInt(name.slice(2), 16));
    if (name.startsWith('#')) return String.fromCodePoint(Number(name.slice(1)));
    return ENTITIES[name] ?? whole;
  });
}

/** Returns the input in an element. Throws `InputProblem` for unknown members and wrong types. */
export function readXml(model: ServiceModel, ref: ShapeRef, node: XmlElement, path: string): Value {
  const shape = model.shape(ref);
  if (shape.type === 'list') return readItems(model, shape, node.children, path);
  if (shape.type !== 'structure') return scalarOf(shape, node.text, path, ref.timestampFormat);
  const byWire = new Map(
    Object.entries(shape.members ?? {}).map(([name, member]) => [wireNameOf(model, name, member), { name, member }]),
  );
  const groups = new Map<string, XmlElement[]>();
  for (const child of node.children) groups.set(child.name, [...(groups.get(child.name) ?? []), child]);
  const entries = [...groups].map(([wire, nodes]): [string, Value] => {
    const own = join(path, wire);
    const known = byWire.get(wire);
    const [first] = nodes;
    if (known === undefined || first === undefined) {
      throw new InputProblem({ kind: 'unknown', path: own, message: `The element ${own} is not recognized` });
    }
    const inner = model.shape(known.member);
    if (inner.type === 'list' && inner.flattened === true) return [known.name, readItems(model, inner, nodes, own)];
    return [known.name, readXml(model, known.member, first, own)];
  });
  return Object.fromEntries(entries);
}

function wireNameOf(model: ServiceModel, name: string, ref: ShapeRef): string {
  const shape = model.shape(ref);
  const flat = shape.type === 'list' && shape.flattened === true ? shape.member?.locationName : undefined;
  return ref.locationName ?? flat ?? name;
}

function readItems(model: ServiceModel, { member }: Shape, nodes: readonly XmlElement[], path: string): Value {
  if (member === undefined) throw new Error(`the list at ${path} has no type`);
  return nodes.map((node, index) => readXml(model, member, node, join(path, String(index + 1))));
}

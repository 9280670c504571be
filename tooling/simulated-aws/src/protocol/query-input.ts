/** Reads the form-encoded inputs of the protocols `ec2` and `query`. */

import type { ServiceModel, Shape, ShapeRef } from './service-model.js';
import { checkConstraints, InputProblem, join, scalarOf, type Structure, type Value } from './values.js';

/** A parameter and those below it: `Tag.1.Key=a` is a node `Tag` with a node `1` with a node `Key`. */
interface Node {
  text?: string;
  readonly below: Map<string, Node>;
  /** Set when a member of the type has read it. */
  used: boolean;
}

/** Parameters of the protocol itself. */
const COMMON = /^(?:Action|Version|AUTHPARAMS|X-Amz-.*)$/;

/**
 * Returns the input that the parameters describe. Throws `InputProblem` for unknown and missing parameters, and for
 * values that do not fit their types.
 */
export function readQuery(model: ServiceModel, input: ShapeRef | undefined, parameters: URLSearchParams): Structure {
  const root: Node = { below: new Map(), used: true };
  for (const [name, text] of parameters) if (!COMMON.test(name)) add(root, name.split('.'), text);
  const reader = new QueryReader(model);
  const value = reader.structure(model.shape(input), root, '');
  refuseUnused(root, '');
  if (input !== undefined) checkConstraints(model, input, value, '');
  return value;
}

function add(root: Node, names: readonly string[], text: string): void {
  let node = root;
  for (const name of names) {
    const next: Node = node.below.get(name) ?? { below: new Map(), used: false };
    node.below.set(name, next);
    node = next;
  }
  node.text = text;
}

function refuseUnused(node: Node, path: string): void {
  for (const [name, each] of node.below) {
    const own = join(path, name);
    if (!each.used) {
      throw new InputProblem({ kind: 'unknown', path: own, message: `The parameter ${own} is not recognized` });
    }
    refuseUnused(each, own);
  }
}

class QueryReader {
  constructor(private readonly model: ServiceModel) {}

  structure(shape: Shape, node: Node, path: string): Structure {
    const entries = Object.entries(shape.members ?? {}).flatMap(([name, ref]): [string, Value][] => {
      const wire = this.wireName(name, ref);
      const below = node.below.get(wire);
      if (below === undefined) return [];
      const value = this.value(ref, below, join(path, wire));
      return value === undefined ? [] : [[name, value]];
    });
    return Object.fromEntries(entries);
  }

  private value(ref: ShapeRef, node: Node, path: string): Value | undefined {
    const shape = this.model.shape(ref);
    node.used = true;
    if (shape.type === 'structure') return this.structure(shape, node, path);
    if (shape.type === 'list') return this.list(shape, node, path);
    if (shape.type === 'map') return this.map(shape, node, path);
    return node.text === undefined ? undefined : scalarOf(shape, node.text, path, ref.timestampFormat);
  }

  private list(shape: Shape, node: Node, path: string): Value | undefined {
    const { member } = shape;
    if (member === undefined) throw new Error(`the list at ${path} has no type`);
    const isFlat = this.isEc2 || shape.flattened === true;
    const wrapper = isFlat ? undefined : node.below.get(member.locationName ?? 'member');
    if (wrapper !== undefined) wrapper.used = true;
    // An empty value is an empty list.
    if (node.text === '' && node.below.size === 0) return [];
    const items = [...(wrapper ?? node).below].filter(([index]) => /^[1-9]\d*$/.test(index));
    const sorted = items.sort(([a], [b]) => Number(a) - Number(b));
    return sorted.flatMap(([index, each]) => {
      const value = this.value(member, each, join(path, index));
      return value === undefined ? [] : [value];
    });
  }

  private map(shape: Shape, node: Node, path: string): Value {
    const entries = [...node.below].map(([index, each]): [string, Value] => {
      each.used = true;
      const key = each.below.get(shape.key?.locationName ?? 'key');
      const value = each.below.get(shape.value?.locationName ?? 'value');
      if (key?.text === undefined || value === undefined || shape.value === undefined) {
        const entry = join(path, index);
        throw new InputProblem({ kind: 'missing', path: entry, message: `The entry ${entry} has no key or value` });
      }
      key.used = true;
      return [key.text, this.value(shape.value, value, join(path, index)) ?? ''];
    });
    return Object.fromEntries(entries);
  }

  private get isEc2(): boolean {
    return this.model.metadata.protocol === 'ec2';
  }

  private wireName(name: string, ref: ShapeRef): string {
    const shape = this.model.shape(ref);
    if (!this.isEc2) {
      const flatName = shape.flattened === true ? shape.member?.locationName : undefined;
      return flatName ?? ref.locationName ?? name;
    }
    if (ref.queryName !== undefined) return ref.queryName;
    const wire = ref.locationName ?? name;
    return wire.slice(0, 1).toUpperCase() + wire.slice(1);
  }
}

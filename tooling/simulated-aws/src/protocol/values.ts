/** Values of inputs and outputs, by their types in Amazon's definitions. */

import type { ServiceModel, Shape, ShapeRef, TimestampFormat } from './service-model.js';

/** A value as the SDKs represent it. */
export type Value =
  string | number | boolean | Date | Uint8Array | readonly Value[] | { readonly [name: string]: Value | undefined };

export type Structure = { readonly [name: string]: Value | undefined };

export function isStructure(value: unknown): value is Structure {
  const isObject = typeof value === 'object' && value !== null;
  return isObject && !Array.isArray(value) && !(value instanceof Date) && !(value instanceof Uint8Array);
}

/** A reason why an input is refused. */
export interface Problem {
  readonly kind: 'missing' | 'unknown' | 'type' | 'constraint';
  /** e.g. `TagSpecification.1.Tag.2.Key`. */
  readonly path: string;
  readonly message: string;
}

export class InputProblem extends Error {
  constructor(readonly problem: Problem) {
    super(problem.message);
    this.name = 'InputProblem';
  }
}

/** Converts text from a query or a header to a scalar of the type. Throws `InputProblem` if it does not fit. */
export function scalarOf(shape: Shape, text: string, path: string, format?: TimestampFormat): Value {
  const fail = (): InputProblem =>
    new InputProblem({ kind: 'type', path, message: `Value (${text}) for parameter ${path} is invalid` });
  switch (shape.type) {
    case 'boolean': {
      if (text !== 'true' && text !== 'false') throw fail();
      return text === 'true';
    }
    case 'integer':
    case 'long': {
      if (!/^-?\d{1,19}$/.test(text)) throw fail();
      return Number(text);
    }
    case 'float':
    case 'double': {
      if (!/^-?\d+(\.\d+)?([eE][+-]?\d+)?$/.test(text)) throw fail();
      return Number(text);
    }
    case 'timestamp': {
      const isNumber = format === 'unixTimestamp' || /^\d+(\.\d+)?$/.test(text);
      const date = new Date(isNumber ? Number(text) * 1000 : text);
      if (Number.isNaN(date.getTime())) throw fail();
      return date;
    }
    case 'blob': {
      if (!/^[A-Za-z0-9+/\s]*={0,2}\s*$/.test(text)) throw fail();
      return Buffer.from(text, 'base64');
    }
    case 'string':
    case 'character': {
      return text;
    }
    default: {
      throw fail();
    }
  }
}

/**
 * Checks a decoded value against the constraints of its type: required members, enumerations, lengths, ranges and
 * patterns. Throws `InputProblem`.
 */
export function checkConstraints(model: ServiceModel, ref: ShapeRef, value: Value, path: string): void {
  const shape = model.shape(ref);
  if (isStructure(value) && shape.type === 'structure') checkMembers(model, shape, value, path);
  else if (isStructure(value)) {
    for (const [name, each] of Object.entries(value)) {
      if (shape.key !== undefined) checkConstraints(model, shape.key, name, `${path}.key`);
      if (shape.value !== undefined && each !== undefined) checkConstraints(model, shape.value, each, join(path, name));
    }
  } else if (Array.isArray(value)) {
    checkSize(shape, value.length, path);
    const { member } = shape;
    if (member === undefined) return;
    for (const [index, each] of (value as readonly Value[]).entries()) {
      checkConstraints(model, member, each, join(path, String(index + 1)));
    }
  } else checkScalar(shape, value, path);
}

function checkMembers(
  model: ServiceModel,
  { members = {}, required = [] }: Shape,
  value: Structure,
  path: string,
): void {
  const lacking = required.find((name) => value[name] === undefined);
  if (lacking !== undefined) {
    const name = join(path, lacking);
    throw new InputProblem({ kind: 'missing', path: name, message: `The request must contain the parameter ${name}` });
  }
  for (const [name, each] of Object.entries(value)) {
    const ref = members[name];
    if (ref !== undefined && each !== undefined) checkConstraints(model, ref, each, join(path, name));
  }
}

function checkScalar(shape: Shape, value: Value, path: string): void {
  if (typeof value === 'number') checkSize(shape, value, path);
  if (value instanceof Uint8Array) checkSize(shape, value.length, path);
  if (typeof value !== 'string') return;
  const fail = (reason: string): InputProblem => {
    const message = `Value (${value}) for parameter ${path} is invalid. ${reason}`;
    return new InputProblem({ kind: 'constraint', path, message });
  };
  checkSize(shape, value.length, path);
  if (shape.enum !== undefined && !shape.enum.includes(value)) throw fail(`Expected one of: ${shape.enum.join(', ')}`);
  if (shape.pattern !== undefined && !patternOf(shape.pattern).test(value)) throw fail(`Expected: ${shape.pattern}`);
}

function checkSize({ min = -Infinity, max = Infinity }: Shape, size: number, path: string): void {
  if (size >= min && size <= max) return;
  const message = `The size or value ${size} of parameter ${path} is invalid. It must be between ${min} and ${max}`;
  throw new InputProblem({ kind: 'constraint', path, message });
}

const patterns = new Map<string, RegExp>();

/** Patterns are those of Java, which match the whole value. */
function patternOf(source: string): RegExp {
  let pattern = patterns.get(source);
  if (pattern === undefined) {
    pattern = new RegExp(`^(?:${source})$`, 'su');
    patterns.set(source, pattern);
  }
  return pattern;
}

export function join(path: string, name: string): string {
  return path === '' ? name : `${path}.${name}`;
}

/** Writes a time in a format of AWS. */
export function timestampText(date: Date, format: TimestampFormat): string {
  if (format === 'rfc822') return date.toUTCString();
  return format === 'iso8601' ? date.toISOString() : String(date.getTime() / 1000);
}

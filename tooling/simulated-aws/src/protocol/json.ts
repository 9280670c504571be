/** Inputs and outputs in JSON, of the protocols `json` and `rest-json`. */

import type { ServiceModel, ShapeRef } from './service-model.js';
import { InputProblem, isStructure, join, scalarOf, timestampText, type Structure, type Value } from './values.js';

/** Returns the input in a JSON value. Throws `InputProblem` for unknown members and wrong types. */
export function readJson(model: ServiceModel, ref: ShapeRef, json: unknown, path: string): Value | undefined {
  if (json === undefined || json === null) return undefined;
  const shape = model.shape(ref);
  const fail = (): InputProblem => {
    const message = `The value of ${path === '' ? 'the body' : path} is not of the type ${shape.type}`;
    return new InputProblem({ kind: 'type', path, message });
  };
  switch (shape.type) {
    case 'structure': {
      if (!isJsonRecord(json)) throw fail();
      return readMembers(model, ref, json, path);
    }
    case 'map': {
      const { value } = shape;
      if (!isJsonRecord(json) || value === undefined) throw fail();
      const entries = Object.entries(json).map(([key, each]) => [key, readJson(model, value, each, join(path, key))]);
      return Object.fromEntries(entries) as Structure;
    }
    case 'list': {
      const { member } = shape;
      if (!Array.isArray(json) || member === undefined) throw fail();
      return (json as readonly unknown[]).flatMap((each, index) => {
        const value = readJson(model, member, each, join(path, String(index + 1)));
        return value === undefined ? [] : [value];
      });
    }
    case 'boolean': {
      if (typeof json !== 'boolean') throw fail();
      return json;
    }
    case 'integer':
    case 'long':
    case 'float':
    case 'double': {
      if (typeof json !== 'number' || (/integer|long/.test(shape.type) && !Number.isInteger(json))) throw fail();
      return json;
    }
    case 'timestamp': {
      if (typeof json !== 'number') throw fail();
      return new Date(json * 1000);
    }
    default: {
      if (typeof json !== 'string') throw fail();
      return scalarOf(shape, json, path);
    }
  }
}

function readMembers(
  model: ServiceModel,
  ref: ShapeRef,
  json: Readonly<Record<string, unknown>>,
  path: string,
): Structure {
  const members = Object.entries(model.shape(ref).members ?? {});
  const byWire = new Map(members.map(([name, member]) => [member.locationName ?? name, { name, member }]));
  const entries = Object.entries(json).map(([wire, each]): [string, Value | undefined] => {
    const own = join(path, wire);
    const known = byWire.get(wire);
    if (known === undefined) {
      throw new InputProblem({ kind: 'unknown', path: own, message: `The parameter ${own} is not recognized` });
    }
    return [known.name, readJson(model, known.member, each, own)];
  });
  return Object.fromEntries(entries);
}

function isJsonRecord(json: unknown): json is Readonly<Record<string, unknown>> {
  return typeof json === 'object' && json !== null && !Array.isArray(json);
}

/** Returns the JSON value of an output. Throws if the output has a member that Amazon has not published. */
export function writeJson(model: ServiceModel, ref: ShapeRef, value: Value): unknown {
  const shape = model.shape(ref);
  if (value instanceof Date) {
    const isNumber = (ref.timestampFormat ?? shape.timestampFormat ?? 'unixTimestamp') === 'unixTimestamp';
    return isNumber ? value.getTime() / 1000 : timestampText(value, 'iso8601');
  }
  if (value instanceof Uint8Array) return Buffer.from(value).toString('base64');
  if (Array.isArray(value)) {
    const { member } = shape;
    if (member === undefined) throw new Error(`the simulation answers with a list for ${ref.shape}`);
    return (value as readonly Value[]).map((each) => writeJson(model, member, each));
  }
  if (!isStructure(value)) return value;
  const entries = Object.entries(value).flatMap(([name, each]): [string, unknown][] => {
    if (each === undefined) return [];
    const member = shape.type === 'map' ? shape.value : shape.members?.[name];
    if (member === undefined) throw new Error(`the simulation answers with an unpublished ${ref.shape}.${name}`);
    const wire = shape.type === 'map' ? name : (member.locationName ?? name);
    return [[wire, writeJson(model, member, each)]];
  });
  return Object.fromEntries(entries);
}

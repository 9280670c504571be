/**
 * Holds bodies to Microsoft's own description of the API: the mappers with which its libraries write and read them. They say
 * which fields there are, of which types, and which must be there.
 */

import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { isJsonObject, type JsonValue } from '@nodepool/core';

interface MapperType {
  readonly name: string;
  readonly className?: string;
  readonly element?: Mapper;
  readonly value?: Mapper;
  readonly modelProperties?: Readonly<Record<string, Mapper>>;
}

interface Mapper {
  readonly serializedName?: string;
  readonly required?: boolean;
  readonly readOnly?: boolean;
  readonly type: MapperType;
}

type Mappers = Readonly<Record<string, Mapper>>;

/** What a body is: something that is asked for, where what only the cloud can say is left out, or an answer. */
export type Direction = 'request' | 'answer';

export class Validator {
  private constructor(private readonly mappers: Mappers) {}

  /** Of a package of Microsoft's that ships its mappers. */
  static of(packageName: '@azure/arm-compute-models' | '@azure/arm-network'): Validator {
    const load = createRequire(__filename);
    const file = join(dirname(load.resolve(packageName)), 'models', 'mappers.js');
    return new Validator(load(file) as Mappers);
  }

  /** What is wrong with a body, each with its place; nothing: it is right. */
  problems(className: string, body: JsonValue, direction: Direction): readonly string[] {
    const mapper = this.mappers[className];
    if (mapper === undefined) throw new Error(`there is no mapper ${className}`);
    const found: string[] = [];
    this.check(mapper, body, direction, className, found);
    return found;
  }

  private check(mapper: Mapper, value: JsonValue, direction: Direction, place: string, found: string[]): void {
    const { type } = mapper;
    if (value === null) return;
    if (type.name === 'Composite') this.checkComposite(type, value, direction, place, found);
    else if (type.name === 'Sequence') this.checkSequence(type, value, direction, place, found);
    else if (type.name === 'Dictionary') this.checkDictionary(type, value, direction, place, found);
    else if (!isScalar(type.name, value)) found.push(`${place} is not of type ${type.name}`);
  }

  private checkSequence(
    { element }: MapperType,
    value: JsonValue,
    direction: Direction,
    place: string,
    found: string[],
  ): void {
    if (!Array.isArray(value)) {
      found.push(`${place} is no list`);
      return;
    }
    if (element === undefined) return;
    (value as readonly JsonValue[]).forEach((item, index) => {
      this.check(element, item, direction, `${place}[${index}]`, found);
    });
  }

  private checkDictionary(
    type: MapperType,
    value: JsonValue,
    direction: Direction,
    place: string,
    found: string[],
  ): void {
    if (!isJsonObject(value)) {
      found.push(`${place} is no mapping`);
      return;
    }
    for (const [key, item] of Object.entries(value)) {
      if (type.value !== undefined) this.check(type.value, item, direction, `${place}.${key}`, found);
    }
  }

  private checkComposite(
    type: MapperType,
    value: JsonValue,
    direction: Direction,
    place: string,
    found: string[],
  ): void {
    const properties = type.modelProperties ?? this.mappers[type.className ?? '']?.type.modelProperties;
    if (properties === undefined) return;
    if (!isJsonObject(value)) {
      found.push(`${place} is no object`);
      return;
    }
    const known = new Map(Object.values(properties).map((mapper) => [mapper.serializedName ?? '', mapper]));
    for (const [path, item] of fieldsOf(value, known, '')) {
      const mapper = known.get(path);
      if (mapper === undefined) found.push(`${place} has no field ${path}`);
      else this.check(mapper, item, direction, `${place}.${path}`, found);
    }
    for (const [path, mapper] of known) {
      if (
        mapper.required === true &&
        mapper.readOnly !== true &&
        direction === 'request' &&
        at(value, path) === undefined
      ) {
        found.push(`${place} lacks ${path}`);
      }
    }
  }
}

/** Fields by their paths; a path that only leads to known ones is gone into. */
function fieldsOf(
  value: JsonValue,
  known: ReadonlyMap<string, Mapper>,
  prefix: string,
): readonly (readonly [string, JsonValue])[] {
  if (!isJsonObject(value)) return [];
  return Object.entries(value).flatMap(([key, item]) => {
    const path = prefix + key;
    const leads = !known.has(path) && [...known.keys()].some((one) => one.startsWith(`${path}.`));
    return leads ? fieldsOf(item, known, `${path}.`) : [[path, item] as const];
  });
}

function at(value: JsonValue, path: string): JsonValue | undefined {
  return path
    .split('.')
    .reduce<JsonValue | undefined>((inner, key) => (isJsonObject(inner) ? inner[key] : undefined), value);
}

function isScalar(name: string, value: JsonValue): boolean {
  if (name === 'Number') return typeof value === 'number';
  if (name === 'Boolean') return typeof value === 'boolean';
  if (name === 'any' || name === 'Object') return true;
  return typeof value === 'string';
}

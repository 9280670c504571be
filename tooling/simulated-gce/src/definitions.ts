/** Google's published definitions of an API, which validate the simulation's requests and answers. */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Validator } from '@nodepool/simulated-cloud';

export type Api = 'compute' | 'storage';

/** A type of a discovery document (https://developers.google.com/discovery/v1/type-format). */
interface Schema {
  readonly $ref?: string;
  readonly type?: string;
  readonly format?: string;
  readonly pattern?: string;
  readonly enum?: readonly string[];
  readonly minimum?: string;
  readonly maximum?: string;
  readonly required?: boolean;
  readonly repeated?: boolean;
  readonly location?: 'path' | 'query';
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly items?: Schema;
  readonly additionalProperties?: Schema;
}

export interface Method {
  readonly httpMethod: string;
  /** e.g. `/compute/v1/projects/{project}/zones/{zone}/instances`. */
  readonly path: string;
  /** Path of resumable uploads. */
  readonly uploadPath?: string;
  readonly parameters: Readonly<Record<string, Schema>>;
  readonly request?: string;
  readonly response?: string;
}

interface Document {
  readonly parameters: Readonly<Record<string, Schema>>;
  readonly methods: Readonly<Record<string, Method>>;
  readonly schemas: Readonly<Record<string, Schema>>;
}

const FORMATS: Readonly<Record<string, RegExp>> = {
  int64: /^-?\d{1,19}$/,
  uint64: /^\d{1,20}$/,
  byte: /^[A-Za-z0-9+/_-]*={0,2}$/,
};
const INTEGER_BOUNDS: Readonly<Record<string, readonly [number, number]>> = {
  int32: [-(2 ** 31), 2 ** 31 - 1],
  uint32: [0, 2 ** 32 - 1],
};

export class Definitions {
  private readonly document: Document;
  private readonly validator: Validator;

  constructor(api: Api) {
    const file = join(__dirname, '..', 'definitions', `${api}.json`);
    this.document = JSON.parse(readFileSync(file, 'utf8')) as Document;
    const $defs = Object.fromEntries(
      Object.entries(this.document.schemas).map(([name, schema]) => [name, jsonSchema(schema)]),
    );
    this.validator = new Validator($defs);
  }

  /** Returns a method, e.g. `instances.insert`. Throws if Google has not published it. */
  method(name: string): Method {
    const method = this.document.methods[name];
    if (method === undefined) throw new Error(`${name} is not in the published definitions`);
    return method;
  }

  /**
   * Returns the reason why a message is invalid, e.g. `disks/0/boot must be boolean`, or undefined if it conforms to
   * its type.
   */
  problemWith(message: unknown, type: string): string | undefined {
    return this.validator.problem(type, () => ({ $ref: `api#/$defs/${type}` }), message);
  }

  /** Returns the reason why path or query parameters of a method are invalid, or undefined if they are valid. */
  problemWithParameters(
    name: string,
    values: Readonly<Record<string, string>>,
    location: 'path' | 'query',
  ): string | undefined {
    const published = { ...this.document.parameters, ...this.method(name).parameters };
    for (const [key, text] of Object.entries(values)) {
      const schema = published[key];
      if (schema === undefined || (schema.location ?? 'query') !== location) return `Unknown parameter "${key}"`;
      const problem = this.validator.problem(`${name} ${key}`, () => jsonSchema(schema), valueOf(schema, text));
      if (problem !== undefined) return `Invalid value for parameter '${key}': '${text}' ${problem}`;
    }
    const missing = Object.entries(published).find(
      ([key, schema]) => schema.required === true && schema.location === location && !(key in values),
    );
    return missing === undefined ? undefined : `Required parameter: ${missing[0]}`;
  }
}

/** Parses a parameter, which is a string, according to its type. */
function valueOf({ type }: Schema, text: string): unknown {
  if (type === 'boolean') return text === 'true' || text === 'false' ? text === 'true' : text;
  return type === 'integer' && /^-?\d+$/.test(text) ? Number(text) : text;
}

/** Converts a type of a discovery document to JSON Schema. Unpublished fields are refused, as by Google. */
function jsonSchema(schema: Schema): object {
  const { $ref, type = 'object', format = '', properties, items, additionalProperties } = schema;
  if ($ref !== undefined) return { $ref: `api#/$defs/${$ref}` };
  if (type === 'any') return {};
  if (type === 'array') return { type, ...(items === undefined ? {} : { items: jsonSchema(items) }) };
  if (type === 'object') {
    const fields = Object.entries(properties ?? {}).map(([name, field]) => [name, jsonSchema(field)] as const);
    return {
      type,
      properties: Object.fromEntries(fields),
      additionalProperties: additionalProperties === undefined ? false : jsonSchema(additionalProperties),
    };
  }
  const [minimum, maximum] = INTEGER_BOUNDS[format] ?? [];
  const pattern = schema.pattern === undefined ? FORMATS[format]?.source : `^(?:${schema.pattern})$`;
  return {
    type,
    ...(schema.enum === undefined ? {} : { enum: schema.enum }),
    ...(pattern === undefined ? {} : { pattern }),
    ...bound('minimum', schema.minimum, minimum),
    ...bound('maximum', schema.maximum, maximum),
  };
}

function bound(name: 'minimum' | 'maximum', written: string | undefined, fromFormat: number | undefined): object {
  const value = written === undefined ? fromFormat : Number(written);
  return value === undefined ? {} : { [name]: value };
}

/** Microsoft's published definitions of its APIs, which validate the simulation's requests and answers. */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { isJsonObject, type JsonObject, type JsonValue } from '@nodepool/core';
import { Validator } from '@nodepool/simulated-cloud';

export type Service = 'compute' | 'network' | 'resources';

type Parameter = JsonObject & { readonly required: boolean };

export interface Operation {
  readonly method: string;
  /** e.g. `/subscriptions/{subscriptionId}/resourceGroups/{resourceGroupName}`. */
  readonly path: string;
  readonly url: Readonly<Record<string, Parameter>>;
  readonly query: Readonly<Record<string, Parameter>>;
  /** Schema of the body; undefined if the operation has none. */
  readonly request?: JsonObject;
  /** Schemas of the answers by status; null if an answer has no body. */
  readonly responses: Readonly<Record<string, JsonObject | null>>;
}

interface Document {
  readonly operations: Readonly<Record<string, Operation>>;
  readonly $defs: JsonObject;
}

const VERSION = /^20\d{2}-\d{2}-\d{2}$/;
/** Position in a list, in links to further pages. Clients send it back unchanged. */
const PAGE = '$skiptoken';

export class Definitions {
  private static readonly loaded = new Map<Service, Definitions>();
  private readonly document: Document;
  private readonly validator: Validator;

  /** Returns the definitions of a service, which all clouds share: their schemas are compiled once. */
  static of(service: Service): Definitions {
    const definitions = Definitions.loaded.get(service) ?? new Definitions(service);
    Definitions.loaded.set(service, definitions);
    return definitions;
  }

  private constructor(service: Service) {
    const file = join(__dirname, '..', 'definitions', `${service}.json`);
    this.document = JSON.parse(readFileSync(file, 'utf8')) as Document;
    this.validator = new Validator(closed(this.document.$defs) as JsonObject);
  }

  /** Returns an operation, e.g. `virtualMachines.get`. Throws if Microsoft has not published it. */
  operation(name: string): Operation {
    const operation = this.document.operations[name];
    if (operation === undefined) throw new Error(`${name} is not in the published definitions`);
    return operation;
  }

  /** Returns the reason why a body is refused, e.g. `properties lacks creationData`; undefined if it fits. */
  requestProblem(name: string, body: JsonValue | undefined): string | undefined {
    const { request } = this.operation(name);
    if (request === undefined) return body === undefined ? undefined : 'the operation has no body';
    return body === undefined ? 'the body is missing' : this.problem(`${name} request`, request, body);
  }

  /** Returns the reason why an answer does not conform to Azure's definitions, or undefined if it does. */
  answerProblem(name: string, status: number, body: unknown): string | undefined {
    const schema = this.operation(name).responses[String(status)];
    if (schema === undefined) return `status ${status} is not published`;
    if (body === undefined) return undefined;
    return schema === null ? `status ${status} has no body` : this.problem(`${name} ${status}`, schema, body);
  }

  /** Returns the reason why parameters of the path or the query are refused; undefined if they fit. */
  parameterProblem(name: string, where: 'url' | 'query', values: ReadonlyMap<string, string>): string | undefined {
    const published = this.operation(name)[where];
    for (const [key, text] of values) {
      const schema = published[key];
      if (schema === undefined && key === PAGE) continue;
      if (schema === undefined) return `unknown parameter ${key}`;
      if (key === 'api-version' && !VERSION.test(text)) return `api-version '${text}' is invalid`;
      const { required: _, ...type } = schema;
      const problem = this.problem(`${name} ${key}`, type, text);
      if (problem !== undefined) return `parameter ${key} '${text}' ${problem}`;
    }
    const missing = Object.entries(published).find(([key, { required }]) => required && !values.has(key));
    return missing === undefined ? undefined : `parameter ${missing[0]} is missing`;
  }

  private problem(id: string, schema: JsonObject, value: unknown): string | undefined {
    return this.validator.problem(id, () => closed(schema) as JsonObject, value);
  }
}

/** Closes schemas to unpublished fields, as the resource providers do, and adds the document to references. */
function closed(schema: JsonValue): JsonValue {
  if (Array.isArray(schema)) return (schema as readonly JsonValue[]).map(closed);
  if (!isJsonObject(schema)) return schema;
  const { $ref, ...rest } = schema;
  if (typeof $ref === 'string') return { $ref: `api${$ref}` };
  const inner = Object.fromEntries(Object.entries(rest).map(([key, value]) => [key, closed(value)]));
  return isJsonObject(rest['properties']) && rest['type'] === 'object'
    ? { ...inner, additionalProperties: false }
    : inner;
}

/** The OpenAPI document of the API, and the checks of requests that it describes. */

import { createRequire } from 'node:module';
import { isJsonObject, type JsonObject, type JsonValue } from '@nodepool/core';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import { ProblemError, type Violation } from './problems.js';

const loadJson = createRequire(__filename);

/** The document, which is also served to clients. */
export const API_DESCRIPTION = loadJson('../../openapi.json') as JsonObject;

/** The key under which the schemas of the document are known. */
const DOCUMENT = 'openapi.json';

/** Depth and size of the free data of a lease are limited by the size of the body; keys of objects are not special. */
const ajv = new Ajv2020({ allErrors: false, strict: false, validateSchema: false, logger: false });
ajv.addFormat('date-time', true);
ajv.addFormat('uri', true);
ajv.addSchema(API_DESCRIPTION, DOCUMENT);
/** Converts the texts of a query to numbers and sets defaults. */
const queryAjv = new Ajv2020({
  coerceTypes: true,
  useDefaults: true,
  strict: false,
  validateSchema: false,
  logger: false,
});
queryAjv.addSchema(API_DESCRIPTION, DOCUMENT);

/** Returns the value with the type of the schema. Throws a problem `bad-request` with the violation. */
export type Check<T> = (value: unknown) => T;

/** Returns a check of bodies by a schema of the document. */
export function bodyCheck<T>(schema: string): Check<T> {
  const validate = ajv.compile<T>({ $ref: `${DOCUMENT}#/components/schemas/${schema}` });
  return (body) => checked(validate, body, 'the body');
}

/** Returns a check of the query of an operation, which permits only its parameters. */
export function queryCheck<T>(operationId: string): Check<T> {
  const properties: Record<string, JsonValue> = {};
  for (const parameter of parametersOf(operationId)) {
    const { in: place, name, schema } = parameter;
    if (place === 'query' && typeof name === 'string' && schema !== undefined) properties[name] = absolute(schema);
  }
  const validate = queryAjv.compile<T>({ type: 'object', additionalProperties: false, properties });
  return (query) => checked(validate, { ...(query as object) }, 'the query');
}

function parametersOf(operationId: string): readonly JsonObject[] {
  const { paths } = API_DESCRIPTION;
  for (const path of Object.values(isJsonObject(paths) ? paths : {})) {
    for (const operation of Object.values(isJsonObject(path) ? path : {})) {
      if (!isJsonObject(operation) || operation['operationId'] !== operationId) continue;
      const { parameters } = operation;
      return Array.isArray(parameters) ? parameters.filter(isJsonObject) : [];
    }
  }
  return [];
}

/** Returns the schema with a reference that other schemas can use. */
function absolute(schema: JsonValue): JsonValue {
  const reference = isJsonObject(schema) ? schema['$ref'] : undefined;
  return typeof reference === 'string' ? { $ref: `${DOCUMENT}${reference}` } : schema;
}

function checked<T>(validate: ValidateFunction<T>, value: unknown, what: string): T {
  if (validate(value)) return value;
  const errors: Violation[] = (validate.errors ?? []).map(({ instancePath, message, params }) => ({
    path: instancePath,
    reason: `${message ?? 'is not valid'}${extraKey(params)}`,
  }));
  const [first] = errors;
  throw new ProblemError('bad-request', `${what}${first?.path ?? ''} ${first?.reason ?? 'is not valid'}`, { errors });
}

/** Returns the name of a key that the schema does not know. */
function extraKey(params: Readonly<Record<string, unknown>>): string {
  const key = params['additionalProperty'];
  return typeof key === 'string' ? `: ${key.slice(0, 100)}` : '';
}

/** Validates values against JSON Schemas and describes violations in the terms of the configuration file. */

import { createRequire } from 'node:module';
import type * as AjvModule from 'ajv/dist/2020.js';
import type { Ajv2020, ErrorObject, ValidateFunction } from 'ajv/dist/2020.js';
import { type JsonSchema, isJsonObject, type JsonObject, type JsonValue } from '@nodepool/core';
import { createAjv } from './create-ajv.js';
import { describeValue, type KeyPath } from './problems.js';
import { describeSchema, expectation, joinOr, keysText, quoteHint } from './schema-words.js';
import { didYouMean } from './suggest.js';

export interface Violation {
  /** Path relative to the validated value. */
  readonly path: KeyPath;
  readonly expected: string;
  /** Replaces the description of the existing value. */
  readonly found: string | undefined;
  readonly hint: string | undefined;
  readonly at: 'key' | 'value';
}

export type Validator = (value: JsonValue) => Violation[];

const load = createRequire(__filename);
const validators = new WeakMap<JsonSchema, Validator>();
let ajv: Ajv2020 | undefined;

/** Loads the compiler before `compileSchema` does, which takes tens of milliseconds. */
export function loadSchemaCompiler(): Ajv2020 {
  // Loaded only for schemas that the build does not compile.
  ajv ??= createAjv(load('ajv/dist/2020.js') as typeof AjvModule);
  return ajv;
}

/** Compiles a schema, once per schema object. Throws if the schema itself is wrong. */
export function compileSchema(schema: JsonSchema): Validator {
  let validator = validators.get(schema);
  if (validator === undefined) {
    validator = validatorOf(loadSchemaCompiler().compile(schema));
    validators.set(schema, validator);
  }
  return validator;
}

export function validatorOf(check: ValidateFunction): Validator {
  return (value) => (check(value) ? [] : violations(value, check.errors ?? []));
}

function violations(root: JsonValue, errors: readonly ErrorObject[]): Violation[] {
  const found: Violation[] = [];
  const hidden = new Set<ErrorObject>();
  // A combinator comes after the errors of its branches and of the combinators inside them: the outermost decides
  // first.
  for (const error of errors.toReversed()) {
    if (hidden.has(error)) continue;
    const branches = isCombinator(error) ? branchErrors(error, errors) : [];
    for (const branch of branches) hidden.add(branch);
    const chosen = isCombinator(error) ? chosenBranch(error) : undefined;
    if (chosen === undefined) {
      found.push(...explain(root, error));
      continue;
    }
    const prefix = `${error.schemaPath}/${chosen}/`;
    found.push(
      ...violations(
        root,
        branches.filter((branch) => branch.schemaPath.startsWith(prefix)),
      ),
    );
  }
  return found.reverse();
}

function isCombinator(error: ErrorObject): boolean {
  return error.keyword === 'oneOf' || error.keyword === 'anyOf';
}

function branchErrors(error: ErrorObject, errors: readonly ErrorObject[]): ErrorObject[] {
  return errors.filter(
    (other) =>
      other !== error &&
      other.schemaPath.startsWith(`${error.schemaPath}/`) &&
      `${other.instancePath}/`.startsWith(`${error.instancePath}/`),
  );
}

/** Returns the only branch for a value of this type; only its errors are reported. */
function chosenBranch(error: ErrorObject): number | undefined {
  const branches = schemasOf(error);
  if (branches.some((branch) => branch['type'] === undefined)) return undefined;
  const fitting = branches.flatMap((branch, index) => (fitsType(branch['type'], error.data) ? [index] : []));
  return fitting.length === 1 ? fitting[0] : undefined;
}

function fitsType(type: JsonValue | undefined, data: unknown): boolean {
  const types: readonly JsonValue[] = Array.isArray(type) ? type : type === undefined ? [] : [type];
  const kind = data === null ? 'null' : Array.isArray(data) ? 'array' : typeof data;
  return types.some((each) => each === kind || (each === 'integer' && kind === 'number'));
}

function schemasOf(error: ErrorObject): JsonObject[] {
  const schemas: unknown = error.schema;
  return Array.isArray(schemas) ? schemas.filter((each): each is JsonObject => isJsonObject(each)) : [];
}

function explain(root: JsonValue, error: ErrorObject): Violation[] {
  const path = pathOf(root, error.instancePath);
  switch (error.keyword) {
    case 'additionalProperties':
    case 'unevaluatedProperties':
      return [unknownKey(path, error)];
    case 'required':
      return [missingKey(path, error)];
    case 'oneOf':
    case 'anyOf':
      return [noBranch(path, error)];
    case 'not':
      return [excluded(path, error)];
    case 'if':
    case 'propertyNames':
      // The errors of the applied subschemas are reported instead.
      return [];
    default: {
      const hint = error.keyword === 'type' ? quoteHint(error.schema, error.data) : reasonOfLimit(error);
      return [{ path, expected: expectation(error), found: kindOf(error), hint, at: 'value' }];
    }
  }
}

/** Describes a mapping or a list, whose kind may be wrong. Returns undefined for other values, which may be secret. */
function kindOf({ data }: ErrorObject): string | undefined {
  return typeof data === 'object' ? describeValue(data as JsonValue, true) : undefined;
}

/** Returns the reason of a maximum, which the schema gives as `$comment`. */
function reasonOfLimit({ keyword, parentSchema }: ErrorObject): string | undefined {
  const comment: unknown = keyword === 'maximum' ? parentSchema?.['$comment'] : undefined;
  return typeof comment === 'string' ? comment : undefined;
}

function unknownKey(path: KeyPath, error: ErrorObject): Violation {
  const params: Record<string, unknown> = error.params;
  const key = String(params['additionalProperty'] ?? params['unevaluatedProperty']);
  const known = Object.keys(isJsonObject(error.parentSchema?.['properties']) ? error.parentSchema['properties'] : {});
  return {
    path: [...path, key],
    expected: known.length === 0 ? 'no keys here' : keysText('one of the keys', known.toSorted()),
    found: 'an unknown key',
    hint: didYouMean(key, known),
    at: 'key',
  };
}

function missingKey(path: KeyPath, error: ErrorObject): Violation {
  const params: Record<string, unknown> = error.params;
  const key = String(params['missingProperty']);
  const properties: unknown = error.parentSchema?.['properties'];
  const schema = isJsonObject(properties) ? properties[key] : undefined;
  return {
    path: [...path, key],
    expected: isJsonObject(schema) ? describeSchema(schema) : 'a value',
    found: 'nothing',
    hint: 'the key is required',
    at: 'value',
  };
}

function noBranch(path: KeyPath, error: ErrorObject): Violation {
  const branches = schemasOf(error);
  const keys = branches.flatMap((branch) => (Array.isArray(branch['required']) ? branch['required'].map(String) : []));
  if (keys.length >= branches.length && isJsonObject(error.data)) {
    const data = error.data;
    const present = keys.filter((key) => Object.hasOwn(data, key));
    const count = error.keyword === 'oneOf' ? 'exactly one' : 'at least one';
    const found = present.length === 0 ? 'none of them' : present.join(' and ');
    return { path, expected: `${count} of the keys ${joinOr(keys)}`, found, hint: undefined, at: 'value' };
  }
  const expected = joinOr([...new Set(branches.map(describeSchema))]);
  return { path, expected, found: kindOf(error), hint: undefined, at: 'value' };
}

/** Describes the violation of a rule that keys exclude each other, `{not: {required: [...]}}`. */
function excluded(path: KeyPath, error: ErrorObject): Violation {
  const rule: unknown = error.schema;
  const keys = isJsonObject(rule) && Array.isArray(rule['required']) ? rule['required'].map(String) : [];
  if (keys.length < 2)
    return { path, expected: expectation(error), found: kindOf(error), hint: undefined, at: 'value' };
  const expected = `at most one of the keys ${joinOr(keys)}`;
  return { path, expected, found: keys.join(' and '), hint: 'remove one of them', at: 'value' };
}

/** Converts a JSON pointer to a key path; the value decides which segments are indexes. */
function pathOf(root: JsonValue, pointer: string): KeyPath {
  const path: (string | number)[] = [];
  let value: JsonValue | undefined = root;
  for (const step of pointer.split('/').slice(1)) {
    const key = step.replaceAll('~1', '/').replaceAll('~0', '~');
    if (Array.isArray(value)) {
      path.push(Number(key));
      value = (value as readonly JsonValue[])[Number(key)];
    } else {
      path.push(key);
      value = isJsonObject(value) ? value[key] : undefined;
    }
  }
  return path;
}

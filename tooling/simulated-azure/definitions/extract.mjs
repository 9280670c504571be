// Cuts the parts that the simulation needs out of one of Microsoft's management libraries, without descriptions.
//
//   node extract.mjs PACKAGE_FOLDER OPERATION... [-- OPAQUE_TYPE...] > PART
//
// An operation is named FILE.NAME, e.g. virtualMachines.createOrUpdate. Opaque types are left open: any object fits them.
import { readFileSync, realpathSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';

const [folder, ...rest] = process.argv.slice(2);
const split = rest.indexOf('--') < 0 ? rest.length : rest.indexOf('--');
const opaque = new Set(rest.slice(split + 1));
const library = join(realpathSync(folder), 'dist', 'commonjs');
const require = createRequire(import.meta.url);
const Module = require('node:module');
const mappers = require(join(library, 'models', 'mappers.js'));
const known = require(join(library, 'models', 'index.js'));
const fieldTypes = fieldTypesIn(readFileSync(join(library, 'models', 'index.d.ts'), 'utf8'));
const needed = new Set();

/** Enumerations that the services extend without publishing: the deprecated list of VM sizes. */
const OUTDATED = new Set(['VirtualMachineSizeTypes']);

/**
 * Returns the declared type of every field by interface, because the mappers do not name the enumeration of a string.
 */
function fieldTypesIn(declarations) {
  const types = {};
  for (const [, name, parents, body] of declarations.matchAll(
    /^export interface (\w+)(?: extends ([\w, ]+))? \{\n([\s\S]*?)^\}/gm,
  )) {
    const own = [...body.matchAll(/^ {4}(?:readonly )?"?([\w$]+)"?\??: ([^;]+);/gm)].map(([, key, type]) => [
      key,
      type,
    ]);
    types[name] = { parents: parents?.split(/, */) ?? [], own: Object.fromEntries(own) };
  }
  return types;
}

function typeOfField(className, field) {
  const found = fieldTypes[className];
  return found?.own[field] ?? found?.parents.map((parent) => typeOfField(parent, field)).find(Boolean);
}

/** Returns the JSON Schema of a mapper. `declared` is the type in the declarations. */
function schemaOf({ type, constraints = {}, readOnly, nullable }, declared = '') {
  const schema = { ...bare(type, declared.replace(/\[\]$/, '')), ...limits(constraints) };
  if (readOnly === true) schema.readOnly = true;
  if (nullable === true) schema.nullable = true;
  return schema;
}

function bare({ name, className, element, value, allowedValues, modelProperties }, declared) {
  const enumeration = OUTDATED.has(declared) ? undefined : known[`Known${declared}`];
  switch (name) {
    case 'Composite':
      if (className !== undefined && mappers[className] !== undefined) {
        if (opaque.has(className)) return { type: 'object' };
        needed.add(className);
        return { $ref: `#/$defs/${className}` };
      }
      return modelProperties === undefined ? { type: 'object' } : objectOf(modelProperties, className);
    case 'Sequence':
      return { type: 'array', items: schemaOf(element, declared) };
    case 'Dictionary':
      return { type: 'object', additionalProperties: schemaOf(value) };
    case 'Enum':
      return { type: 'string', enum: allowedValues };
    case 'Number':
      return { type: 'number' };
    case 'Boolean':
      return { type: 'boolean' };
    case 'any':
      return {};
    case 'Object':
      return { type: 'object' };
    default:
      return { type: 'string', ...(enumeration === undefined ? {} : { enum: Object.values(enumeration) }) };
  }
}

function limits({ MinLength, MaxLength, Pattern, InclusiveMinimum, InclusiveMaximum, MaxItems, MinItems }) {
  const found = {
    minLength: MinLength,
    maxLength: MaxLength,
    pattern: Pattern?.source,
    minimum: InclusiveMinimum,
    maximum: InclusiveMaximum,
    minItems: MinItems,
    maxItems: MaxItems,
  };
  return Object.fromEntries(Object.entries(found).filter(([, limit]) => limit !== undefined));
}

/** Nests the fields that the libraries flatten (`properties.x` to `x`), as in the API. */
function objectOf(modelProperties, className) {
  const root = { type: 'object', properties: {}, required: [] };
  for (const [field, mapper] of Object.entries(modelProperties)) {
    const path = mapper.serializedName.split(/(?<!\\)\./).map((part) => part.replace('\\.', '.'));
    let at = root;
    for (const part of path.slice(0, -1)) at = at.properties[part] ??= { type: 'object', properties: {}, required: [] };
    const key = path.at(-1);
    at.properties[key] = schemaOf(mapper, typeOfField(className, field));
    if (mapper.required === true && mapper.readOnly !== true) at.required.push(key);
  }
  return root;
}

/** The library does not export the specifications of its operations. */
function specification(file, name) {
  const path = join(library, 'operations', `${file}.js`);
  const loaded = new Module(path);
  loaded.filename = path;
  loaded.paths = Module._nodeModulePaths(path);
  loaded._compile(`${readFileSync(path, 'utf8')}\nexports.found = ${name}OperationSpec;`, path);
  return loaded.exports.found;
}

function parameter({ mapper }) {
  const { serializedName, required, isConstant, defaultValue } = mapper;
  const version = isConstant === true ? { published: defaultValue } : {};
  return [serializedName, { ...schemaOf(mapper), required: required === true || isConstant === true, ...version }];
}

const operations = {};
for (const operation of rest.slice(0, split)) {
  const [file, name] = operation.split('.');
  const { path, httpMethod, queryParameters = [], urlParameters, requestBody, responses } = specification(file, name);
  const answers = Object.entries(responses).filter(([status]) => status !== 'default');
  operations[operation] = {
    method: httpMethod,
    path,
    url: Object.fromEntries(urlParameters.filter(({ mapper }) => mapper.serializedName !== '$host').map(parameter)),
    query: Object.fromEntries(queryParameters.map(parameter)),
    ...(requestBody === undefined ? {} : { request: schemaOf(requestBody.mapper) }),
    responses: Object.fromEntries(
      answers.map(([status, { bodyMapper }]) => [status, bodyMapper === undefined ? null : schemaOf(bodyMapper)]),
    ),
  };
}
const $defs = {};
// The loop also visits elements that are added to the set meanwhile.
for (const name of needed) $defs[name] = objectOf(mappers[name].type.modelProperties ?? {}, name);
const { name, version, license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
process.stdout.write(`${JSON.stringify({ origin: `npm:${name}@${version}`, license, operations, $defs })}\n`);

/**
 * Extracts operations with their types from a service model of botocore, without documentation.
 *
 *   zcat botocore/data/ec2/2016-11-15/service-2.json.gz | node extract.mjs ec2 OPERATION... > ec2.json
 *
 * Without operations, those of the present file are extracted again.
 */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const [service = '', ...named] = process.argv.slice(2);
const model = JSON.parse(readFileSync(0, 'utf8'));
const file = join(import.meta.dirname, `${service}.json`);
const names = named.length > 0 ? named : Object.keys(JSON.parse(readFileSync(file, 'utf8')).operations);

/** Parts of a model that are about clients or people. */
const LEFT_OUT = new Set([
  ...['documentation', 'documentationUrl', 'staticContextParams', 'operationContextParams', 'contextParam'],
  ...['endpoint', 'endpointdiscovery', 'authtype', 'auth', 'deprecatedMessage', 'deprecatedSince', 'deprecated'],
  ...['examples', 'unsignedPayload', 'readonly', 'box', 'sensitive', 'tags', 'uid', 'serviceId', 'signingName'],
  ...['endpointPrefix', 'protocols', 'globalEndpoint', 'awsQueryCompatible', 'serviceAbbreviation', 'synthetic'],
]);

function withoutTexts(value) {
  if (Array.isArray(value)) return value.map(withoutTexts);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([key, inner]) => !LEFT_OUT.has(key) || isShape(key, inner))
      .map(([key, inner]) => [key, withoutTexts(inner)]),
  );
}

/** Enumerations that the simulation does not take over: its own table names the instance types that exist. */
const OPEN = new Set(['InstanceType']);

/** A member of a type may have the name of such a part, e.g. `tags`. */
function isShape(_key, value) {
  return typeof value === 'object' && value !== null && 'shape' in value;
}

const shapes = {};
function add(name) {
  if (name === undefined || name in shapes) return;
  const { enum: values, ...rest } = withoutTexts(model.shapes[name]);
  const shape = values === undefined || OPEN.has(name) ? rest : { ...rest, enum: values };
  shapes[name] = shape;
  const inner = [...Object.values(shape.members ?? {}), shape.member, shape.key, shape.value];
  for (const each of inner) add(each?.shape);
}

const operations = {};
for (const name of [...names].sort()) {
  const operation = model.operations[name];
  if (operation === undefined) throw new Error(`${service} has no operation ${name}`);
  operations[name] = withoutTexts(operation);
  add(operation.input?.shape);
  add(operation.output?.shape);
  for (const error of operation.errors ?? []) add(error.shape);
}
const sorted = Object.fromEntries(Object.entries(shapes).sort(([a], [b]) => (a < b ? -1 : 1)));
process.stdout.write(`${JSON.stringify({ metadata: withoutTexts(model.metadata), operations, shapes: sorted })}\n`);

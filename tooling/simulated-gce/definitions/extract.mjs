// Cuts the parts that the simulation needs out of a discovery document of Google, without descriptions.
//
//   node extract.mjs DISCOVERY_DOCUMENT METHOD... > PART
import { readFileSync } from 'node:fs';

const STRUCTURE = [
  '$ref',
  'type',
  'format',
  'pattern',
  'enum',
  'minimum',
  'maximum',
  'required',
  'repeated',
  'location',
];
const [file, ...wanted] = process.argv.slice(2);
const document = JSON.parse(readFileSync(file, 'utf8'));
const needed = new Set();

function schemaOf(source) {
  const schema = {};
  for (const key of STRUCTURE) if (key in source) schema[key] = source[key];
  if (source.readOnly === true || /^\[?output only/i.test(source.description ?? '')) schema.outputOnly = true;
  if (source.properties !== undefined) schema.properties = mapped(source.properties);
  if (source.items !== undefined) schema.items = schemaOf(source.items);
  if (source.additionalProperties !== undefined) schema.additionalProperties = schemaOf(source.additionalProperties);
  if (source.$ref !== undefined) needed.add(source.$ref);
  return schema;
}

function mapped(schemas) {
  return Object.fromEntries(Object.entries(schemas).map(([name, schema]) => [name, schemaOf(schema)]));
}

const methods = {};
for (const name of wanted) {
  const [resource, method] = name.split('.');
  const {
    flatPath,
    path,
    httpMethod,
    parameters = {},
    request,
    response,
    mediaUpload,
  } = document.resources[resource].methods[method];
  for (const type of [request, response]) if (type !== undefined) needed.add(type.$ref);
  methods[name] = {
    httpMethod,
    path: `/${document.servicePath}${flatPath ?? path}`,
    ...(mediaUpload === undefined ? {} : { uploadPath: mediaUpload.protocols.resumable.path }),
    parameters: mapped(parameters),
    ...(request === undefined ? {} : { request: request.$ref }),
    ...(response === undefined ? {} : { response: response.$ref }),
  };
}
const schemas = {};
// The loop also visits elements that are added to the set meanwhile.
for (const name of needed) schemas[name] = schemaOf(document.schemas[name]);
const { id, revision, parameters } = document;
const part = { id, revision, parameters: mapped(parameters), methods, schemas };
process.stdout.write(`${JSON.stringify(part, undefined, 2)}\n`);

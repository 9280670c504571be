/** Inputs and outputs in paths, queries, headers and bodies, of the protocols `rest-json` and `rest-xml`. */

import { readJson, writeJson } from './json.js';
import type { Operation, ServiceModel, Shape, ShapeRef } from './service-model.js';
import { InputProblem, isStructure, scalarOf, timestampText, type Structure, type Value } from './values.js';
import { element, parseXml, readXml, XML_HEADER, XmlWriter } from './xml.js';

export interface RestRequest {
  readonly method: string;
  /** Path without the host's bucket, and still encoded. */
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

export interface RestAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer | string;
  readonly type?: string;
}

/** Query parameters that any operation may have. */
const COMMON_QUERY = /^(?:x-id|X-Amz-.*)$/;

/** Returns the operation that the request calls: the one with the most fitting query parameters and headers. */
export function restOperation(model: ServiceModel, request: RestRequest): Operation | undefined {
  const fitting = model.operations.flatMap((operation) => {
    const fit = fitOf(model, operation, request);
    return fit === undefined ? [] : [{ operation, fit }];
  });
  return fitting.sort((a, b) => b.fit - a.fit)[0]?.operation;
}

/** Returns the number of conditions beyond the path that the request meets; undefined if it does not meet one. */
function fitOf(model: ServiceModel, operation: Operation, request: RestRequest): number | undefined {
  const { http, input } = operation;
  if (http.method !== request.method || pathParameters(http.requestUri, request.path) === undefined) return undefined;
  const literals = [...literalsOf(http.requestUri)];
  if (literals.some(([name, value]) => (request.query.get(name) ?? undefined) !== value)) return undefined;
  const { members = {}, required = [] } = model.shape(input);
  const needed = required.map((name) => members[name]).filter((ref) => ref !== undefined);
  const isMet = ({ location, locationName = '' }: ShapeRef): boolean =>
    location === 'querystring'
      ? request.query.has(locationName)
      : request.headers[locationName.toLowerCase()] !== undefined;
  const conditions = needed.filter(({ location }) => location === 'querystring' || location === 'header');
  return conditions.every(isMet) ? literals.length + conditions.length : undefined;
}

function literalsOf(requestUri: string): URLSearchParams {
  return new URLSearchParams(requestUri.split('?')[1] ?? '');
}

function pathParameters(requestUri: string, path: string): Readonly<Record<string, string>> | undefined {
  const [template = ''] = requestUri.split('?');
  const source = template
    .replaceAll(/[.]/g, String.raw`\.`)
    .replaceAll(/\{(\w+)(\+?)\}/g, (_, name: string, greedy) =>
      greedy === '+' ? `(?<${name}>.+)` : `(?<${name}>[^/]+)`,
    );
  const match = new RegExp(`^${source}/?$`, 's').exec(path);
  if (match === null) return undefined;
  return Object.fromEntries(Object.entries(match.groups ?? {}).map(([name, text]) => [name, decodeURIComponent(text)]));
}

/** Returns the input of a request. Throws `InputProblem`, also for unknown query parameters. */
export function readRest(model: ServiceModel, operation: Operation, request: RestRequest): Structure {
  const shape = model.shape(operation.input);
  const members = Object.entries(shape.members ?? {});
  const known = new Set(
    members.flatMap(([name, ref]) => (ref.location === 'querystring' ? [ref.locationName ?? name] : [])),
  );
  const literals = literalsOf(operation.http.requestUri);
  const stranger = [...request.query.keys()].find(
    (name) => !known.has(name) && !literals.has(name) && !COMMON_QUERY.test(name),
  );
  if (stranger !== undefined) {
    const message = `The query parameter ${stranger} is not recognized`;
    throw new InputProblem({ kind: 'unknown', path: stranger, message });
  }
  const path = pathParameters(operation.http.requestUri, request.path) ?? {};
  const entries = members.flatMap(([name, ref]): [string, Value][] => {
    const value = outsideOfBody(model, name, ref, request, path);
    return value === undefined ? [] : [[name, value]];
  });
  return { ...Object.fromEntries(entries), ...readBody(model, operation, shape, request) };
}

function outsideOfBody(
  model: ServiceModel,
  name: string,
  ref: ShapeRef,
  { query, headers }: RestRequest,
  path: Readonly<Record<string, string>>,
): Value | undefined {
  const wire = ref.locationName ?? name;
  const shape = model.shape(ref);
  if (ref.location === 'headers') {
    const prefix = wire.toLowerCase();
    const found = Object.entries(headers).filter(([header]) => header.startsWith(prefix));
    return Object.fromEntries(found.map(([header, text]) => [header.slice(prefix.length), text]));
  }
  const format = ref.timestampFormat ?? shape.timestampFormat;
  const texts =
    ref.location === 'uri'
      ? [path[wire]]
      : ref.location === 'querystring'
        ? query.getAll(wire)
        : headerOf(ref, wire, headers);
  const [text] = texts;
  if (text === undefined) return undefined;
  if (shape.type !== 'list') return scalarOf(shape, text, wire, format);
  return text.split(',').map((each) => each.trim());
}

function headerOf({ location }: ShapeRef, wire: string, headers: Readonly<Record<string, string>>): readonly string[] {
  const text = location === 'header' ? headers[wire.toLowerCase()] : undefined;
  return text === undefined ? [] : [text];
}

function readBody(model: ServiceModel, operation: Operation, shape: Shape, { body }: RestRequest): Structure {
  const { payload, members = {} } = shape;
  const isJson = model.metadata.protocol === 'rest-json';
  const ref = payload === undefined ? operation.input : members[payload];
  if (ref === undefined) return {};
  if (payload !== undefined && model.shape(ref).type === 'blob') return { [payload]: body };
  const hasBody = payload !== undefined || Object.values(members).some(({ location }) => location === undefined);
  if (!hasBody || body.length === 0) return {};
  const value = isJson ? readJson(model, ref, parseJson(body), '') : readXmlBody(model, ref, body);
  if (payload !== undefined) return value === undefined ? {} : { [payload]: value };
  return isStructure(value) ? value : {};
}

function parseJson(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString('utf8')) as unknown;
  } catch {
    throw new InputProblem({ kind: 'type', path: '', message: 'The body is not JSON' });
  }
}

function readXmlBody(model: ServiceModel, ref: ShapeRef, body: Buffer): Value {
  const root = parseXml(body.toString('utf8'));
  if (root === undefined) throw new InputProblem({ kind: 'type', path: '', message: 'The body is not XML' });
  return readXml(model, ref, root, '');
}

/** Returns the answer for an output. Throws if it has a member that Amazon has not published. */
export function writeRest(model: ServiceModel, operation: Operation, output: Structure, rootName: string): RestAnswer {
  const { output: ref } = operation;
  const shape = model.shape(ref);
  const headers: Record<string, string> = {};
  let status = operation.http.responseCode ?? 200;
  for (const [name, value] of Object.entries(output)) {
    const member = shape.members?.[name];
    if (value === undefined || member === undefined) continue;
    if (member.location === 'statusCode') status = Number(value);
    if (member.location === 'header') headers[member.locationName ?? name] = headerText(member, value);
    if (member.location === 'headers' && isStructure(value)) {
      for (const [key, text] of Object.entries(value))
        headers[`${member.locationName ?? ''}${key}`] = typeof text === 'string' ? text : '';
    }
  }
  return { status, headers, ...bodyOf(model, shape, ref, output, rootName) };
}

function headerText(ref: ShapeRef, value: Value): string {
  if (value instanceof Date) return timestampText(value, ref.timestampFormat ?? 'rfc822');
  if (typeof value === 'object') throw new Error(`the simulation answers with a structure in the header ${ref.shape}`);
  return String(value);
}

function bodyOf(
  model: ServiceModel,
  shape: Shape,
  ref: ShapeRef | undefined,
  output: Structure,
  rootName: string,
): Pick<RestAnswer, 'body' | 'type'> {
  const { payload, members = {} } = shape;
  const content = payload === undefined ? output : output[payload];
  if (content instanceof Uint8Array) return { body: Buffer.from(content), type: 'application/octet-stream' };
  const inner = payload === undefined ? ref : members[payload];
  const isInBody = ({ location }: ShapeRef): boolean => location === undefined;
  if (content === undefined || inner === undefined || !isStructure(content)) return { body: '' };
  if (model.metadata.protocol === 'rest-json') {
    const own = Object.entries(content).filter(([name]) => payload !== undefined || isInBody(members[name] ?? inner));
    return { body: JSON.stringify(writeJson(model, inner, Object.fromEntries(own))), type: 'application/json' };
  }
  if (payload === undefined && !Object.values(members).some(isInBody)) return { body: '' };
  const { xmlNamespace = 'http://s3.amazonaws.com/doc/2006-03-01/' } = model.metadata;
  const elements = new XmlWriter(model).members(model.shape(inner), content, isInBody);
  return { body: XML_HEADER + element(rootName, elements, ` xmlns="${xmlNamespace}"`), type: 'application/xml' };
}

/**
 * The API as its OpenAPI document describes it. The cases are made from the document: every operation is called, with
 * valid and with invalid requests, and every answer conforms to the document.
 */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import { TOKENS, until, World, type RunningGateway } from './support/world.js';

interface Schema {
  readonly $ref?: string;
  readonly [key: string]: unknown;
}
interface Answer {
  readonly $ref?: string;
  readonly headers?: Readonly<Record<string, { readonly required?: boolean; readonly schema: Schema }>>;
  readonly content?: Readonly<Record<string, { readonly schema: Schema }>>;
}
interface Parameter {
  readonly $ref?: string;
  readonly name: string;
  readonly in: string;
  readonly schema: Schema;
}
interface Operation {
  readonly operationId: string;
  readonly security?: readonly unknown[];
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: { readonly required: boolean; readonly content: { 'application/json': { schema: Schema } } };
  readonly responses: Readonly<Record<string, Answer>>;
}
interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: { readonly responses: Readonly<Record<string, Answer>> };
}

const DOCUMENT = JSON.parse(readFileSync(join(__dirname, '..', 'openapi.json'), 'utf8')) as Document;
const METHODS = ['get', 'post', 'put', 'delete'] as const;

const ajv = new Ajv2020({ strict: false, validateSchema: true });
ajv.addFormat('date-time', /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
ajv.addFormat('uri', /^[a-z]+:/);
ajv.addSchema(DOCUMENT, 'openapi.json');

/** Every operation with its path and method. */
const operations = Object.entries(DOCUMENT.paths).flatMap(([path, item]) =>
  METHODS.flatMap((method) => {
    const operation = item[method];
    return operation === undefined ? [] : [{ path, method, operation, id: operation.operationId }];
  }),
);
type Described = (typeof operations)[number];

function schemaOf(schema: Schema): ValidateFunction {
  // References of the document are relative to it.
  const text = JSON.stringify(schema).replaceAll('"#/', '"openapi.json#/');
  return ajv.compile(JSON.parse(text) as Schema);
}

/** Expects the answer to conform to the description of its status; resolves with the body. */
async function expectDescribed({ operation, id }: Described, answer: Response): Promise<unknown> {
  const named = operation.responses[String(answer.status)];
  const described =
    named?.$ref === undefined ? named : DOCUMENT.components.responses[named.$ref.split('/').pop() ?? ''];
  if (described === undefined)
    throw new Error(`${id} does not describe status ${answer.status}: ${await answer.text()}`);
  for (const [name, { required, schema }] of Object.entries(described.headers ?? {})) {
    const value = answer.headers.get(name);
    if (required === true) expect([id, name, value]).toEqual([id, name, expect.any(String)]);
    if (value !== null && schema['type'] === 'integer') expect(value).toMatch(/^\d+$/);
  }
  const type = (answer.headers.get('content-type') ?? '').split(';')[0] ?? '';
  const content = described.content?.[type];
  if (content === undefined) throw new Error(`${id} does not describe ${type} for status ${answer.status}`);
  if (type === 'text/event-stream') {
    await answer.body?.cancel();
    return undefined;
  }
  const text = await answer.text();
  if (type === 'text/plain') return text;
  const body: unknown = JSON.parse(text);
  const validate = schemaOf(content.schema);
  if (!validate(body)) throw new Error(`${id} ${answer.status}: ${ajv.errorsText(validate.errors)}: ${text}`);
  return body;
}

let world: World;
let gateway: RunningGateway;
let leaseId = '';

beforeAll(async () => {
  world = await World.start('limits: {requests-per-second: 1000, burst: 10000, body-bytes: 4096}');
  gateway = await world.gateway();
});
afterAll(() => world.stop());

function call(
  { path, method, operation }: Described,
  change: {
    readonly id?: string;
    readonly body?: unknown;
    readonly query?: string;
    readonly token?: string | null;
    readonly headers?: Record<string, string>;
  } = {},
): Promise<Response> {
  const body = 'body' in change ? change.body : exampleOf(operation);
  return gateway.fetch(path.replace('{id}', change.id ?? leaseId) + (change.query ?? ''), {
    method: method.toUpperCase(),
    ...(change.token === undefined ? {} : { token: change.token }),
    headers: { ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...change.headers },
    ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  });
}

function exampleOf({ operationId, requestBody }: Operation): unknown {
  if (requestBody === undefined) return undefined;
  return operationId === 'createLease' ? { labels: ['debian'] } : { seconds: 60, lifetime: 600 };
}

/** A body of the operation with the least that it needs. */
function validBody({ operationId }: Operation): Record<string, unknown> {
  if (operationId === 'createLease') return { labels: ['debian'] };
  return operationId === 'holdLease' ? { seconds: 60 } : {};
}

/** A lease that is ready. */
async function readyLease(): Promise<string> {
  const { id } = await gateway.client().create({ labels: ['debian'] });
  await gateway.client().ready(id);
  return id;
}

it('the document is valid, and every operation has a case here', () => {
  expect(new Set(operations.map(({ id }) => id)).size).toBe(operations.length);
  expect(operations.map(({ id }) => id).sort()).toEqual([
    'createLease',
    'followLease',
    'getDescription',
    'getLease',
    'holdLease',
    'isLive',
    'isReady',
    'listLabels',
    'listLeases',
    'releaseLease',
    'renewLease',
  ]);
});

describe.each(operations.map((each) => [each.id, each] as const))('%s', (_id, each) => {
  const { operation, path } = each;
  const isOpen = operation.security?.length === 0;
  const hasId = path.includes('{id}');

  it('answers a valid request as described', async () => {
    if (hasId) leaseId = await readyLease();
    const answer = await call(each, { body: operation.requestBody === undefined ? undefined : validBody(operation) });
    expect(answer.ok).toBe(true);
    await expectDescribed(each, answer);
  });

  it('answers again, also once the lease has ended', async () => {
    if (hasId) {
      await gateway.client().release(leaseId);
      await until(async () => (await gateway.client().get(leaseId)).state === 'ended');
    }
    const answer = await call(each, { body: operation.requestBody === undefined ? undefined : validBody(operation) });
    await expectDescribed(each, answer);
  });

  if (isOpen)
    it('needs no token', async () => {
      expect((await call(each, { token: null })).status).toBe(200);
    });

  if (!isOpen)
    it('refuses requests without a valid token', async () => {
      for (const token of [null, `${TOKENS.acme}x`]) {
        const answer = await call(each, { token });
        expect(answer.status).toBe(401);
        await expectDescribed(each, answer);
      }
    });

  if (hasId)
    it('finds no lease of another tenant, no unknown one, and no trick', async () => {
      const ids = [
        '0'.repeat(32),
        'A'.repeat(32),
        '..',
        '%2e%2e',
        '%00',
        `${leaseId}%2f..`,
        `${leaseId}%0a`,
        'x'.repeat(99),
      ];
      const body = operation.requestBody === undefined ? undefined : validBody(operation);
      for (const id of ids) {
        const answer = await call(each, { id, body });
        // Clients remove `..` before they send the path.
        expect([id, [404, 405].includes(answer.status)]).toEqual([id, true]);
        expect(await answer.json()).toMatchObject({ status: answer.status });
      }
      for (const token of [TOKENS.other, TOKENS.alone]) {
        const answer = await call(each, { token, body });
        expect(answer.status).toBe(404);
        await expectDescribed(each, answer);
      }
    });

  if (operation.requestBody !== undefined)
    it('refuses bodies that the document does not permit', async () => {
      const valid = validBody(operation);
      const properties = bodyProperties(operation);
      const wrong: unknown[] = ['{', '[]', '"text"', { ...valid, unknown: 1 }, '{"__proto__": {"x": 1}}'];
      for (const [name, { type, minimum, maximum, maxItems, maxLength }] of Object.entries(properties)) {
        if (type === undefined) continue;
        wrong.push({ ...valid, [name]: type === 'string' ? 7 : 'text' }, { ...valid, [name]: null });
        if (minimum !== undefined) wrong.push({ ...valid, [name]: minimum - 1 }, { ...valid, [name]: 1.5 });
        if (maximum !== undefined) wrong.push({ ...valid, [name]: maximum + 1 });
        if (maxItems !== undefined)
          wrong.push({ ...valid, [name]: [] }, { ...valid, [name]: [''] }, { ...valid, [name]: ['a/b'] });
        if (maxLength !== undefined) wrong.push({ ...valid, [name]: 'x'.repeat(maxLength + 1) });
      }
      for (const body of wrong) {
        const answer = await call(each, { body });
        if (answer.status !== 400) throw new Error(`${answer.status} for ${JSON.stringify(body)}`);
        await expectDescribed(each, answer);
      }
      const large = await call(each, { body: { ...valid, comment: 'x'.repeat(5000) } });
      expect(large.status).toBe(413);
      await expectDescribed(each, large);
      const text = await call(each, { body: 'labels=debian', headers: { 'content-type': 'text/plain' } });
      expect(text.status).toBe(415);
      await expectDescribed(each, text);
    });

  if (operation.parameters?.some((parameter) => parameter.in === 'query') === true)
    it('refuses queries that the document does not permit', async () => {
      for (const query of ['?unknown=1', '?state=no&outcome=no', '?limit=0&comment[]=1', '?limit=x&outcome=']) {
        const answer = await call(each, { query });
        expect([query, answer.status]).toEqual([query, 400]);
        await expectDescribed(each, answer);
      }
    });
});

interface BodyProperty {
  readonly type?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly maxItems?: number;
  readonly maxLength?: number;
}

function bodyProperties({ requestBody }: Operation): Readonly<Record<string, BodyProperty>> {
  const reference = requestBody?.content['application/json'].schema.$ref ?? '';
  const schema = ajv.getSchema(`openapi.json${reference}`)?.schema as {
    readonly properties: Record<string, BodyProperty>;
  };
  return schema.properties;
}

it('unknown paths and methods are problems', async () => {
  for (const [path, method, status] of [
    ['/', 'GET', 404],
    ['/v1', 'GET', 404],
    ['/v2/leases', 'GET', 404],
    ['/v1/leases/', 'GET', 404],
    ['/v1/leases', 'DELETE', 405],
    ['/v1/labels', 'POST', 405],
    ['//v1/leases', 'GET', 404],
  ] as const) {
    const answer = await gateway.fetch(path, { method });
    expect([path, answer.status]).toEqual([path, status]);
    expect(await answer.json()).toMatchObject({ status, type: expect.stringMatching(/^urn:nodepool:problem:/) });
  }
});

/** The server of simulated clouds, with a cloud that stores notes. */

import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { once } from 'node:events';
import { seededRandom, VirtualClock } from '@nodepool/core/testing';
import {
  ApiError,
  CallLog,
  CloudServer,
  CloudState,
  FaultPlan,
  type CallFault,
  type Route,
  type VendorForm,
} from '../src/index.js';

const form: VendorForm<CallFault> = {
  jsonType: 'application/json; charset=UTF-8',
  noRoute: ({ url }, pathExists) => ({ status: pathExists ? 405 : 404, body: { nothing: url.pathname } }),
  fault: ({ status }) => ({ status, body: { planned: status } }),
  failure: (status, message) => ({ status, body: { failed: message } }),
  headers: () => ({ 'X-Vendor': 'notes' }),
};

let clock: VirtualClock;
let notes: string[];
let state: CloudState<{ readonly latencyMs: number }>;
let faults: FaultPlan;
let calls: CallLog;
let server: CloudServer<CallFault, { operation: string; method: string; path: string }>;

const routes: readonly Route<CallFault>[] = [
  {
    operation: 'notes.create',
    method: 'POST',
    path: '/Notes',
    handle({ body, query }) {
      notes.push(body.toString('utf8'));
      return { status: 201, body: { count: notes.length, tag: query.get('tag') } };
    },
  },
  {
    operation: 'notes.upload',
    method: 'PUT',
    path: '/Notes/:id/file',
    streams: true,
    async handle({ stream, params }) {
      let size = 0;
      for await (const piece of stream) size += piece.byteLength;
      return { status: 200, body: `${params['id']}: ${size} bytes`, type: 'text/plain' };
    },
  },
  {
    operation: 'notes.delete',
    method: 'DELETE',
    path: '/Notes/:id',
    handle: () => ({ status: 204 }),
  },
  {
    operation: 'notes.refuse',
    method: 'POST',
    path: '/Notes/refused',
    handle() {
      throw new ApiError({ status: 409, body: { refused: true } });
    },
  },
  {
    operation: 'notes.wait',
    method: 'POST',
    path: '/Notes/next',
    async handle({ ended }) {
      notes.push('waiting');
      await once(ended(), 'abort');
      notes.push('ended');
      return { status: 204 };
    },
  },
  {
    operation: 'notes.fail',
    method: 'POST',
    path: '/Notes/failed',
    handle() {
      throw new TypeError('a defect');
    },
  },
];

beforeEach(async () => {
  clock = new VirtualClock();
  notes = [];
  state = new CloudState({ clock, random: seededRandom(1) }, { latencyMs: 0 });
  faults = new FaultPlan(state.random);
  calls = new CallLog();
  server = new CloudServer({
    state,
    faults,
    calls,
    routes,
    form,
    ignoresCase: true,
    bodyLimit: 100,
    describe: (call) => call,
  });
  state.url = `http://127.0.0.1:${await server.listen(0)}`;
});

afterEach(() => server.close());

const ask = (method: string, path: string, body?: string): Promise<Response> =>
  fetch(state.url + path, { method, ...(body === undefined ? {} : { body }) });
const create = (): Promise<Response> => ask('POST', '/notes?tag=a%20b', 'text');

describe('a call', () => {
  it("reaches its route with an unchanged body, and is answered with JSON and the vendor's headers", async () => {
    const answer = await create();
    expect(answer.status).toBe(201);
    expect(answer.headers.get('content-type')).toBe('application/json; charset=UTF-8');
    expect(answer.headers.get('x-vendor')).toBe('notes');
    expect(await answer.json()).toEqual({ count: 1, tag: 'a b' });
    expect(notes).toEqual(['text']);
    expect(calls.last()).toEqual([{ operation: 'notes.create', method: 'POST', path: '/notes?tag=a%20b' }]);
  });

  it('of a streaming route has no size limit, and its path is decoded', async () => {
    const answer = await ask('PUT', '/notes/a%2Fb/file', 'x'.repeat(1000));
    expect(await answer.text()).toBe('a/b: 1000 bytes');
    expect(answer.headers.get('content-type')).toBe('text/plain');
  });

  it('can be answered without a body', async () => {
    const answer = await ask('DELETE', '/notes/1');
    expect([answer.status, answer.headers.get('content-length'), await answer.text()]).toEqual([204, null, '']);
  });

  it.each([
    ['an error of the handler', 'POST', '/notes/refused', '', 409, { refused: true }],
    ['a defect of the handler', 'POST', '/notes/failed', '', 500, { failed: expect.stringContaining('a defect') }],
    ['a body that is too long', 'POST', '/notes', 'x'.repeat(101), 413, { failed: expect.stringContaining('large') }],
    ['another method', 'PATCH', '/notes/1', '', 405, { nothing: '/notes/1' }],
    ['another path', 'GET', '/letters', undefined, 404, { nothing: '/letters' }],
  ])('with %s is answered in the form of the vendor', async (_what, method, path, body, status, content) => {
    const answer = await ask(method, path, body);
    expect([answer.status, await answer.json()]).toEqual([status, content]);
  });

  it('has a signal that reports to its handler that the client has disconnected', async () => {
    const controller = new AbortController();
    const waiting = fetch(`${state.url}/notes/next`, { method: 'POST', body: '', signal: controller.signal });
    while (notes.length === 0) await new Promise((resolve) => setImmediate(resolve));
    controller.abort();
    await expect(waiting).rejects.toThrow('aborted');
    while (notes.length === 1) await new Promise((resolve) => setImmediate(resolve));
    expect(notes).toEqual(['waiting', 'ended']);
  });

  it('lasts as long as the configured latency, and takes effect half-way', async () => {
    state.configure({ latencyMs: 1000 });
    faults.add({ on: 'notes', fault: { kind: 'latency', ms: 500 } });
    const answer = create();
    while (clock.nextDueAt === undefined) await new Promise((resolve) => setImmediate(resolve));
    await clock.advance(749);
    expect(notes).toEqual([]);
    await clock.advance(1);
    expect(notes).toHaveLength(1);
    await clock.advance(750);
    expect((await answer).status).toBe(201);
  });
});

describe('a fault', () => {
  it('with a status is answered in the form of the vendor before or after the effect, with Retry-After', async () => {
    faults.add({ on: 'notes.create', fault: { kind: 'status', status: 429, retryAfter: 7 } });
    const early = await create();
    expect([early.status, early.headers.get('retry-after'), await early.json()]).toEqual([429, '7', { planned: 429 }]);
    expect(notes).toEqual([]);

    faults.add({ on: 'notes.create', fault: { kind: 'status', status: 500, when: 'after' } });
    expect((await create()).status).toBe(500);
    expect(notes).toHaveLength(1);
  });

  it.each([
    ['before', 0],
    ['after', 1],
  ] as const)('that cuts the connection %s the effect leaves %d notes', async (when, count) => {
    faults.add({ on: '*', fault: { kind: 'cut', when } });
    await expect(create()).rejects.toThrow('fetch failed');
    expect(notes).toHaveLength(count);
  });

  it('that cuts the connection during the answer leaves its first half', async () => {
    faults.add({ on: '*', fault: { kind: 'cut', when: 'during' } });
    const answer = await create();
    expect(answer.status).toBe(201);
    await expect(answer.text()).rejects.toThrow('terminated');
  });

  it('that hangs lasts until the caller aborts or the server closes', async () => {
    faults.add({ on: '*', times: 2, fault: { kind: 'hang', when: 'after' } });
    const controller = new AbortController();
    const aborted = fetch(`${state.url}/notes`, { method: 'POST', body: '', signal: controller.signal });
    while (notes.length === 0) await new Promise((resolve) => setImmediate(resolve));
    controller.abort();
    await expect(aborted).rejects.toThrow('aborted');

    const closed = create();
    const ended = expect(closed).rejects.toThrow('fetch failed');
    while (notes.length === 1) await new Promise((resolve) => setImmediate(resolve));
    await server.close();
    await ended;
  });
});

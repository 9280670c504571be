/** Both clients of the example cloud behave identically, and the HTTP client tolerates network faults. */

import { createHash } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { seededRandom, VirtualClock } from '@nodepool/core/testing';
import type { ApiCall, JsonObject } from '@nodepool/core';
import { HttpClient } from '../src/client/http.js';
import { InProcessClient } from '../src/client/in-process.js';
import type { ExampleCloudApi } from '../src/client/client.js';
import { ExampleCloud } from '../src/cloud/cloud.js';
import { readCloudSettings } from '../src/cloud/settings-reader.js';
import { serveCloud } from '../src/server.js';
import { callOn } from '@nodepool/driver-kit';
import { failureOf, imageSpec, instanceSpec } from './helpers.js';

interface Access {
  readonly api: ExampleCloudApi;
  stop(): Promise<void>;
}

type Open = (cloud: ExampleCloud, clock: VirtualClock, onApiCall: (call: ApiCall) => void) => Promise<Access>;

const inProcess: Open = async (cloud, clock, onApiCall) => ({
  api: new InProcessClient(cloud, { clock, onApiCall }),
  stop: async () => undefined,
});

const overHttp: Open = async (cloud, clock, onApiCall) => {
  const server = await serveCloud(cloud, { port: 0, address: '127.0.0.1' });
  return { api: new HttpClient(server.endpoint, { clock, onApiCall }), stop: () => server.stop() };
};

describe.each([
  ['in process', inProcess],
  ['over HTTP', overHttp],
])('a client of the example cloud %s', (how, open) => {
  let cloud: ExampleCloud;
  let access: Access;
  let api: ExampleCloudApi;
  let clock: VirtualClock;
  let apiCalls: ApiCall[];

  beforeEach(async () => {
    clock = new VirtualClock();
    cloud = new ExampleCloud({ clock, random: seededRandom(3) });
    apiCalls = [];
    access = await open(cloud, clock, (call) => apiCalls.push(call));
    ({ api } = access);
  });

  afterEach(() => access.stop());

  function configure(section: JsonObject): void {
    cloud.configure(readCloudSettings(section));
  }

  it('creates, lists and deletes instances', async () => {
    const spec = instanceSpec({ tags: { nodepool_node_id: '0000000001' }, size: 'small', cores: null, ram: null });
    const created = await api.createInstance(spec, callOn(clock));
    expect(created).toEqual(cloud.existingInstances()[0]);
    expect(created).toMatchObject({ state: 'running', cores: 1, ram: 1024, tags: { nodepool_node_id: '0000000001' } });
    expect(await api.listInstances(null, callOn(clock))).toEqual({ items: [created], next: null });
    expect(await api.consoleOf(created.id, callOn(clock))).toContain('login:');
    expect(await api.deleteInstance(created.id, callOn(clock))).toMatchObject({ id: created.id, state: 'deleted' });
    expect(await api.listInstances(null, callOn(clock))).toEqual({ items: [], next: null });
  });

  it('lists page by page', async () => {
    configure({ 'page-size': 2 });
    for (const name of ['a', 'b', 'c']) await api.createInstance(instanceSpec({ name }), callOn(clock));
    const first = await api.listInstances(null, callOn(clock));
    expect(first.items.map(({ name }) => name)).toEqual(['a', 'b']);
    const second = await api.listInstances(first.next, callOn(clock));
    expect(second).toMatchObject({ items: [{ name: 'c' }], next: null });
  });

  it('describes the zones, sizes and quota of the cloud', async () => {
    configure({ zones: ['a', 'b'], quota: { instances: 5 } });
    const description = await api.describe(callOn(clock));
    expect(description).toMatchObject({ zones: ['a', 'b'], quota: { instances: 5, cores: -1, ram: -1 } });
    expect(description.sizes.map(({ name }) => name)).toEqual(['small', 'medium', 'large']);
  });

  it('uploads images as streams, and deletes them', async () => {
    const data = Buffer.alloc(3_000_000, 'x');
    const sha256 = createHash('sha256').update(data).digest('hex');
    const tags = { nodepool_upload_id: '1' };
    const { id } = await api.createImage(imageSpec({ size: data.length, sha256, tags }), callOn(clock));
    const pieces = [data.subarray(0, 1_000_000), data.subarray(1_000_000)];
    const stream = (): Readable => Readable.from(pieces, { objectMode: false });
    expect(await api.putImageData(id, stream, callOn(clock))).toMatchObject({ id, state: 'ready', tags });
    expect(await api.listImages(null, callOn(clock))).toMatchObject({ items: [{ id, state: 'ready' }], next: null });
    await api.deleteImage(id, callOn(clock));
    expect(await failureOf(() => api.deleteImage(id, callOn(clock)))).toMatchObject({ code: 'not-found' });
  });

  it('refuses damaged image data with a transient error', async () => {
    const { id } = await api.createImage(imageSpec({ size: 3, md5: 'ff' }), callOn(clock));
    const data = (): Readable => Readable.from([Buffer.from('abc')]);
    const failure = await failureOf(() => api.putImageData(id, data, callOn(clock)));
    expect(failure).toMatchObject({
      code: 'transient',
      outcome: 'not-applied',
      message: expect.stringContaining('md5'),
    });
  });

  it.each([
    ['quota', { quota: { instances: 0 } }, { code: 'quota', outcome: 'not-applied' }],
    ['rate limit', { 'rate-limit': 0.1 }, { code: 'throttled', outcome: 'not-applied', retryAfterMs: 10_000 }],
    ['zone without capacity', { faults: { 'capacity-errors': 1 } }, { code: 'capacity', outcome: 'not-applied' }],
    ['unknown image', { 'public-images': ['other'] }, { code: 'configuration', outcome: 'not-applied' }],
    ['refused credentials', { faults: { 'auth-errors': 1 } }, { code: 'auth', outcome: 'not-applied' }],
    ['internal error', { faults: { 'create-errors': 1 } }, { code: 'transient', outcome: 'unknown' }],
  ] as const)('returns the right error for a refusal: %s', async (_refusal, section, expected) => {
    if ('rate-limit' in section) {
      configure(section);
      await api.describe(callOn(clock));
    }
    configure(section);
    const failure = await failureOf(() => api.createInstance(instanceSpec(), callOn(clock)));
    expect(failure).toMatchObject(expected);
    expect(cloud.existingInstances()).toEqual([]);
  });

  it('reports an unknown outcome if the answer is lost', async () => {
    configure({ faults: { 'lost-answers': 1 } });
    const failure = await failureOf(() => api.createInstance(instanceSpec(), callOn(clock)));
    expect(failure).toMatchObject({ code: 'transient', outcome: 'unknown' });
    expect(cloud.existingInstances()).toHaveLength(1);
  });

  it('reports a deletion of a nonexistent resource', async () => {
    const failure = await failureOf(() => api.deleteInstance('i-none/../x', callOn(clock)));
    expect(failure).toMatchObject({ code: 'not-found', message: expect.stringContaining('i-none/../x') });
  });

  it('ends a call at its deadline with an unknown outcome', async () => {
    configure({ 'api-latency': 100 });
    const failure = failureOf(() => api.createInstance(instanceSpec(), callOn(clock, 5000)));
    await clock.advance(5000);
    expect(await failure).toMatchObject({ code: 'timeout', outcome: 'unknown' });
  });

  it('ends a call if its signal aborts', async () => {
    configure({ 'api-latency': 100 });
    const controller = new AbortController();
    const failure = failureOf(() => api.createInstance(instanceSpec(), callOn(clock, undefined, controller.signal)));
    await clock.settle();
    controller.abort(new Error('the request was withdrawn'));
    expect(await failure).toMatchObject({ code: 'aborted', outcome: 'unknown' });
    const late = await failureOf(() => api.createInstance(instanceSpec(), callOn(clock, undefined, controller.signal)));
    expect(late).toMatchObject({ code: 'aborted', outcome: 'not-applied' });
  });

  it('reports every call, with its status', async () => {
    const { id } = await api.createInstance(instanceSpec(), callOn(clock));
    await api.deleteInstance(id, callOn(clock));
    await failureOf(() => api.deleteInstance(id, callOn(clock)));
    // HTTP has a status of its own for what was created.
    const created = how === 'over HTTP' ? 201 : 200;
    expect(apiCalls).toMatchObject([
      { service: 'instances', method: 'POST', operation: 'create', status: created },
      { service: 'instances', method: 'DELETE', operation: 'delete', status: 200 },
      { service: 'instances', method: 'DELETE', operation: 'delete', status: 404 },
    ]);
  });

  it('leaves no timer behind', async () => {
    await api.createInstance(instanceSpec(), callOn(clock));
    await failureOf(() => api.deleteInstance('i-none', callOn(clock)));
    expect(clock.pending).toBe(0);
  });
});

describe('a client over HTTP', () => {
  const clock = new VirtualClock();
  const servers: Server[] = [];

  afterEach(async () => {
    for (const server of servers.splice(0)) {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    }
  });

  async function serving(
    answer: (response: ServerResponse, request: IncomingMessage) => void,
  ): Promise<ExampleCloudApi> {
    const server = createServer((request, response) => {
      request.resume();
      answer(response, request);
    });
    servers.push(server);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    return new HttpClient(`http://127.0.0.1:${port}/`, { clock, onApiCall: () => undefined });
  }

  it('reports a refused connection as not applied, with a remedy', async () => {
    const cloud = new ExampleCloud({ clock, random: seededRandom(1) });
    const server = await serveCloud(cloud, { port: 0, address: '127.0.0.1' });
    await server.stop();
    const api = new HttpClient(server.endpoint, { clock, onApiCall: () => undefined });
    const failure = await failureOf(() => api.createInstance(instanceSpec(), callOn(clock)));
    expect(failure).toMatchObject({
      code: 'transient',
      outcome: 'not-applied',
      message: expect.stringMatching(
        /\(connect ECONNREFUSED 127\.0\.0\.1:\d+\); is nodepool-example-cloud running there\?/,
      ),
    });
  });

  it('names the reason why a connection cannot be used', async () => {
    const api = new HttpClient('http://127.0.0.1:1', { clock, onApiCall: () => undefined });
    const failure = await failureOf(() => api.createInstance(instanceSpec(), callOn(clock)));
    expect(failure).toMatchObject({ code: 'transient', message: expect.stringContaining('(bad port)') });
  });

  it.each([
    ['text that is not JSON', 200, '<html>hello</html>'],
    ['JSON of another shape', 200, '{"id": 7}'],
    ['an empty text', 200, ''],
    ['a list instead of an object', 200, '[]'],
  ])('reports an unknown outcome if the answer is %s', async (_what, status, body) => {
    const api = await serving((response) => response.writeHead(status).end(body));
    const failure = await failureOf(() => api.createInstance(instanceSpec(), callOn(clock)));
    expect(failure).toMatchObject({
      code: 'transient',
      outcome: 'unknown',
      message: expect.stringContaining('unreadable'),
    });
  });

  it('reports an unknown outcome if the answer breaks off', async () => {
    const api = await serving((response) => {
      response.writeHead(200, { 'content-length': '1000' }).write('{"id": "i-1"');
      response.destroy();
    });
    const failure = await failureOf(() => api.createInstance(instanceSpec(), callOn(clock)));
    expect(failure).toMatchObject({ code: 'transient', outcome: 'unknown' });
  });

  it.each([301, 302, 307, 308])(
    'follows redirects of status %i within its host, with method and body',
    async (status) => {
      const cloud = new ExampleCloud({ clock, random: seededRandom(3) });
      const server = await serveCloud(cloud, { port: 0, address: '127.0.0.1' });
      const target = new URL(server.endpoint);
      const api = await serving((response, request) =>
        response.writeHead(status, { location: `http://127.0.0.1:${target.port}${request.url}` }).end(),
      );
      const data = Buffer.alloc(1_000_000, 'x');
      const { id } = await api.createImage(imageSpec({ size: data.length }), callOn(clock));
      expect(await api.putImageData(id, () => Readable.from([data]), callOn(clock))).toMatchObject({ state: 'ready' });
      await server.stop();
    },
  );

  it('refuses redirects to another host', async () => {
    const api = await serving((response) => response.writeHead(307, { location: 'http://localhost:1/' }).end());
    const failure = await failureOf(() => api.createInstance(instanceSpec(), callOn(clock)));
    expect(failure).toMatchObject({
      code: 'transient',
      message: expect.stringContaining('it redirects to localhost:1'),
    });
  });

  it('stops reading an endless answer', async () => {
    const api = await serving((response) => {
      const piece = Buffer.alloc(2 ** 20, ' ');
      const pour = (): void => {
        while (!response.destroyed && response.write(piece));
      };
      response.on('drain', pour);
      pour();
    });
    const failure = await failureOf(() => api.listInstances(null, callOn(clock)));
    expect(failure).toMatchObject({ code: 'transient', message: expect.stringContaining('longer than') });
  });

  it.each([
    [400, 'unexpected', 'unknown'],
    [401, 'auth', 'not-applied'],
    [403, 'auth', 'not-applied'],
    [404, 'transient', 'unknown'],
    [409, 'conflict', 'not-applied'],
    [429, 'throttled', 'not-applied'],
    [500, 'transient', 'unknown'],
    [502, 'transient', 'unknown'],
    [503, 'transient', 'unknown'],
    [418, 'unexpected', 'unknown'],
  ])('reports status %i of a proxy as %s with outcome %s', async (status, code, outcome) => {
    const api = await serving((response) => response.writeHead(status, { 'retry-after': '7' }).end('<html></html>'));
    const failure = await failureOf(() => api.createInstance(instanceSpec(), callOn(clock)));
    expect(failure).toMatchObject({ code, outcome, message: expect.stringContaining(String(status)) });
    if (code === 'throttled') expect(failure).toMatchObject({ retryAfterMs: 7000 });
  });
});

describe('the HTTP API', () => {
  it('refuses an invalid request, and continues to serve', async () => {
    const clock = new VirtualClock();
    const cloud = new ExampleCloud({ clock, random: seededRandom(1) });
    const server = await serveCloud(cloud, { port: 0, address: '127.0.0.1' });
    const post = (body: string): Promise<Response> =>
      fetch(`${server.endpoint}/v1/instances`, {
        method: 'POST',
        body,
        headers: { 'content-type': 'application/json' },
      });
    try {
      expect((await post('{"name": ')).status).toBe(400);
      expect((await post('{}')).status).toBe(400);
      expect((await post(JSON.stringify({ ...instanceSpec(), cores: -1 }))).status).toBe(400);
      expect((await fetch(`${server.endpoint}/v2/nothing`)).status).toBe(404);
      expect((await fetch(`${server.endpoint}/v1/instances?limit=none`)).status).toBe(400);
      expect((await post(JSON.stringify(instanceSpec()))).status).toBe(201);
    } finally {
      await server.stop();
    }
    expect(cloud.existingInstances()).toHaveLength(1);
  });
});

import { connect } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { silentLogger } from '@nodepool/core';
import { createWebServer, type WebServer } from '../src/web/index.js';
import { ManualClock, nodeEntry, pool, Records, requestEntry } from './fixtures.js';

const BROWSER = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8';

let records: Records;
let clock: ManualClock;
let ready: boolean;
let errors: unknown[];
let server: WebServer;
let port: number;

beforeEach(async () => {
  records = new Records();
  clock = new ManualClock();
  ready = false;
  errors = [];
  const log = {
    ...silentLogger,
    error: (_message: string, error: unknown) => void errors.push(error),
    named: () => log,
  };
  server = createWebServer({
    store: records.asStore(),
    log,
    clock,
    isReady: () => ready,
  });
  ({ port } = await server.start({ port: 0, address: '127.0.0.1', otherAddress: '' }));
});

afterEach(() => server.stop());

function get(path: string, headers: Record<string, string> = {}, method = 'GET'): Promise<Response> {
  return fetch(`http://127.0.0.1:${port}${path}`, { method, headers: { Connection: 'close', ...headers } });
}

const json = async (path: string): Promise<unknown> => (await get(path, { Accept: 'application/json' })).json();

describe('the lists', () => {
  it('are JSON for clients that accept it', async () => {
    records.nodes = [nodeEntry('0000000001')];
    const response = await get('/node-list', { Accept: 'application/json' });
    expect(response.status).toBe(200);
    expect(response.headers.get('content-type')).toMatch(/^application\/json/);
    expect(await response.json()).toEqual([
      expect.objectContaining({
        id: '0000000001',
        label: ['small'],
        age: '00:01:00:00',
        locked: 'unlocked',
        ipv6: '',
        public_ipv4: '192.0.2.7',
        connection_port: 22,
        driver_data: null,
      }),
    ]);
  });

  it.each([
    [BROWSER, 'text/plain'],
    ['*/*', 'text/plain'],
    ['text/plain', 'text/plain'],
    ['application/json;q=0.1, text/plain', 'text/plain'],
    ['application/json;q=0', 'text/plain'],
    ['application/xml', 'text/plain'],
    ['application/json, text/plain, */*', 'application/json'],
    ['application/json;q=0.9, text/html', 'application/json'],
    ['Application/JSON', 'application/json'],
    ['application/json;q=nonsense', 'text/plain'],
  ])('for Accept: %s are %s', async (accept, type) => {
    const response = await get('/label-list', { Accept: accept });
    expect(response.headers.get('content-type')?.split(';')[0]).toBe(type);
  });

  it('are text tables of the selected fields', async () => {
    records.nodes = [nodeEntry('0000000001')];
    const response = await get('/node-list?fields=state,id');
    expect(await response.text()).toBe(
      [
        '+------------+-------+',
        '| ID         | State |',
        '+------------+-------+',
        '| 0000000001 | ready |',
        '+------------+-------+',
        '',
      ].join('\n'),
    );
  });

  it('find a node by id, and none for an unknown one', async () => {
    records.nodes = [nodeEntry('0000000001'), nodeEntry('0000000002')];
    expect(await json('/node-list?node_id=0000000002&fields=id')).toEqual([{ id: '0000000002' }]);
    expect(await json('/node-list?node_id=999999')).toEqual([]);
    expect(await json('/node-list?node_id=')).toEqual(await json('/node-list'));
  });

  it('show requests and the labels of the registered pools', async () => {
    records.requests = [requestEntry('200-0000000001', ['small', 'big'])];
    records.pools = [pool('a', ['small', 'big']), pool('b', ['small'])];
    expect(await json('/request-list?fields=id,node_types,event_id')).toEqual([
      { id: '200-0000000001', node_types: ['small', 'big'], event_id: 'event' },
    ]);
    expect(await json('/label-list')).toEqual([
      { label: 'big', provider: ['cloud'] },
      { label: 'small', provider: ['cloud'] },
    ]);
  });

  it('show uploads, builds and requests for images', async () => {
    const common = { username: null, python_path: null, shell_type: null, state_time: clock.now() / 1000 - 60 };
    records.images = {
      images: () => ['debian'],
      builds: (image) => [
        { ...common, image, id: 'b1', state: 'ready', builder: 'nb01', builder_id: 'b', formats: ['qcow2', 'raw'] },
      ],
      *uploads({ image = '' }) {
        const place = { image, build: 'b1', provider: 'cloud', id: '0000000001' };
        yield { ...common, ...place, state: 'ready', external_id: 'e', external_name: 'n', format: 'qcow2' };
      },
      paused: () => true,
      buildRequestedAt: () => clock.now() / 1000 - 5,
      isBuilding: () => false,
      lastBuildFailure: () => ({
        time: age + 1,
        build: 'b0',
        builder: 'nb02',
        reason: 'exit',
        message: 'm',
        log: '/l',
      }),
    };
    const age = clock.now() / 1000 - 60;
    const upload = { id: 'b1', upload_id: '0000000001', provider: 'cloud', image: 'debian', state: 'ready', age };
    const stage = { stage: null, stage_age: null, stage_by: null, stage_reason: null };
    expect(await json('/image-list')).toEqual([
      { ...upload, external_name: 'n', external_id: 'e', progress: null, ...stage },
    ]);
    expect(await json('/dib-image-list')).toEqual([
      { id: 'debian-b1', image: 'debian', builder: 'nb01', formats: ['qcow2', 'raw'], state: 'paused', age },
    ]);
    expect(await json('/image-status')).toEqual([
      {
        ...{ image: 'debian', paused: true, build_request: 'pending', build_request_age: age + 55 },
        last_failure: 'm',
        last_failure_age: age + 1,
        last_failure_builder: 'nb02',
        last_failure_log: '/l',
      },
    ]);
    const table = await (await get('/dib-image-list?fields=id,age')).text();
    expect(table).toContain('| debian-b1 | 00:00:01:00 |');
    expect((await get('/image-list?fields=colour')).status).toBe(400);
    const headers = async (path: string): Promise<string | undefined> =>
      (await (await get(path)).text()).split('\n')[1];
    expect(await headers('/image-list')).toBe(
      '| Build ID | Upload ID  | Provider | Image  | Provider Image Name | Provider Image ID | State | Age         |',
    );
    expect(await headers('/image-status')).toBe('| Image  | Paused | Build Request | Build Request Age |');
    expect(await headers('/image-status?fields=image,last_failure_log')).toBe('| Image  | Last Failure Log |');
  });

  it('can be read by pages of other sites and cached for a second', async () => {
    const { headers } = await get('/node-list');
    const now = clock.now();
    expect(Object.fromEntries(headers)).toMatchObject({
      'access-control-allow-origin': '*',
      'cache-control': 'public, max-age=1',
      'last-modified': new Date(now).toUTCString(),
      expires: new Date(now + 1000).toUTCString(),
      vary: 'Accept',
    });
  });
});

describe('the cache', () => {
  it('creates a list once per second for any number of clients', async () => {
    await Promise.all([1, 2, 3].map(() => json('/node-list')));
    expect(records.listed).toBe(1);
    clock.advance(1000);
    records.nodes = [nodeEntry('0000000001')];
    expect(await json('/node-list')).toHaveLength(1);
    expect(records.listed).toBe(2);
  });

  it('distinguishes formats, fields and nodes', async () => {
    records.nodes = [nodeEntry('0000000001'), nodeEntry('0000000002')];
    expect(await json('/node-list?fields=id')).toHaveLength(2);
    expect(await json('/node-list?fields=state')).toEqual([{ state: 'ready' }, { state: 'ready' }]);
    expect(await json('/node-list?node_id=0000000001&fields=id')).toEqual([{ id: '0000000001' }]);
    expect(await (await get('/node-list?fields=id')).text()).toContain('+----');
  });

  it('answers 304 to a client that has the list', async () => {
    const modified = (await get('/node-list')).headers.get('last-modified') ?? '';
    const again = await get('/node-list', { 'If-Modified-Since': modified });
    expect(again.status).toBe(304);
    expect(await again.text()).toBe('');
    clock.advance(2000);
    expect((await get('/node-list', { 'If-Modified-Since': modified })).status).toBe(200);
    expect((await get('/node-list', { 'If-Modified-Since': 'nonsense' })).status).toBe(200);
  });

  it('stores few answers for any number of different queries', async () => {
    await json('/node-list?fields=id');
    for (const field of ['provider', 'label', 'server_id', 'ipv6', 'state', 'age', 'locked', 'pool']) {
      await json(`/node-list?fields=${field}`);
    }
    const before = records.listed;
    await json('/node-list?fields=pool');
    expect(records.listed).toBe(before);
    await json('/node-list?fields=id');
    expect(records.listed).toBe(before + 1);
  });

  it('releases its entries and its timer', async () => {
    await json('/node-list');
    expect(clock.pending).toBe(1);
    clock.advance(1000);
    expect(clock.pending).toBe(0);
  });
});

describe('an invalid query', () => {
  it.each([
    ['an unknown field', '/node-list?fields=id,colour', 'no field "colour"'],
    ['an inherited property', '/node-list?fields=__proto__', 'no field "__proto__"'],
    ['two ids', '/node-list?node_id=1&node_id=2', 'node_id: given more than once'],
    ['too many fields', `/node-list?fields=${'id,'.repeat(300)}`, 'longer than 500'],
  ])('gets 400 and the reason for %s', async (_name, path, reason) => {
    const response = await get(path, { Accept: 'application/json' });
    expect(response.status).toBe(400);
    expect(await response.json()).toEqual({ statusCode: 400, message: expect.stringContaining(reason) });
    expect(errors).toEqual([]);
  });

  it('with unknown parameters is accepted, as by the Python Nodepool', async () => {
    expect((await get('/label-list?_=123&pretty')).status).toBe(200);
  });

  it('gets 400 for a path that is not valid text', async () => {
    expect((await get('/node-list/%ff%fe')).status).toBeGreaterThanOrEqual(400);
    expect((await get('/%')).status).toBe(400);
    expect(errors).toEqual([]);
  });
});

describe('other pages', () => {
  it('do not exist', async () => {
    const text = await get('/nothing');
    expect(text.status).toBe(404);
    expect(text.headers.get('content-type')).toMatch(/^text\/plain/);
    const asJson = await get('/nothing', { Accept: 'application/json' });
    expect(await asJson.json()).toMatchObject({ statusCode: 404 });
  });

  it('cannot be written', async () => {
    expect((await get('/node-list', {}, 'DELETE')).status).toBe(405);
    expect((await get('/node-list', {}, 'POST')).status).toBe(405);
  });

  it('answer HEAD like GET, without the body', async () => {
    const response = await get('/label-list', {}, 'HEAD');
    expect(response.status).toBe(200);
    expect(await response.text()).toBe('');
  });
});

describe('the probes', () => {
  it('/ready is 503 until every provider has started, then 200 OK', async () => {
    expect((await get('/ready')).status).toBe(503);
    ready = true;
    const response = await get('/ready');
    expect(response.status).toBe(200);
    expect(await response.text()).toBe('OK');
  });

  it('/health reports the connections of the launcher, and is always 200', async () => {
    expect(await json('/health')).toEqual({ status: 'ok', ready: false, zookeeper: 'connected', caches: 'complete' });
    records.complete = false;
    const response = await get('/health');
    expect(response.status).toBe(200);
    expect(await response.json()).toMatchObject({ status: 'degraded', caches: 'incomplete' });
  });
});

describe('the server', () => {
  it('reports an internal error and logs it when a list fails', async () => {
    records.nodes = [Object.assign(nodeEntry('0000000001'), { node: null })];
    const response = await get('/node-list');
    expect(response.status).toBe(500);
    expect(await response.text()).toBe('internal error; see the log\n');
    expect(errors).toHaveLength(1);
  });

  it('survives connections that are not HTTP', async () => {
    const socket = connect(port, '127.0.0.1');
    await new Promise((resolve) => {
      socket.on('close', resolve).on('error', resolve).resume();
      socket.write('\u0000\u0001 nonsense\r\n\r\n');
    });
    expect((await get('/label-list')).status).toBe(200);
  });

  it('reports an address in use with a remedy', async () => {
    const other = createWebServer({
      store: records.asStore(),
      log: silentLogger,
      clock,
      isReady: () => true,
    });
    const endpoint = { port, address: '127.0.0.1', otherAddress: 'choose others with `webapp`' };
    await expect(other.start(endpoint)).rejects.toThrow(
      new RegExp(`cannot listen on 127.0.0.1 port ${port}: .*EADDRINUSE.*webapp`),
    );
    await other.stop();
  });

  it('stops at once although clients keep their connections, and frees the port', async () => {
    await (await fetch(`http://127.0.0.1:${port}/label-list`)).text();
    await server.stop();
    await server.stop();
    await expect(get('/label-list')).rejects.toThrow();
  });
});

/** Calls to the services: tokens, order, pages, retries and metrics. */

import { afterEach, describe, expect, it } from '@jest/globals';
import { sleep, type ApiCall } from '@nodepool/core';
import type { Cloud } from '../src/client/cloud.js';
import { Compute } from '../src/client/compute.js';
import { Networking } from '../src/client/network.js';
import { Session } from '../src/client/session.js';
import type { HttpAnswer, HttpRequest, HttpTransport } from '../src/client/transport.js';
import { callOn, failureOf, simulatedTime } from '@nodepool/driver-kit';
import { openCloud, section, type OpenCloud } from './cloud.js';
import { TestProvider } from './provider.js';

const service = { endpoint: undefined, serviceType: undefined, interface: undefined, microversion: undefined };

const cloud: Cloud = {
  name: 'acme',
  source: 'clouds.yaml',
  credentials: { identityUrl: 'http://id/v3', body: {} },
  regionName: undefined,
  interface: 'public',
  tls: { verify: true, cacert: undefined, cert: undefined, key: undefined },
  imageFormat: 'qcow2',
  imageTasks: false,
  services: { compute: service, image: service, network: service, volume: service },
  floatingIps: true,
  private: false,
  networks: [],
};

const endpoints = ['north', 'south'].map((region) => ({
  interface: 'public',
  region_id: region,
  url: `http://${region}/v2.1/$(project_id)s`,
}));

type Answerer = (request: HttpRequest, count: number) => HttpAnswer | Promise<HttpAnswer>;

/** A scripted cloud; logins return `token-1`, `token-2`, … */
class Script implements HttpTransport {
  readonly requests: HttpRequest[] = [];
  logins = 0;
  closed = false;

  constructor(private readonly answer: Answerer) {}

  async send(request: HttpRequest): Promise<HttpAnswer> {
    // Yields, so that concurrent calls overlap.
    await Promise.resolve();
    if (request.url.endsWith('/auth/tokens')) return this.logIn();
    this.requests.push(request);
    return this.answer(request, this.requests.length);
  }

  async close(): Promise<void> {
    this.closed = true;
  }

  private logIn(): HttpAnswer {
    this.logins += 1;
    const token = {
      issued_at: '2026-01-01T00:00:00Z',
      expires_at: '2026-01-01T01:00:00Z',
      project: { id: 'p1' },
      catalog: [
        { type: 'compute', endpoints },
        { type: 'volumev3', endpoints: endpoints.filter(({ region_id: region }) => region === 'south') },
      ],
    };
    return json(201, { token }, { 'x-subject-token': `token-${this.logins}` });
  }
}

function json(status: number, body: unknown, headers: Record<string, string> = {}): HttpAnswer {
  return { status, headers, text: JSON.stringify(body) };
}

const time = simulatedTime();

function sessionOn(
  transport: HttpTransport,
  change: Partial<Cloud> = { regionName: 'north' },
  callsPerSecond = Infinity,
): { session: Session; calls: ApiCall[] } {
  const calls: ApiCall[] = [];
  const { clock } = time;
  const all = { ...cloud, ...change };
  const session = new Session({
    cloud: all,
    credentials: () => all.credentials,
    transport,
    clock,
    callsPerSecond,
    onApiCall: (call) => calls.push(call),
    makeCall: () => callOn(clock),
  });
  return { session, calls };
}

const LIMITS = { service: 'compute', method: 'GET', operation: 'limits', path: '/limits' } as const;
const CREATE = { service: 'compute', method: 'POST', operation: 'servers', path: '/servers', json: {} } as const;

describe('a session', () => {
  it('logs in once for all calls, at the endpoint of its region, with the project filled in', async () => {
    const script = new Script(() => json(200, {}));
    const { session } = sessionOn(script);
    await Promise.all([1, 2, 3].map(() => session.requestJson(LIMITS, callOn(time.clock))));
    expect(script.logins).toBe(1);
    expect(script.requests.map(({ url }) => url)).toEqual(Array(3).fill('http://north/v2.1/p1/limits'));
    expect(script.requests[0]?.headers).toMatchObject({ 'x-auth-token': 'token-1' });
  });

  it('has only the services of its region', async () => {
    const inRegion = (regionName: string): Session =>
      sessionOn(new Script(() => json(200, {})), { regionName }).session;
    expect(await inRegion('north').has('volume')).toBe(false);
    expect(await inRegion('south').has('volume')).toBe(true);
    expect(await inRegion('south').has('network')).toBe(false);
  });

  it('renews its token before it expires', async () => {
    const script = new Script(() => json(200, {}));
    const { session } = sessionOn(script);
    await session.requestJson(LIMITS, callOn(time.clock));
    await time.clock.advance(54 * 60_000);
    await session.requestJson(LIMITS, callOn(time.clock));
    expect(script.logins).toBe(1);
    await time.clock.advance(2 * 60_000);
    await session.requestJson(LIMITS, callOn(time.clock));
    expect(script.logins).toBe(2);
  });

  it('renews a refused token once for all calls in flight, and repeats them', async () => {
    const script = new Script(({ headers }) => json(headers['x-auth-token'] === 'token-1' ? 401 : 200, {}));
    const { session } = sessionOn(script);
    const calls = Array.from({ length: 10 }, (_, index) =>
      session.requestJson(index % 2 === 0 ? LIMITS : CREATE, callOn(time.clock)),
    );
    await Promise.all(calls);
    expect(script.logins).toBe(2);
    expect(script.requests).toHaveLength(20);
  });

  it('fails if a new token is refused, too', async () => {
    const script = new Script(() => json(401, { error: { message: 'no' } }));
    const { session } = sessionOn(script);
    expect(await failureOf(session.requestJson(LIMITS, callOn(time.clock)))).toMatchObject({ code: 'auth' });
    expect(script.logins).toBe(2);
  });

  it('pauses the calls to a service for the time that it demands', async () => {
    const script = new Script((_request, count) =>
      count === 1 ? json(429, {}, { 'retry-after': '20' }) : json(200, {}),
    );
    const { session } = sessionOn(script);
    await failureOf(session.requestJson(CREATE, callOn(time.clock)));
    let answered = false;
    const next = session.requestJson(LIMITS, callOn(time.clock)).then(() => {
      answered = true;
    });
    await time.clock.advance(19_000);
    expect(answered).toBe(false);
    await time.clock.advance(2000);
    await next;
  });

  it('serves other services while the calls to a service are paused', async () => {
    const script = new Script((_request, count) =>
      count === 1 ? json(429, {}, { 'retry-after': '600' }) : json(200, {}),
    );
    const network = { ...service, endpoint: 'http://neutron' };
    const services = { ...cloud.services, network };
    const { session } = sessionOn(script, { regionName: 'north', services });
    const DELETE = { service: 'network', method: 'DELETE', operation: 'floatingip', path: '/floatingips/x' } as const;
    await failureOf(session.requestJson(DELETE, callOn(time.clock)));
    const others = Array.from({ length: 30 }, () => session.requestJson(DELETE, callOn(time.clock)));
    const creation = session.requestJson(CREATE, callOn(time.clock));
    await time.clock.advance(10_000);
    expect(script.requests.at(-1)?.url).toBe('http://north/v2.1/p1/servers');
    await creation;
    await time.clock.advance(600_000);
    await Promise.all(others);
  });

  it('makes calls that wait for the rate limit for longer than their deadline', async () => {
    const script = new Script(async () => {
      await sleep(time.clock, 10, new AbortController().signal);
      return json(200, {});
    });
    const { session } = sessionOn(script, { regionName: 'north' }, 1);
    const call = { ...callOn(time.clock), deadline: time.clock.monotonic() + 120_000 };
    const calls = Array.from({ length: 150 }, () => session.requestJson(CREATE, call));
    const results = Promise.allSettled(calls);
    await time.clock.advance(200_000);
    expect((await results).filter(({ status }) => status === 'rejected')).toEqual([]);
    expect(script.requests).toHaveLength(150);
  });

  it('ends an aborted call although its login gets no answer', async () => {
    const silent: HttpTransport = { send: () => new Promise(() => undefined), close: () => Promise.resolve() };
    const { session } = sessionOn(silent);
    const controller = new AbortController();
    const failure = failureOf(session.requestJson(LIMITS, { ...callOn(time.clock), signal: controller.signal }));
    await time.clock.advance(1000);
    const began = time.clock.monotonic();
    controller.abort(new Error('withdrawn'));
    expect(await failure).toMatchObject({ code: 'aborted', outcome: 'not-applied' });
    expect(time.clock.monotonic()).toBe(began);
    session.stop();
  });

  it('repeats only reading calls if the connection breaks', async () => {
    const broken = Object.assign(new Error('other side closed'), { code: 'UND_ERR_SOCKET' });
    const script = new Script((_request, count) => (count % 2 === 1 ? Promise.reject(broken) : json(200, {})));
    const { session, calls } = sessionOn(script);
    await session.requestJson(LIMITS, callOn(time.clock));
    expect(await failureOf(session.requestJson(CREATE, callOn(time.clock)))).toMatchObject({
      code: 'transient',
      outcome: 'unknown',
    });
    expect(calls.map(({ method, status }) => [method, status])).toEqual([
      ['POST', 201],
      ['GET', 200],
      ['POST', 'transient'],
    ]);
  });

  it('ends a call without an answer with an unknown outcome', async () => {
    const script = new Script(() => new Promise(() => undefined));
    const { session } = sessionOn(script);
    const failure = failureOf(session.requestJson(CREATE, callOn(time.clock)));
    await time.clock.advance(61_000);
    expect(await failure).toMatchObject({ code: 'timeout', outcome: 'unknown' });
  });

  it('ends a waiting call as not applied if its signal aborts', async () => {
    const script = new Script(() => new Promise(() => undefined));
    const { session } = sessionOn(script);
    const others = Array.from({ length: 30 }, () => failureOf(session.requestJson(CREATE, callOn(time.clock))));
    const controller = new AbortController();
    const waiting = failureOf(session.requestJson(CREATE, { ...callOn(time.clock), signal: controller.signal }));
    await time.clock.advance(1000);
    controller.abort(new Error('withdrawn'));
    expect(await waiting).toMatchObject({ code: 'aborted', outcome: 'not-applied' });
    session.stop();
    await Promise.all(others);
  });

  it.each([
    ['a missing region name and several regions', {}, 'region_name is missing'],
    ['a nonexistent region', { regionName: 'west' }, 'in region west; it has regions: north, south'],
    ['a nonexistent interface', { interface: 'internal' as const }, 'at interface internal; it has interfaces: public'],
  ])('reports the valid values with %s', async (_case, change, message) => {
    const { session } = sessionOn(new Script(() => json(200, {})), change);
    expect(await failureOf(session.requestJson(LIMITS, callOn(time.clock)))).toMatchObject({
      code: 'configuration',
      message: expect.stringContaining(message),
    });
  });
});

describe('a deletion', () => {
  const remove = (answer: HttpAnswer): Promise<void> =>
    sessionOn(new Script(() => answer)).session.delete('compute', 'server', '/servers/1', callOn(time.clock));
  const ofService = { 'x-openstack-request-id': 'req-1' };

  it.each<[string, HttpAnswer]>([
    ['204 of a service', { status: 204, headers: ofService, text: '' }],
    ['202 of a service', { status: 202, headers: ofService, text: '' }],
    ['200 with the id of a request', { status: 200, headers: ofService, text: '{}' }],
    ['204 whose headers a proxy has removed', { status: 204, headers: {}, text: '' }],
  ])('with the answer %s succeeds', async (_answer, answer) => {
    await expect(remove(answer)).resolves.toBeUndefined();
  });

  it.each<[string, HttpAnswer]>([
    ['a page', { status: 200, headers: {}, text: '<html><body>Please log in</body></html>' }],
    ['a page with status 202', { status: 202, headers: {}, text: '<html></html>' }],
    ['JSON', json(200, { result: 'ok' })],
    ['nothing', { status: 200, headers: {}, text: '' }],
  ])('to which a proxy answers with %s fails, and may have had an effect', async (_answer, answer) => {
    expect(await failureOf(remove(answer))).toMatchObject({ code: 'transient', outcome: 'unknown' });
  });
});

describe('a list', () => {
  const page = (ids: readonly string[], next?: string): HttpAnswer =>
    json(200, {
      servers: ids.map((id) => ({ id, status: 'ACTIVE' })),
      ...(next === undefined
        ? {}
        : { servers_links: [{ rel: 'next', href: `http://elsewhere/v2.1/servers/detail${next}` }] }),
    });

  async function list(answer: Answerer): Promise<readonly string[]> {
    const script = new Script((request, count) =>
      request.url.endsWith('/v2.1/') ? json(200, { version: { version: '2.30' } }) : answer(request, count - 1),
    );
    const { session } = sessionOn(script);
    const compute = new Compute(session, undefined, () => callOn(time.clock), time.clock);
    const servers = await compute.listServers(callOn(time.clock));
    return servers.map(({ id }) => id);
  }

  it('follows the query of links at the known endpoint, and returns every server once', async () => {
    const urls: string[] = [];
    const ids = await list(({ url }, count) => {
      urls.push(url);
      return count === 1 ? page(['a', 'b'], '?marker=b') : page(['b', 'c']);
    });
    expect(ids).toEqual(['a', 'b', 'c']);
    expect(urls[1]).toBe('http://north/v2.1/p1/servers/detail?marker=b');
  });

  it.each<[string, Answerer]>([
    ['links its pages in a cycle', (_request, count) => page([String(count)], '?marker=b')],
    [
      'has a truncated page',
      (_request, count) =>
        count === 1 ? page(['a'], '?marker=a') : { status: 200, headers: {}, text: '{"servers": [{"id": "b' },
    ],
    ['has a page that fails', (_request, count) => (count === 1 ? page(['a'], '?marker=a') : json(500, {}))],
    [
      'lost the server before its second page',
      (_request, count) =>
        count === 1 ? page(['a'], '?marker=a') : json(400, { badRequest: { message: 'marker [a] not found' } }),
    ],
    ['contains an invalid server', () => json(200, { servers: ['a'] })],
    ['has no servers', () => json(200, {})],
  ])('that %s is rejected instead of truncated', async (_case, answer) => {
    expect(await failureOf(list(answer))).toMatchObject({ code: 'transient' });
  });

  it('of floating IPs is empty without a network service for them, and is rejected if only a later page is missing', async () => {
    const addressesOn = (answer: Answerer): ReturnType<Networking['listFloatingIps']> => {
      const network = { ...service, endpoint: 'http://north/network' };
      const { session } = sessionOn(new Script(answer), { services: { ...cloud.services, network } });
      return new Networking(session, async () => undefined).listFloatingIps(callOn(time.clock));
    };
    const lost = json(404, { NeutronError: { message: 'The resource could not be found.' } });
    const first = { id: 'f1', floating_ip_address: '192.0.2.1', status: 'DOWN' };
    const next = { rel: 'next', href: 'http://elsewhere/v2.0/floatingips?marker=f1' };
    const page = json(200, { floatingips: [first], floatingips_links: [next] });
    expect(await addressesOn(() => lost)).toEqual([]);
    const failure = await failureOf(addressesOn(({ url }) => (url.includes('marker=') ? lost : page)));
    expect(failure).toMatchObject({ code: 'transient', outcome: 'not-applied' });
  });
});

describe('a provider', () => {
  let open: OpenCloud;
  let test: TestProvider;

  afterEach(async () => {
    await test.stop();
    await open.cloud.close();
  });

  it('does not exceed its rate of calls', async () => {
    open = await openCloud();
    test = await TestProvider.started(open, section({ rate: 2 }));
    const before = open.time.clock.monotonic();
    const made = test.apiCalls.length;
    await test.end(Promise.all(['0000000001', '0000000002', '0000000003'].map((id) => test.begin(id))));
    const calls = test.apiCalls.length - made;
    expect(open.time.clock.monotonic() - before).toBeGreaterThanOrEqual((calls - 1) * 2000);
  });

  it('makes its list calls between the creations that wait for their turn', async () => {
    open = await openCloud();
    test = await TestProvider.started(open, section({ rate: 3 }));
    test.apiCalls.length = 0;
    const ids = Array.from({ length: 20 }, (_, index) => String(index).padStart(10, '0'));
    await test.end(Promise.all(ids.map((id) => test.begin(id))));
    const creations = test.apiCalls.flatMap(({ operation, method }, index) =>
      operation === 'servers' && method === 'POST' ? [index] : [],
    );
    const firstList = test.apiCalls.findIndex(({ operation }) => operation === 'servers.detail');
    expect(creations).toHaveLength(20);
    expect(creations.filter((index) => index < firstList).length).toBeLessThan(5);
  });

  it('continues if its token expires during launches', async () => {
    open = await openCloud({ tokenTtlMs: 20_000, bootMs: 90_000 });
    test = await TestProvider.started(open);
    await test.launch();
    expect(test.count('auth.tokens', 'POST')).toBeGreaterThan(2);
    expect(test.apiCalls.some(({ status }) => status === 401)).toBe(false);
  });

  it('fails to start with a reason if clouds.yaml lacks its cloud', async () => {
    open = await openCloud();
    test = new TestProvider(open, section({ cloud: 'nowhere' }));
    expect(await failureOf(test.start())).toMatchObject({
      code: 'configuration',
      message: expect.stringMatching(/there is no cloud "nowhere".*real, limited/),
    });
  });
});

/** Tests of `/status/v1`: the documents of a launcher with waiting, fulfilled and failed requests. */

import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { KeyScanError, TransientError, type JsonObject, type NodeRequestHandler, type Provider } from '@nodepool/core';
import { nodeDataWith } from '@nodepool/core/testing';
import type { StatusModel } from '@nodepool/status/web';
import { faultyDriver } from '../support/faulty-driver.js';
import { StatusSite } from '../support/status-site.js';
import { pool, provider, tenants, World, type RunningLauncher } from '../support/world.js';

let world: World;
let site: StatusSite | undefined;

beforeEach(() => {
  world = new World();
});
afterEach(async () => {
  await site?.stop();
  site = undefined;
  expect(await world.end()).toEqual([]);
});

/** Starts a launcher with a web endpoint. */
async function start(providers: readonly JsonObject[], hostname = 'launcher1'): Promise<RunningLauncher> {
  const labels = new Map([['small', { name: 'small', minReady: 3, maxReadyAgeMs: Infinity, maxWaitMs: Infinity }]]);
  site = await StatusSite.start(world, providers, { hostname, shownConfig: { labels } });
  return site.running;
}

const get = <T>(path: string): Promise<T> => site!.get<T>(path);
const status = (path: string): Promise<[number, string]> => site!.error(path);

describe('the status of a launcher at its limit', () => {
  let taken: string;
  let waiting: string[];
  beforeEach(async () => {
    await start([provider('demo', [pool('main', ['small', 'large'], { 'max-servers': 1 })])]);
    taken = await world.served(['small']);
    await world.during(world.requestor.take(taken));
    waiting = [];
    while (waiting.length < 3) {
      // The documents sort the requests by the time of their creation.
      await world.clock.advance(1);
      waiting.push(await world.submit(['small']));
    }
    await world.clock.advance(40_000);
  });

  it('shows the limit that a request waits for, since when, and the nodes that use it', async () => {
    const first = await get<StatusModel.RequestDocument>(`request/${waiting[0]!}`);
    expect(first.request).toMatchObject({ state: 'requested', phase: 'limit', labels: [{ label: 'small', count: 1 }] });
    expect(first.reason).toMatchObject({
      phase: 'limit',
      pool: 'demo/main',
      launcher: 'launcher1',
      missing: '1 instance',
      heldBy: [{ kind: 'node', id: '0000000000' }],
    });
    expect(first.reason?.text).toBe(
      'pool main of provider demo uses 1 of 1 instances, 1 more is needed. Its nodes: 1 in-use.',
    );
    expect(world.clock.now() / 1000 - first.reason!.since).toBeGreaterThan(39);
    expect(first.timeline.map(({ phase }) => phase)).toEqual(['order', 'limit']);
    expect(first.timeline.at(-1)?.to).toBeNull();
  });

  it('shows the earlier requests, and the limit of the first of them', async () => {
    const third = await get<StatusModel.RequestDocument>(`request/${waiting[2]!}`);
    expect(third.reason).toMatchObject({ phase: 'order', pool: 'demo/main' });
    expect(third.reason?.text).toMatch(/^2 requests that need the same come first; the next of them, 200-/);
    expect(third.reason?.heldBy[0]).toEqual({ kind: 'request', id: waiting[0] });
  });

  it('has consistent numbers on all pages', async () => {
    const overview = await get<StatusModel.OverviewDocument>('overview');
    expect(overview.requests).toMatchObject({ waiting: 3, progress: 0, fulfilled: 1, failed: 0 });
    expect(overview.reasons).toMatchObject([{ phase: 'limit', pool: 'demo/main', count: 3, labels: ['small'] }]);
    expect(overview.labels).toMatchObject([
      { name: 'large', waiting: 0 },
      { name: 'small', waiting: 3, inUse: 1, total: 1, readyTarget: 0, toNode: { count: 1 }, pools: ['demo/main'] },
    ]);
    expect(overview.providers).toMatchObject([{ name: 'demo', state: 'serving', pools: [{ waiting: 3 }] }]);
    expect(overview.nodes).toMatchObject({ total: 1, groups: { 'in use': 1 } });
    const requests = await get<StatusModel.RequestsDocument>('requests?state=waiting');
    expect(requests.rows.map(({ id }) => id)).toEqual(waiting);
    expect(requests.paging).toEqual({ matching: 3, offset: 0, limit: 100 });
    const label = await get<StatusModel.LabelDocument>('label/small');
    expect(label.label).toMatchObject({ waiting: 3, reason: { phase: 'limit' } });
    expect(label.requests.map(({ id }) => id)).toEqual([...waiting, taken]);
    expect(label.history.at(-1)).toMatchObject({ fulfilled: 1, failed: 0 });
  });

  it('selects requests in the given order', async () => {
    const part = await get<StatusModel.RequestsDocument>('requests?label=small&sort=-created&offset=1&limit=2');
    expect(part.rows.map(({ id }) => id)).toEqual([waiting[1], waiting[0]]);
    expect(part.paging).toEqual({ matching: 4, offset: 1, limit: 2 });
    expect(part.facets.requestor).toEqual([{ value: 'zuul', count: 4 }]);
    const ended = await get<StatusModel.RequestsDocument>('requests?state=fulfilled');
    expect(ended.rows).toMatchObject([{ id: taken, state: 'fulfilled', phase: null }]);
    expect((await get<StatusModel.RequestsDocument>('requests?q=no-such')).rows).toEqual([]);
  });

  it('keeps a request that its requestor withdrew', async () => {
    await world.during(world.requestor.withdraw(waiting[1]!));
    const gone = await get<StatusModel.RequestDocument>(`request/${waiting[1]!}`);
    expect(gone.request?.state).toBe('cancelled');
    expect(gone.summary).toBe('The request is deleted. Its requestor deleted it before it was served.');
  });

  it('lists nodes with facets, and the timeline of each', async () => {
    const nodes = await get<StatusModel.NodesDocument>('nodes?state=in-use&sort=age&q=zuul');
    expect(nodes.rows).toMatchObject([{ id: '0000000000', state: 'in-use', provider: 'demo', labels: ['small'] }]);
    expect(nodes.facets.state).toEqual([{ value: 'in-use', count: 1 }]);
    const { timeline, summary } = await get<StatusModel.NodeDocument>('node/0000000000');
    expect(timeline.map(({ phase }) => phase)).toEqual(['accepted', 'creating', 'handover', 'ready', 'in-use']);
    expect(summary).toBe('In use by its requestor.');
  });

  it('rejects invalid queries and unknown subjects', async () => {
    expect(await status('requests?color=red')).toEqual([400, expect.stringContaining('unknown parameter "color"')]);
    expect(await status('requests?limit=1e9')).toEqual([400, 'limit: not a whole number from 0 to 1000']);
    expect(await status('requests?offset=-1')).toEqual([400, expect.stringContaining('offset: not a whole number')]);
    expect(await status('nodes?sort=password')).toEqual([400, expect.stringContaining('sort: not one of id, age')]);
    expect(await status('nodes?state=a&state=b')).toEqual([400, 'state: given more than once']);
    expect(await status('nodes?state=in-use,inuse')).toEqual([
      400,
      expect.stringContaining('state: not one or several'),
    ]);
    expect(await status('requests?state=pending')).toEqual([400, expect.stringContaining('waiting, progress, ')]);
    expect(await status(`nodes?q=${'x'.repeat(300)}`)).toEqual([400, 'q: longer than 200 characters']);
    expect(await status('overview?x=1')).toEqual([400, expect.stringContaining('this page has no parameters')]);
    expect(await status('request/nonsense')).toEqual([404, expect.stringContaining('there is no request "nonsense"')]);
    expect(await status('node/__proto__')).toEqual([404, expect.stringContaining('there is no node')]);
  });
});

it('a provider shows its failures, with the last error message', async () => {
  world.scanner = { scan: () => Promise.reject(new KeyScanError('no host keys')) };
  await start([provider('demo', [pool('main', ['small'], { 'host-key-checking': true })])]);
  const id = await world.submit(['small']);
  await world.inState(id, 'failed');
  const { provider: demo, requests } = await get<StatusModel.ProviderDocument>('provider/demo');
  expect(demo).toMatchObject({
    launches: { started: 3, failed: 3 },
    lastError: { text: 'no host keys', code: 'keyscan' },
    failures: [{ code: 'keyscan', count: 3, text: 'no host keys' }],
  });
  expect(requests).toMatchObject([{ id, state: 'failed', pool: 'demo/main' }]);
  const request = await get<StatusModel.RequestDocument>(`request/${id}`);
  expect(request.attempts).toMatchObject(
    [1, 2, 3].map((number) => ({ number, offer: 'label small, zone zone-1', error: { code: 'keyscan' } })),
  );
  expect(request.request?.reason).toContain('demo/main: no host keys');
  const remedy = 'The page of a failed request lists its launch attempts. Repair what their errors name.';
  const failing = { key: 'failed small', cause: 'cloud', remedy };
  expect((await get<StatusModel.OverviewDocument>('overview')).problems).toContainEqual(
    expect.objectContaining(failing),
  );
});

describe('the last error of a provider in trouble', () => {
  /** The errors of the cloud's listings and of its launches; a launch with `hangs` does not end. */
  let listing: Error | undefined;
  let launch: Error | 'hangs' | undefined;
  beforeEach(() => {
    listing = undefined;
    launch = undefined;
  });

  function overrides(each: Provider): Partial<Provider> {
    if (each.config.name !== 'demo') return {};
    const failing = (handler: NodeRequestHandler): NodeRequestHandler =>
      new Proxy(handler, {
        get: (target, name): unknown => {
          if (name !== 'launch' || launch === undefined) return Reflect.get(target, name);
          return () => (launch instanceof Error ? Promise.reject(launch) : new Promise(() => undefined));
        },
      });
    return {
      cleanupLeakedResources: async (...args) => {
        if (listing !== undefined) throw listing;
        await each.cleanupLeakedResources(...args);
      },
      listNodes: (...args) => (listing === undefined ? each.listNodes(...args) : Promise.reject(listing)),
      getRequestHandler: (...args) => failing(each.getRequestHandler(...args)),
    };
  }

  async function startFaulty(): Promise<void> {
    const sections = [
      provider('demo', [pool('main', ['small'], { priority: 10 })]),
      provider('other', [pool('main', ['small'])]),
    ];
    site = await StatusSite.start(world, sections, { config: faultyDriver(world.cloud, overrides) });
  }

  const demo = async (): Promise<StatusModel.ProviderDocument['provider']> =>
    (await get<StatusModel.ProviderDocument>('provider/demo')).provider;

  async function inState(state: string): Promise<void> {
    await world.until(`it is ${state}`, () => site!.running.launcher.activity()[0]?.state === state);
  }

  it('is no text of the launcher about a launch that it abandoned because of the trouble', async () => {
    await startFaulty();
    launch = 'hangs';
    const id = await world.submit(['small']);
    await world.clock.advance(1000);
    listing = new TransientError('identity: connection refused', { outcome: 'not-applied' });
    await inState('unreachable');
    await world.clock.advance(5000);
    const { attempts } = await get<StatusModel.RequestDocument>(`request/${id}`);
    expect(attempts[0]?.error?.text).toMatch(/^the launch has no instance yet: its cloud fails since /);
    const status = await demo();
    expect(status).toMatchObject({ state: 'unreachable', lastError: null, failures: [] });
    expect(status?.reason).toContain('identity: connection refused');
  });

  it('is not an error from before the last recovery', async () => {
    await startFaulty();
    launch = listing = new TransientError('compute: 503', { outcome: 'not-applied' });
    await world.submit(['small']);
    await inState('unreachable');
    expect((await demo())?.lastError).toMatchObject({ text: 'compute: 503' });
    launch = listing = undefined;
    await inState('serving');
    expect((await demo())?.lastError).toMatchObject({ text: 'compute: 503' });
    listing = new TransientError('identity: connection refused', { outcome: 'not-applied' });
    await inState('unreachable');
    const status = await demo();
    expect(status).toMatchObject({ lastError: null, failures: [{ text: 'compute: 503' }] });
    expect(status?.reason).toContain('identity: connection refused');
  });
});

it('a request that exceeds a limit does not count against the cloud', async () => {
  await start([provider('demo', [pool('main', ['small'], { 'max-servers': 1 })])]);
  await world.inState(await world.submit(['small', 'small']), 'failed');
  expect((await get<StatusModel.OverviewDocument>('overview')).problems).toMatchObject([
    { key: 'failed small', cause: 'limit' },
  ]);
});

it('a launcher does not show decisions of another one', async () => {
  await start([provider('demo', [pool('main', ['small'])])]);
  await world.launcher([provider('away', [pool('far', ['large'], { 'max-servers': 1 })])], 'launcher2');
  await world.served(['large']);
  const id = await world.submit(['large']);
  await world.clock.advance(20_000);
  const { reason, reasons } = await get<StatusModel.RequestDocument>(`request/${id}`);
  expect(reason).toMatchObject({ phase: 'elsewhere', pool: 'away/far', launcher: 'launcher2' });
  expect(reason?.text).toMatch(/^launcher launcher2 serves this pool .*; ask it for details\.$/);
  expect(reasons).toHaveLength(1);
  const { components } = await get<StatusModel.ProgramsDocument>('components');
  expect(components).toMatchObject([
    {
      ...{ hostname: 'launcher1', self: true, eventLoopP99: 0.002, pools: ['demo/main'] },
      zookeeper: { state: 'connected', latencyP50: expect.any(Number) },
    },
    { hostname: 'launcher2', self: false, eventLoopP99: null, pools: ['away/far'] },
  ]);
});

it('a request for labels without a pool shows that', async () => {
  await start([provider('demo', [pool('main', ['small'])])]);
  const id = await world.submit(['nonsense']);
  await world.inState(id, 'failed');
  const { request } = await get<StatusModel.RequestDocument>(`request/${id}`);
  expect(request?.reason).toBe('no registered pool has nonsense');
});

it('shows ready nodes whose pool was renamed, and not those that requests can get', async () => {
  const { store } = await start([provider('demo', [pool('main', ['small'])])]);
  const node = { provider: 'demo', pool: 'main', type: ['small'], state: 'ready' } as const;
  const since = world.clock.now() / 1000;
  const ids = await world.during(
    store.nodes.create([
      nodeDataWith({ ...node, state_time: since }),
      nodeDataWith({ ...node, pool: 'former', state_time: since }),
    ]),
  );
  const problems = async (): Promise<readonly string[]> =>
    (await get<StatusModel.OverviewDocument>('overview')).problems.flatMap(({ title, details }) => [title, ...details]);
  expect(await problems()).toEqual([]);
  await world.clock.advance(601_000);
  expect(await problems()).toEqual([
    'Provider demo has 1 ready node that no pool hands out',
    `pool former, label small: ${ids[1]!}`,
  ]);
  expect(await site!.explain(`node/${ids[0]!}`)).toContain('Ready, and free for any request.');
  expect(await site!.explain(`node/${ids[1]!}`)).toContain('Ready, but no registered pool hands it out.');
});

it('the capacity tells what the limits of pools, providers and tenants leave, and what labels need', async () => {
  const main = pool('main', ['small'], { 'max-servers': 5, 'max-cores': 9 });
  const limits = tenants({ red: { instances: 3, ram: 4096 } });
  site = await StatusSite.start(world, [provider('demo', [main])], { config: limits });
  await world.served(['small'], { tenant: 'red' });
  const { launcher: _launcher, time: _time, ...facts } = await get<Record<string, unknown>>('capacity');
  expect(facts).toEqual({
    pools: [
      {
        ...{ provider: 'demo', pool: 'main', ignoresProviderQuota: false, free: { instances: 4, cores: 8 } },
        needs: { small: { instances: 1, cores: 1, ram: 1024 } },
      },
    ],
    providers: [{ provider: 'demo', free: {} }],
    tenants: [{ tenant: 'red', free: { instances: 2, ram: 3072 } }],
  });
});

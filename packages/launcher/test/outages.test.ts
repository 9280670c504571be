/** Tests of requests while a cloud fails temporarily, or refuses what the configuration asks for. */

import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import {
  CapacityError,
  ConfigurationError,
  InstanceFailedError,
  sleep,
  ThrottledError,
  TimeoutError,
  TransientError,
  type DriverError,
  type NodeRequestHandler,
  type Provider,
} from '@nodepool/core';
import { DecisionLog, type ProviderActivity } from '@nodepool/status';
import { explainLabel, explainRequest, type ExplanationSources } from '@nodepool/status/web';
import type { NodepoolConfig } from '@nodepool/config';
import { faultyDriver, UnansweredCalls } from './support/faulty-driver.js';
import { REQUESTS, World, pool, provider, type RunningLauncher } from './support/world.js';

let world: World;
let decisions: DecisionLog;
/** Returns the error with which a launch fails before the cloud is called, by provider and label. */
let launchFailure: (provider: string, label: string) => Error | undefined;
/** Returns the error with which a launch fails once its instance is known. */
let afterSave: () => Error | undefined;
let launches: number;
let overrides: (provider: Provider) => Partial<Provider>;

beforeEach(() => {
  world = new World();
  decisions = new DecisionLog({ clock: world.clock });
  world.observation = { decisions };
  launchFailure = () => undefined;
  afterSave = () => undefined;
  launches = 0;
  overrides = (each) => ({ getRequestHandler: (...args) => failing(each, each.getRequestHandler(...args)) });
});

afterEach(async () => {
  expect(await world.end()).toEqual([]);
});

function failing({ config }: Provider, handler: NodeRequestHandler): NodeRequestHandler {
  return new Proxy(handler, {
    get: (target, name): unknown => {
      if (name !== 'launch') return Reflect.get(target, name);
      const launch: NodeRequestHandler['launch'] = (each) => {
        launches += 1;
        const failure = launchFailure(config.name, each.label);
        if (failure !== undefined) return Promise.reject(failure);
        const late = afterSave();
        if (late === undefined) return target.launch(each);
        return each.save({ externalId: 'unknown', machine: null }).then(() => Promise.reject(late));
      };
      return launch;
    },
  });
}

const drivers = (): Partial<NodepoolConfig> => faultyDriver(world.cloud, (each) => overrides(each));
const demo = (more = {}, poolMore = {}) => provider('demo', [pool('main', ['small', 'large'], poolMore)], more);

async function ended(id: string): Promise<unknown> {
  await world.until(`${id} has ended`, () => !['requested', 'pending'].includes(String(world.stateOf(id))));
  return world.stateOf(id);
}

const cut = new TransientError('the connection was refused', { outcome: 'not-applied' });

const outages: readonly (readonly [how: string, failure: DriverError])[] = [
  ['is cut off', cut],
  ['throttles', new ThrottledError('slow down')],
  ['answers with 503', new TransientError('503')],
];

const waitingFor = (maxWaitMs: number): Partial<NodepoolConfig> => ({
  ...drivers(),
  labels: new Map([['small', { name: 'small', minReady: 0, maxReadyAgeMs: Infinity, maxWaitMs }]]),
});

describe('an unreachable cloud', () => {
  it.each(outages)('for hours and %s uses up no attempt, and the request waits', async (_, failure) => {
    await world.launcher([demo({ 'launch-retries': 1 })], 'launcher1', drivers());
    launchFailure = () => failure;
    const id = await world.submit(['small']);
    await world.clock.advance(4 * 3_600_000);
    expect(world.stateOf(id)).toMatch(/^requested|pending$/);
    // Probes are half a minute apart at least, and one more follows each listing.
    expect(launches).toBeLessThan(4 * 180);
    launchFailure = () => undefined;
    expect(await ended(id)).toBe('fulfilled');
  });

  it('for longer than max-wait fails the request, with the reason', async () => {
    await world.launcher([demo()], 'launcher1', waitingFor(600_000));
    launchFailure = () => cut;
    const id = await world.submit(['small']);
    await world.clock.advance(590_000);
    expect(world.stateOf(id)).toMatch(/^requested|pending$/);
    await world.clock.advance(20_000);
    expect(await ended(id)).toBe('failed');
    expect(decisions.of('request', id).at(-1)?.reason).toMatch(
      /^it has waited for 10 min \(max-wait of small\): provider demo fails since .* \(the connection was refused\)/,
    );
  });

  it('for a moment after a restart fails no request, although it is older than max-wait', async () => {
    const launcher = await world.launcher([demo()], 'launcher1', waitingFor(60_000));
    launchFailure = () => cut;
    const waiting = await world.submit(['small']);
    await world.until('it waits', () => decisions.of('request', waiting).at(-1)?.what === 'waits for capacity');
    await launcher.stop();
    await world.clock.advance(120_000);
    launchFailure = () => undefined;
    overrides = (each) => ({ start: (context) => sleep(world.clock, 5000).then(() => each.start(context)) });
    await world.launcher([demo()], 'launcher1', waitingFor(60_000));
    expect(await ended(waiting)).toBe('fulfilled');
  });

  it.each(['the same launcher', 'another launcher without the label'])(
    'does not end launches in progress that are older than max-wait after a restart of their launcher (%s)',
    async (who) => {
      world.cloud.configure({ bootTimeMs: [120_000, 120_000] });
      const launcher = await world.launcher([demo()], 'launcher1', waitingFor(60_000));
      if (who !== 'the same launcher') {
        await world.launcher([provider('next', [pool('main', ['other'])])], 'launcher2', waitingFor(60_000));
      }
      const id = await world.submit(['small']);
      await world.clock.advance(90_000);
      await launcher.stop();
      await world.clock.advance(5000);
      overrides = (each) => ({ start: (context) => sleep(world.clock, 5000).then(() => each.start(context)) });
      await world.launcher([demo()], 'launcher1', waitingFor(60_000));
      expect(await ended(id)).toBe('fulfilled');
      expect([...world.nodes().keys()]).toEqual(['0000000000']);
    },
  );

  it('uses up no attempt before an instance is known, and one attempt after that', async () => {
    await world.launcher([demo({ 'launch-retries': 2 })], 'launcher1', drivers());
    launchFailure = () => (launches <= 5 ? new TimeoutError('no answer within 60000 ms') : undefined);
    expect(await ended(await world.submit(['small']))).toBe('fulfilled');
    expect(launches).toBe(6);
    launches = 0;
    launchFailure = () => undefined;
    afterSave = () => new TimeoutError('the launch did not end within 60000 ms');
    expect(await ended(await world.submit(['small']))).toBe('failed');
    expect(launches).toBe(2);
  });

  it('leaves its requests to another provider that has their labels, without declining them', async () => {
    const other = provider('other', [pool('main', ['small'])], { priority: 200 });
    await world.launcher([demo(), other], 'launcher1', drivers());
    launchFailure = (name) => (name === 'demo' ? cut : undefined);
    const submitted = world.clock.monotonic();
    const ids = [await world.submit(['small']), await world.submit(['small'])];
    for (const id of ids) expect(await ended(id)).toBe('fulfilled');
    expect(world.clock.monotonic() - submitted).toBeLessThan(60_000);
    for (const id of ids) expect(world.records(REQUESTS).get(id)).not.toHaveProperty('declined_by.0');
    // The third failure opens the breaker.
    expect(await ended(await world.submit(['small']))).toBe('fulfilled');
    const before = launches;
    expect(await ended(await world.submit(['small']))).toBe('fulfilled');
    expect(launches).toBe(before + 1);
  });
});

describe('a label that the cloud rejects', () => {
  const refused = new ConfigurationError('there is no such flavor');

  it('once is served', async () => {
    await world.launcher([demo({ 'launch-retries': 1 })], 'launcher1', drivers());
    launchFailure = () => (launches === 1 ? refused : undefined);
    expect(await ended(await world.submit(['small']))).toBe('fulfilled');
    expect(await ended(await world.submit(['small']))).toBe('fulfilled');
  });

  it('twice is out of service without affecting other labels, and returns automatically', async () => {
    await world.launcher([demo({ 'launch-retries': 1 })], 'launcher1', drivers());
    launchFailure = () => refused;
    expect(await ended(await world.submit(['small']))).toBe('failed');
    expect(launches).toBe(2);
    expect(await ended(await world.submit(['small']))).toBe('failed');
    expect(launches).toBe(2);
    launchFailure = () => undefined;
    expect(await ended(await world.submit(['large']))).toBe('fulfilled');
    expect(await ended(await world.submit(['small']))).toBe('failed');
    await world.clock.advance(60_000);
    expect(await ended(await world.submit(['small']))).toBe('fulfilled');
  });

  it('is probed with growing delays', async () => {
    await world.launcher([demo()], 'launcher1', drivers());
    launchFailure = () => refused;
    for (let minutes = 0; minutes < 60; minutes += 1) {
      expect(await ended(await world.submit(['small']))).toBe('failed');
      await world.clock.advance(60_000);
    }
    expect(launches).toBeGreaterThan(2 * 4);
    expect(launches).toBeLessThanOrEqual(2 * 10);
  });

  it('in a request with several labels is the only one out of service', async () => {
    await world.launcher([demo()], 'launcher1', drivers());
    launchFailure = (_, label) => (label === 'large' ? refused : undefined);
    const id = await world.submit(['small', 'large']);
    expect(await ended(id)).toBe('failed');
    launchFailure = () => undefined;
    expect(await ended(await world.submit(['small']))).toBe('fulfilled');
  });
});

describe('a pool with an availability zone that the cloud does not have', () => {
  it('serves requests from the others', async () => {
    await world.launcher([demo({}, { 'availability-zones': ['unknown', 'zone-1'] })]);
    for (let i = 0; i < 6; i += 1) {
      const id = await world.submit(['small', 'small']);
      expect(await ended(id)).toBe('fulfilled');
      const nodes = world.records(REQUESTS).get(id)?.['nodes'] as string[];
      for (const node of nodes) expect(world.nodes().get(node)).toMatchObject({ az: 'zone-1' });
    }
  });

  it('declines requests that no zone can serve', async () => {
    await world.launcher([demo({}, { 'availability-zones': ['unknown', 'unheard-of'] })]);
    expect(await ended(await world.submit(['small']))).toBe('failed');
  });
});

describe('the availability zones that cannot be read at the start', () => {
  it('are read again until the cloud answers, and offers without a zone are forgotten', async () => {
    let asked = 0;
    overrides = (each) => ({
      getRequestHandler: (...args) => failing(each, each.getRequestHandler(...args)),
      getAvailabilityZones: () => {
        asked += 1;
        return asked < 3 ? Promise.reject(new TransientError('503')) : Promise.resolve(['zone-1']);
      },
    });
    const { launcher } = await world.launcher([demo()], 'launcher1', drivers());
    launchFailure = () => new CapacityError('no valid host');
    const id = await world.submit(['small']);
    await world.until('an offer without a zone is out of service', () =>
      launcher.activity()[0]!.offers.some(({ obstacle }) => obstacle !== undefined),
    );
    launchFailure = () => undefined;
    expect(await ended(id)).toBe('fulfilled');
    await world.clock.advance(60_000);
    expect(asked).toBe(3);
    expect(await ended(await world.submit(['small']))).toBe('fulfilled');
    expect(launcher.activity()[0]?.offers).toMatchObject([{ label: 'small', zone: 'zone-1', state: 'closed' }]);
  });
});

describe('the needs of a label that cannot be read at the start', () => {
  it.each(outages)('delay its requests while the cloud %s', async (_, failure) => {
    let calls = 0;
    const base = overrides;
    overrides = (each) => ({
      ...base(each),
      getQuotaForLabel: (...args) => {
        calls += 1;
        return calls < 20 ? Promise.reject(failure) : each.getQuotaForLabel!(...args);
      },
    });
    await world.launcher([demo()], 'launcher1', drivers());
    const ids = [await world.submit(['small']), await world.submit(['large'])];
    await world.clock.advance(30_000);
    expect(ids.map((id) => world.stateOf(id))).toEqual(['requested', 'requested']);
    for (const id of ids) expect(await ended(id)).toBe('fulfilled');
  });

  it('decline its requests after the cloud has failed twice to answer, until it answers', async () => {
    let known = false;
    const base = overrides;
    overrides = (each) => ({
      ...base(each),
      getQuotaForLabel: (...args) =>
        known ? each.getQuotaForLabel!(...args) : Promise.reject(new ConfigurationError('there is no such flavor')),
    });
    await world.launcher([demo()], 'launcher1', drivers());
    expect(await ended(await world.submit(['small']))).toBe('failed');
    known = true;
    await world.clock.advance(60_000);
    expect(await ended(await world.submit(['small']))).toBe('fulfilled');
  });
});

describe('the status', () => {
  const sources = (running: RunningLauncher): ExplanationSources => world.explanation(running, decisions);

  it('of a waiting request has the reason of the pool that it waits for, not the newest decision', async () => {
    const full = provider('full', [pool('main', ['small'], { 'max-servers': 1 })]);
    const other = provider('other', [pool('main', ['large'])]);
    const running = await world.launcher([full, other], 'launcher1', drivers());
    expect(await ended(await world.submit(['small']))).toBe('fulfilled');
    const [first, second] = [await world.submit(['small']), await world.submit(['small'])];
    await world.clock.advance(30_000);
    const reason = 'pool main of provider full uses 1 of 1 instances, 1 more is needed. Its nodes: 1 ready.';
    expect(explainRequest(sources(running), first)?.summary).toBe(`Requested. full/main: ${reason}`);
    expect(explainRequest(sources(running), second)?.summary).toBe(
      `Requested. full/main: request ${first}, which needs the same, comes first; ` + `it waits because ${reason}`,
    );
  });

  it('of a provider whose launches all fail is degraded, with the reason, until one succeeds', async () => {
    const running = await world.launcher([demo({ 'launch-retries': 3 })], 'launcher1', drivers());
    const state = (): unknown => running.launcher.activity()[0];
    expect(state()).toMatchObject({ state: 'serving' });
    launchFailure = () => new InstanceFailedError('no bootable device');
    expect(await ended(await world.submit(['small']))).toBe('failed');
    const reason = /^pool main, label small.* launches nodes that fail since .* \(no bootable device\), next probe at /;
    expect(state()).toMatchObject({ state: 'degraded', reason: expect.stringMatching(reason) });
    expect(explainLabel(sources(running), 'small')?.pools[0]?.says).toContain('no bootable device');
    launchFailure = () => undefined;
    expect(await ended(await world.submit(['small']))).toBe('fulfilled');
    expect(state()).toMatchObject({ state: 'serving', reason: undefined });
  });

  it('of a provider that cannot be started is unreachable, with the reason', async () => {
    overrides = () => ({ start: () => Promise.reject(cut) });
    const running = await world.launcher([demo()], 'launcher1', drivers());
    const reason = 'it could not be started: the connection was refused';
    expect(running.launcher.activity()).toMatchObject([{ state: 'unreachable', reason }]);
    const id = await world.submit(['small']);
    await world.clock.advance(1000);
    expect(explainRequest(sources(running), id)?.summary).toContain(
      `demo/main: provider demo is not served: ${reason}`,
    );
  });

  it('of an idle provider whose cloud becomes unreachable is unreachable, until it answers again', async () => {
    let isAway = false;
    overrides = (each) => ({
      cleanupLeakedResources: (...args) => (isAway ? Promise.reject(cut) : each.cleanupLeakedResources(...args)),
      listNodes: (...args) => (isAway ? Promise.reject(cut) : each.listNodes(...args)),
    });
    const lines: string[] = [];
    world.log = {
      ...world.log,
      warn: (message) => void lines.push(message),
      with: () => world.log,
      named: () => world.log,
    };
    const running = await world.launcher([demo()], 'launcher1', drivers());
    const state = (): unknown => running.launcher.activity()[0];
    isAway = true;
    await world.until('it is noticed', () => running.launcher.activity()[0]?.state !== 'serving');
    expect(state()).toMatchObject({
      state: 'unreachable',
      reason: expect.stringMatching(/^its cloud fails since .* \(the connection was refused\), next probe at /),
      trouble: { cause: 'unreachable', labels: undefined, since: world.clock.now() },
    });
    await world.clock.advance(600_000);
    isAway = false;
    await world.clock.advance(60_000);
    expect(state()).toMatchObject({ state: 'serving', reason: undefined, trouble: undefined });
    expect(lines.filter((line) => line.startsWith('The provider '))).toEqual([
      'The provider is unreachable',
      'The provider serves its pools again',
    ]);
  });

  it.each([
    ['refuses connections', (): DriverError => cut, 'unreachable'],
    ['demands a wait', () => new ThrottledError('503 (answer)', { retryAfterMs: 8000 }), 'unavailable'],
  ])(
    'of an idle provider whose cloud %s names its next probe, and ends within seconds of it',
    async (_, why, state) => {
      let isAway = false;
      const refused = (): Promise<never> => Promise.reject(why());
      overrides = (each) => ({
        cleanupLeakedResources: (...args) => (isAway ? refused() : each.cleanupLeakedResources(...args)),
        listNodes: (...args) => (isAway ? refused() : each.listNodes(...args)),
        getRequestHandler: (...args) => failing(each, each.getRequestHandler(...args)),
      });
      launchFailure = () => (isAway ? why() : undefined);
      const running = await world.launcher([demo()], 'launcher1', drivers());
      const activity = (): ProviderActivity | undefined => running.launcher.activity()[0];
      isAway = true;
      const id = await world.submit(['small']);
      const began = world.clock.monotonic();
      await world.until('it is noticed', () => activity()?.state === state);
      expect(world.clock.monotonic() - began).toBeLessThan(15_000);
      await world.requestor.withdraw(id);
      for (let minutes = 0; minutes < 20; minutes += 1) {
        await world.clock.advance(60_000);
        // Each failed check names the next one, which is never far away.
        const { nextProbe = 0 } = activity()?.trouble ?? {};
        expect(nextProbe - world.clock.now()).toBeLessThanOrEqual(30_000);
        expect(activity()?.reason).toMatch(/next probe at \d\d:\d\d:\d\d UTC$/);
      }
      const { nextProbe = 0 } = activity()?.trouble ?? {};
      isAway = false;
      await world.clock.advance(nextProbe - world.clock.now() + 15_000);
      expect(activity()).toMatchObject({ state: 'serving', trouble: undefined });
    },
  );

  it('of a request that waits for a limit also names the trouble of the provider', async () => {
    let isAway = false;
    overrides = (each) => ({
      cleanupLeakedResources: (...args) => (isAway ? Promise.reject(cut) : each.cleanupLeakedResources(...args)),
      listNodes: (...args) => (isAway ? Promise.reject(cut) : each.listNodes(...args)),
    });
    const running = await world.launcher([demo({}, { 'max-servers': 1 })], 'launcher1', drivers());
    await world.served(['small']);
    const id = await world.submit(['small']);
    await world.clock.advance(1000);
    isAway = true;
    await world.until('it is noticed', () => running.launcher.activity()[0]?.state === 'unreachable');
    expect(explainRequest(sources(running), id)?.summary).toMatch(
      /uses 1 of 1 instances.* Moreover, the provider is unreachable: its cloud fails since .* \(the connection was refused\)\.$/,
    );
  });

  it('of an idle provider whose cloud becomes silent is unreachable within seconds of the next listing', async () => {
    let isSilent = false;
    const silent = new UnansweredCalls();
    overrides = (each) => ({
      start: async (context) => {
        silent.start(context);
        await each.start(context);
      },
      cleanupLeakedResources: (...args) => (isSilent ? silent.call() : each.cleanupLeakedResources(...args)),
      listNodes: (...args) => (isSilent ? silent.call() : each.listNodes(...args)),
    });
    const running = await world.launcher([demo()], 'launcher1', drivers());
    await world.clock.advance(60_000);
    isSilent = true;
    const began = world.clock.monotonic();
    await world.until('it is noticed', () => running.launcher.activity()[0]?.state !== 'serving');
    const text = /no call has been answered for \d\d s; compute: GET servers had no answer of compute.example within/;
    // The next listing begins within a minute.
    expect(world.clock.monotonic() - began).toBeLessThan(75_000);
    expect(running.launcher.activity()).toMatchObject([{ state: 'unreachable', reason: expect.stringMatching(text) }]);
    isSilent = false;
    await world.clock.advance(90_000);
    expect(running.launcher.activity()).toMatchObject([{ state: 'serving' }]);
  });

  it('of a provider with one label of several that the cloud rejects is degraded, not out of service', async () => {
    const running = await world.launcher([demo()], 'launcher1', drivers());
    launchFailure = () => new ConfigurationError('there is no such flavor');
    expect(await ended(await world.submit(['small']))).toBe('failed');
    expect(running.launcher.activity()).toMatchObject([{ state: 'degraded', trouble: { labels: ['small'] } }]);
    expect(await ended(await world.submit(['large']))).toBe('failed');
    expect(running.launcher.activity()).toMatchObject([{ state: 'misconfigured' }]);
  });

  it('of a provider whose resources cannot be listed is degraded, with the reason and the time', async () => {
    let isAway = false;
    overrides = (each) => ({
      cleanupLeakedResources: (...args) => (isAway ? Promise.reject(cut) : each.cleanupLeakedResources(...args)),
    });
    const running = await world.launcher([demo()], 'launcher1', drivers());
    const state = (): unknown => running.launcher.activity()[0];
    isAway = true;
    await world.clock.advance(60_000);
    expect(state()).toMatchObject({ state: 'serving' });
    const since = new Date(world.clock.now()).toISOString().slice(0, 'yyyy-mm-ddThh'.length);
    await world.clock.advance(60_000);
    const reason = new RegExp(`^its cloud has not listed its resources since ${since}.*: the connection was refused$`);
    expect(state()).toMatchObject({ state: 'degraded', reason: expect.stringMatching(reason) });
    isAway = false;
    await world.clock.advance(60_000);
    expect(state()).toMatchObject({ state: 'serving', reason: undefined });
  });

  it('of a provider whose start does not end is unreachable', async () => {
    overrides = () => ({ start: () => new Promise(() => undefined) });
    const running = await world.launcher([demo()], 'launcher1', drivers());
    expect(running.launcher.activity()).toMatchObject([
      { state: 'unreachable', reason: 'its start has not ended for 30 s' },
    ]);
  });
});

it('a launcher is not ready while ZooKeeper is unreachable', async () => {
  const { launcher } = await world.launcher([demo()], 'launcher1', drivers());
  world.server.stop();
  await world.until('it knows', () => !launcher.ready);
  world.server.start();
  await world.until('it is ready again', () => launcher.ready);
});

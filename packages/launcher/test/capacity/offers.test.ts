/** Tests of requests that find capacity elsewhere, or wait for it. */

import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import {
  CapacityError,
  InstanceFailedError,
  QuotaError,
  type JsonObject,
  type NodeLaunch,
  type NodeRequestHandler,
  type Provider,
  type ProviderConfig,
} from '@nodepool/core';
import type { NodepoolConfig } from '@nodepool/config';
import { explainLabel } from '@nodepool/status/web';
import { DecisionLog } from '@nodepool/status';
import { faultyDriver } from '../support/faulty-driver.js';
import { REQUESTS, World, pool, provider } from '../support/world.js';

const ZONES = ['zone-1', 'zone-2'];
const full = new CapacityError('no valid host');

let world: World;
let decisions: DecisionLog;
/** Launches as `provider/label/zone/machine type`, in order. */
let launches: string[];
/** Returns the end of a launch that the cloud does not get: an error, or a promise that never settles. */
let spoils: (place: string, launch: NodeLaunch) => Error | Promise<never> | undefined;

beforeEach(() => {
  // With this seed, the launches of a stuck pool are in both of its zones.
  world = new World(2);
  world.cloud.configure({ zones: ZONES });
  decisions = new DecisionLog({ clock: world.clock, perSubject: 100 });
  world.observation = { decisions };
  launches = [];
  spoils = () => undefined;
});

afterEach(async () => {
  expect(await world.end()).toEqual([]);
});

function failing({ config }: Provider, handler: NodeRequestHandler): NodeRequestHandler {
  return new Proxy(handler, {
    get: (target, name): unknown => {
      if (name !== 'launch') return Reflect.get(target, name);
      const launch: NodeRequestHandler['launch'] = async (each) => {
        const place = [config.name, each.label, each.availabilityZone ?? '', each.machineType ?? ''].join('/');
        launches.push(place);
        const end = spoils(place, each);
        if (end instanceof Error) throw end;
        return end ?? target.launch(each);
      };
      return launch;
    },
  });
}

const drivers = (): Partial<NodepoolConfig> =>
  faultyDriver(world.cloud, (each) => ({
    getRequestHandler: (...args) => failing(each, each.getRequestHandler(...args)),
  }));

const region = (name: string, poolMore: JsonObject = {}, more: JsonObject = {}): JsonObject =>
  provider(name, [pool('main', ['small', 'large'], poolMore)], more);

/** Returns the provider sections as a configuration whose labels have these machine types. */
function withTypes(sections: readonly JsonObject[], machineTypes: readonly string[]): Partial<NodepoolConfig> {
  const { providers } = world.config(sections);
  const typed = [...providers].map(([name, config]): [string, ProviderConfig] => {
    const pools = [...config.pools].map(([poolName, each]): [string, typeof each] => {
      const labels = [...each.labels].map(([label, its]): [string, typeof its] => [label, { ...its, machineTypes }]);
      return [poolName, { ...each, labels: new Map(labels) }];
    });
    return [name, { ...config, pools: new Map(pools) }];
  });
  return { ...drivers(), providers: new Map(typed) };
}

const waitingFor = (maxWaitMs: number): Partial<NodepoolConfig> => ({
  ...drivers(),
  labels: new Map([['small', { name: 'small', minReady: 0, maxReadyAgeMs: Infinity, maxWaitMs }]]),
});

const declinedBy = (id: string): unknown => world.records(REQUESTS).get(id)?.['declined_by'] ?? [];
const decided = (id: string): string[] =>
  decisions.of('request', id).map(({ what, reason }) => `${what}: ${reason ?? ''}`);

async function ended(id: string): Promise<unknown> {
  await world.until(`${id} has ended`, () => !['requested', 'pending'].includes(String(world.stateOf(id))));
  return world.stateOf(id);
}

/** Resolves with the milliseconds until the request is fulfilled. */
async function served(id: string): Promise<number> {
  const since = world.clock.monotonic();
  expect(await ended(id)).toBe('fulfilled');
  return world.clock.monotonic() - since;
}

describe('a request in a pool with several offers', () => {
  it('is launched in another zone when one has no capacity, and that one is not used until it is probed', async () => {
    const running = await world.launcher([region('demo', { 'availability-zones': ZONES })], 'launcher1', drivers());
    spoils = (place) => (place.includes('zone-1') ? full : undefined);
    for (let index = 0; index < 10; index += 1) await served(await world.submit(['small']));
    expect(launches.filter((place) => place.includes('zone-1'))).toHaveLength(1);
    const says = explainLabel(world.explanation(running, decisions), 'small')?.pools[0]?.says;
    // Once: the trouble of the provider is that of the offer.
    expect(
      says?.match(/zone-1 has no capacity since \d\d:\d\d:\d\d UTC \(no valid host\), next probe at /g),
    ).toHaveLength(1);
    expect(says).toMatch(/^can serve it; uses 10 instances/);
    expect(says).toContain('; label small, zone zone-2: in service');
    spoils = () => undefined;
    await world.clock.advance(20_000);
    for (let index = 0; index < 20; index += 1) await served(await world.submit(['small']));
    expect(launches.filter((place) => place.includes('zone-1')).length).toBeGreaterThan(3);
  });

  it('gets the next machine type in order, and its explanation lists the tried offers', async () => {
    await world.launcher([], 'launcher1', withTypes([region('demo')], ['large', 'medium', 'small']));
    spoils = (place) => (place.endsWith('/small') ? undefined : full);
    const id = await world.submit(['small']);
    await served(id);
    const [zone] = launches.map((place) => place.split('/')[2]);
    expect(launches).toEqual(['large', 'medium', 'small'].map((type) => `demo/small/${zone ?? ''}/${type}`));
    expect(declinedBy(id)).toEqual([]);
    expect(
      decided(id)
        .filter((text) => /^(tried|launched)/.test(text))
        .map((text) => /type (\w+)/.exec(text)?.[1]),
    ).toEqual(['large', 'medium', 'small']);
  });

  it('has all its nodes in one zone, and keeps existing ones when a launch finds no capacity', async () => {
    const sections = [region('demo', { 'availability-zones': ZONES })];
    await world.launcher([], 'launcher1', withTypes(sections, ['large', 'small']));
    spoils = (place) => (place.startsWith('demo/large') && place.endsWith('/large') ? full : undefined);
    const id = await world.submit(['small', 'small', 'large']);
    await served(id);
    const zones = new Set([...world.nodes().values()].map(({ az }) => az));
    expect(zones.size).toBe(1);
    expect(world.nodes().size).toBe(3);
    expect(launches).toHaveLength(4);
  });

  it('is launched again in the same pool when a node fails, and keeps the other nodes', async () => {
    await world.launcher([region('demo', {}, { 'launch-retries': 3 }), region('other')], 'launcher1', drivers());
    let failures = 2;
    spoils = (place) => (place.includes('/large/') && failures-- > 0 ? new InstanceFailedError('broken') : undefined);
    const id = await world.submit(['small', 'small', 'large']);
    await served(id);
    expect(launches).toHaveLength(5);
    expect(new Set(launches.map((place) => place.split('/')[0])).size).toBe(1);
  });
});

describe('a request whose pool has no capacity', () => {
  it.each<[string, Error]>([
    ['capacity', full],
    ['quota', new QuotaError('quota exceeded')],
  ])('is served by a pool of lower priority if the cause is %s', async (_, failure) => {
    const sections = [region('demo'), region('spare', {}, { priority: 200 })];
    await world.launcher(sections, 'launcher1', drivers());
    spoils = (place) => (place.startsWith('demo/') ? failure : undefined);
    const ids = [];
    for (let index = 0; index < 5; index += 1) ids.push(await world.submit(['small']));
    for (const id of ids) {
      expect(await served(id)).toBeLessThan(30_000);
      expect(declinedBy(id)).toEqual([]);
    }
    expect(launches.filter((place) => place.startsWith('demo/')).length).toBeLessThan(4);
  });

  it('is served by a pool of lower priority of another launcher', async () => {
    await world.launcher([region('demo')], 'launcher1', drivers());
    await world.launcher([region('spare', {}, { priority: 200 })], 'launcher2', drivers());
    spoils = (place) => (place.startsWith('demo/') ? full : undefined);
    for (let index = 0; index < 5; index += 1) expect(await served(await world.submit(['small']))).toBeLessThan(30_000);
    // Other labels of the pool are still served there.
    spoils = (place) => (place.startsWith('demo/small') ? full : undefined);
    await world.clock.advance(60_000);
    launches = [];
    await served(await world.submit(['large']));
    await served(await world.submit(['large']));
    expect(launches.at(-1)).toMatch(/^demo\/large/);
  });

  it('waits with the reason if there is none, and is served when capacity returns', async () => {
    await world.launcher([region('demo')], 'launcher1', drivers());
    spoils = () => full;
    const id = await world.submit(['small']);
    await world.clock.advance(3_600_000);
    expect(world.stateOf(id)).toMatch(/^requested|pending$/);
    expect(declinedBy(id)).toEqual([]);
    expect(decided(id).findLast((text) => text.startsWith('waits for capacity: label'))).toMatch(
      /label small, zone zone-\d has no capacity since 00:00:\d\d UTC \(no valid host\), (next probe at 0\d:\d\d:\d\d UTC|a probe is due|being probed)/,
    );
    spoils = () => undefined;
    expect(await served(id)).toBeLessThan(180_000);
  });

  it('is probed by exactly one of several requests at a time', async () => {
    await world.launcher([region('demo')], 'launcher1', drivers());
    spoils = () => full;
    const ids = [];
    for (let index = 0; index < 10; index += 1) ids.push(await world.submit(['small']));
    await world.clock.advance(1000);
    const first = launches.length;
    await world.clock.advance(600_000);
    // One per zone each minute at most, from the third one on.
    expect(launches.length - first).toBeGreaterThan(8);
    expect(launches.length - first).toBeLessThan(28);
    spoils = () => undefined;
    for (const id of ids) await served(id);
  });
});

describe('max-wait', () => {
  it('ends the wait of every request for a label, with the reason', async () => {
    await world.launcher([region('demo')], 'launcher1', waitingFor(600_000));
    spoils = () => full;
    const first = await world.submit(['small']);
    await world.clock.advance(300_000);
    const second = await world.submit(['small']);
    await world.clock.advance(290_000);
    expect([world.stateOf(first), world.stateOf(second)]).not.toContain('failed');
    await world.clock.advance(20_000);
    expect(world.stateOf(first)).toBe('failed');
    expect(decided(first).at(-1)).toMatch(/it has waited for 10 min \(max-wait of small\): .*no capacity/);
    expect(world.stateOf(second)).not.toBe('failed');
    await world.clock.advance(300_000);
    expect(world.stateOf(second)).toBe('failed');
  });

  it('counts from the creation of the request, also in a launcher that starts later', async () => {
    spoils = () => full;
    const running = await world.launcher([region('demo')], 'launcher1', waitingFor(600_000));
    const id = await world.submit(['small']);
    await world.clock.advance(400_000);
    await running.stop();
    await world.launcher([region('demo')], 'launcher2', waitingFor(600_000));
    await world.clock.advance(100_000);
    expect(world.stateOf(id)).not.toBe('failed');
    await world.clock.advance(110_000);
    expect(world.stateOf(id)).toBe('failed');
  });

  it('fails no request that can be served when it ends', async () => {
    spoils = () => full;
    const running = await world.launcher([region('demo')], 'launcher1', waitingFor(600_000));
    const id = await world.submit(['small']);
    await world.clock.advance(400_000);
    await running.stop();
    await world.clock.advance(600_000);
    spoils = () => undefined;
    await world.launcher([region('demo')], 'launcher2', waitingFor(600_000));
    expect(await ended(id)).toBe('fulfilled');
  });
});

describe('a pool that accepts creations and never finishes them', () => {
  const never = async (_: string, each: NodeLaunch): Promise<never> => {
    await each.save({ externalId: 'never', machine: null });
    return new Promise(() => undefined);
  };

  it('loses its requests to another pool, and gets no more until it is probed', async () => {
    await world.launcher([region('demo'), region('other')], 'launcher1', drivers());
    for (let index = 0; index < 20; index += 1) await served(await world.submit(['small']));
    spoils = (place, each) => (place.startsWith('demo/') ? never(place, each) : undefined);
    launches = [];
    const ids = [];
    for (let index = 0; index < 10; index += 1) ids.push(await world.submit(['small']));
    for (const id of ids) expect(await served(id)).toBeLessThan(180_000);
    launches = [];
    for (let index = 0; index < 5; index += 1) expect(await served(await world.submit(['small']))).toBeLessThan(60_000);
    expect(launches.every((place) => place.startsWith('other/'))).toBe(true);
  });

  /** Starts a launcher with a preferred pool whose launches are stuck from now on. */
  async function stuck(): Promise<void> {
    world.cloud.configure({ bootTimeMs: [30_000, 30_000] });
    await world.launcher([region('demo', {}, { priority: 10 }), region('other')], 'launcher1', drivers());
    for (let index = 0; index < 20; index += 1) await served(await world.submit(['small']));
    spoils = (place, each) => (place.startsWith('demo/') ? never(place, each) : undefined);
    launches = [];
  }

  it('loses its requests to a pool that has launched nothing yet', async () => {
    await stuck();
    const ids = [];
    // Two in one of the zones are enough.
    for (let index = 0; index < 3; index += 1) ids.push(await world.submit(['small']));
    await world.clock.advance(40_000);
    ids.push(await world.submit(['small']));
    const since = world.clock.monotonic();
    for (const id of ids) expect(await ended(id)).toBe('fulfilled');
    expect(world.clock.monotonic() - since).toBeLessThan(70_000);
    expect(launches.filter((place) => place.startsWith('other/'))).toHaveLength(4);
  });

  it('delays no other request while it is probed', async () => {
    await stuck();
    for (const id of [await world.submit(['small']), await world.submit(['small'])]) await served(id);
    await world.clock.advance(120_000);
    launches = [];
    const probe = await world.submit(['small']);
    await world.until('it is probed', () => launches.length > 0);
    for (let index = 0; index < 3; index += 1) expect(await served(await world.submit(['small']))).toBeLessThan(40_000);
    expect(launches.filter((place) => place.startsWith('demo/'))).toHaveLength(1);
    await served(probe);
  });

  it('still gets requests while the other pools are full', async () => {
    const sections = [region('demo'), region('other', { 'max-servers': 30 })];
    const { launcher } = await world.launcher(sections, 'launcher1', drivers());
    for (let index = 0; index < 20; index += 1) await served(await world.submit(['small']));
    spoils = (place, each) => (place.startsWith('demo/') ? never(place, each) : undefined);
    const ids = [];
    for (let index = 0; index < 10; index += 1) ids.push(await world.submit(['small']));
    for (const id of ids) await served(id);
    expect(launcher.activity()[0]?.offers).toContainEqual(
      expect.objectContaining({ state: 'open', obstacle: expect.objectContaining({ cause: 'slow' }) as unknown }),
    );
    spoils = () => undefined;
    launches = [];
    ids.length = 0;
    for (let index = 0; index < 20; index += 1) ids.push(await world.submit(['small']));
    for (const id of ids) expect(await served(id)).toBeLessThan(30_000);
    expect(launches.map((place) => place.split('/')[0])).toContain('demo');
  });

  it('keeps its requests if no other pool can serve them', async () => {
    const running = await world.launcher([region('demo')], 'launcher1', drivers());
    for (let index = 0; index < 10; index += 1) await served(await world.submit(['small']));
    spoils = never;
    launches = [];
    await world.submit(['small']);
    await world.clock.advance(1_800_000);
    // Another zone is tried, once.
    expect(launches).toHaveLength(2);
    expect(running.launcher.activity()).toMatchObject([{ state: 'serving' }]);
  });
});

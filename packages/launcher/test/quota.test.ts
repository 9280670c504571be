/** Tests of the limits of pools and providers: requests that wait, requests that are declined, and nodes that count. */

import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { DecisionLog } from '@nodepool/status';
import { isJsonObject, QuotaInformation, sleep, type JsonObject } from '@nodepool/core';
import { faultyDriver } from './support/faulty-driver.js';
import { REQUESTS, World, pool, provider, tenants } from './support/world.js';

const REFRESH_MS = 300_000;

let world: World;
let decisions: DecisionLog;
beforeEach(() => {
  world = new World();
  decisions = new DecisionLog({ clock: world.clock });
  world.observation = { decisions };
});
afterEach(async () => {
  expect(await world.end()).toEqual([]);
});

const demo = (poolMore: JsonObject = {}, more: JsonObject = {}): JsonObject =>
  provider('demo', [pool('main', ['small', 'large'], poolMore)], more);

/** A provider with labels for nodes of 1, 4 and 8 cores. */
const sized = (poolMore: JsonObject = {}): JsonObject =>
  demo({
    labels: [
      { name: 'small', 'cloud-image': 'debian', size: 'small' },
      { name: 'large', 'cloud-image': 'debian', size: 'large' },
    ],
    ...poolMore,
  });

/** A provider with a label whose nodes have 8, 4 or 1 cores, in this order. */
const typed = (poolMore: JsonObject = {}): JsonObject =>
  demo({ labels: [{ name: 'small', 'cloud-image': 'debian', sizes: ['large', 'medium', 'small'] }], ...poolMore });

const coresIn = (resources: unknown): unknown => (isJsonObject(resources) ? resources['cores'] : undefined);

function latestReason(id: string): string | undefined {
  return decisions.of('request', id).at(-1)?.reason;
}

function quota(instances: number, cores = Infinity, ram = Infinity): void {
  world.cloud.configure({ quota: { instances, cores, ram } });
}

/** Waits until the launcher has read the cloud's quota again. */
async function refreshed(): Promise<void> {
  await world.clock.advance(REFRESH_MS + 1000);
}

describe('a label with several machine types', () => {
  it.each<[string, () => Promise<unknown>]>([
    ['the pool', () => world.launcher([typed({ 'max-cores': 10 })])],
    [
      'the provider',
      () => {
        quota(Infinity, 10);
        return world.launcher([typed()]);
      },
    ],
    ['the tenant', () => world.launcher([typed()], 'launcher1', tenants({ acme: { cores: 10 } }))],
  ])('gets the next one that the limit of %s allows, up to the limit', async (_, start) => {
    await start();
    const tenant = { tenant: 'acme' };
    const sizes = (): unknown[] => [...world.nodes().values()].map(({ resources }) => coresIn(resources)).sort();
    const first = await world.served(['small'], tenant);
    const second = await world.served(['small'], tenant);
    await world.served(['small'], tenant);
    expect(sizes()).toEqual([1, 1, 8]);
    const waits = await world.submit(['small'], tenant);
    await world.clock.advance(10_000);
    expect(world.stateOf(waits)).toBe('requested');
    expect(latestReason(waits)).toMatch(/uses 10 of 10 cores, 1 more/);
    await world.giveBack(second);
    await world.fulfilled(waits);
    expect(sizes()).toEqual([1, 1, 8]);
    await world.giveBack(first);
    await world.until('the node is deleted', () => sizes().length === 2);
    await world.served(['small'], tenant);
    expect(sizes()).toEqual([1, 1, 8]);
  });
});

describe('a pool', () => {
  it('counts the needs of its labels in every limited resource', async () => {
    await world.launcher([sized({ 'max-cores': 10 })]);
    const large = await world.served(['large']);
    const two = await world.served(['small', 'small']);
    const waits = await world.submit(['small']);
    await world.clock.advance(1000);
    expect(world.stateOf(waits)).toBe('requested');
    expect(latestReason(waits)).toBe('pool main of provider demo uses 10 of 10 cores, 1 more is needed');
    await world.giveBack(two);
    await world.fulfilled(waits);
    await world.giveBack(large);
  });

  it('declines requests above its limit, with the reason', async () => {
    await world.launcher([sized({ 'max-ram': 16_384 })]);
    const id = await world.submit(['large', 'small']);
    await world.inState(id, 'failed');
    expect(latestReason(id)).toBe('it needs 17408 ram, and the limit of pool main of provider demo is 16384');
  });

  it('counts records of other programs with any resources', async () => {
    const { store } = await world.launcher([demo({ 'max-servers': 3 })]);
    const first = await world.served(['small']);
    const record = world.nodes().get((world.records(REQUESTS).get(first)!.nodes as string[])[0]!)!;
    const theirs = { ...record, state: 'hold', allocated_to: null, resources: null, launcher: 'python' };
    const [id] = await world.during(store.nodes.create([theirs as never]));
    const waits = await world.submit(['small', 'small']);
    await world.clock.advance(1000);
    expect(latestReason(waits)).toBe('pool main of provider demo uses 2 of 3 instances, 2 more are needed');
    await world.during(world.requestor.change(`/nodepool/nodes/${id!}`, { state: 'used' }));
    await world.fulfilled(waits);
  });

  it.each([
    { what: 'uses less than before', rest: { cores: 4 } },
    { what: 'does not use it any more', rest: {} },
  ])('gets the capacity of a node that $what', async ({ rest }) => {
    await world.launcher([sized({ 'max-cores': 8 })]);
    const zk = world.server.connect();
    const record = (resources: Readonly<Record<string, number>>): Buffer =>
      Buffer.from(JSON.stringify({ state: 'hold', provider: 'demo', pool: 'main', type: ['large'], resources }));
    const created = zk.create('/nodepool/nodes/', record({ cores: 8 }), { mode: 'persistent-sequential' });
    const { path } = await world.during(created);
    const waits = await world.submit(['small']);
    await world.clock.advance(10_000);
    expect(latestReason(waits)).toBe('pool main of provider demo uses 8 of 8 cores, 1 more is needed');
    await world.during(zk.set(path, record(rest)));
    await world.fulfilled(waits);
    await world.during(zk.close());
  });

  it('starts no launch before it knows its limits, also with changes meanwhile', async () => {
    const { launcher } = await world.launcher([]);
    const ids = [await world.submit(['small']), await world.submit(['small']), await world.submit(['small'])];
    const answers = world.cloud.describe.bind(world.cloud);
    world.cloud.describe = () =>
      new Promise((resolve) => void world.clock.schedule(5000, () => resolve(Promise.resolve(answers()))));
    let most = 0;
    world.server.onCommit(() => (most = Math.max(most, world.nodes().size)));
    await world.during(launcher.apply(world.config([demo({ 'max-servers': 1 })])));
    // By then the provider has started, and its pool waits for the limits of the cloud.
    await world.clock.advance(7000);
    await world.during(launcher.apply(world.config([demo({ 'max-servers': 1 })], tenants({ red: { instances: 1 } }))));
    await world.fulfilled(ids[0]!);
    await world.clock.advance(1000);
    expect(most).toBe(1);
  });

  it('starts no launch while its limit is below its usage, and deletes no nodes', async () => {
    const { launcher } = await world.launcher([demo()]);
    const ids = [await world.served(['small']), await world.served(['small']), await world.served(['small'])];
    await world.during(launcher.apply(world.config([demo({ 'max-servers': 2 })])));
    const waits = await world.submit(['small']);
    await world.giveBack(ids[0]!);
    await world.clock.advance(60_000);
    expect(world.stateOf(waits)).toBe('requested');
    expect(world.nodes().size).toBe(2);
    await world.giveBack(ids[1]!);
    await world.fulfilled(waits);
  });
});

describe('a provider', () => {
  it('shares the limits of the cloud among its pools', async () => {
    quota(3);
    await world.launcher([provider('demo', [pool('a', ['small']), pool('b', ['large'])])]);
    const small = await world.served(['small', 'small']);
    const large = await world.served(['large']);
    const asked = world.cloud.existingInstances().length;
    const waits = await world.submit(['large']);
    await world.clock.advance(30_000);
    expect(latestReason(waits)).toBe('provider demo uses 3 of 3 instances, 1 more is needed');
    expect(world.nodes().size).toBe(asked);
    await world.giveBack(small);
    await world.fulfilled(waits);
    await world.giveBack(large);
  });

  it.each([
    ['others', {}],
    ['another installation with the same provider', { nodepool_provider_name: 'demo', nodepool_installation: 'other' }],
  ])('leaves to %s their usage in the same project, and uses it when they release it', async (_whose, tags) => {
    quota(2);
    const spec = { name: 'theirs', zone: null, size: 'small', cores: null, ram: null, image: 'debian', tags };
    const theirs = await world.during(Promise.resolve(world.cloud.createInstance(spec)));
    await world.launcher([demo()]);
    const first = await world.served(['small']);
    const waits = await world.submit(['small']);
    await world.clock.advance(10_000);
    expect(latestReason(waits)).toBe('provider demo uses 1 of 1 instances, 1 more is needed');
    await world.during(Promise.resolve(world.cloud.deleteInstance(theirs.id)));
    await refreshed();
    await world.fulfilled(waits);
    await world.giveBack(first);
  });

  it('reads the usage of others again soon while a request waits for it', async () => {
    quota(1);
    const spec = { name: 'theirs', zone: null, size: 'small', cores: null, ram: null, image: 'debian', tags: {} };
    const theirs = await world.during(Promise.resolve(world.cloud.createInstance(spec)));
    await world.launcher([demo()]);
    const waits = await world.submit(['small']);
    await world.clock.advance(5000);
    await world.during(Promise.resolve(world.cloud.deleteInstance(theirs.id)));
    const released = world.clock.now();
    await world.fulfilled(waits);
    expect(world.clock.now() - released).toBeLessThan(REFRESH_MS / 5);
  });

  it('shares the limits of its project with another provider, whose nodes it knows without reading them', async () => {
    const others = provider('other', [pool('main', ['other'])]);
    quota(3);
    await world.launcher([demo(), others]);
    const burst = await world.served(['other', 'other', 'other']);
    const waits = await world.submit(['small', 'small']);
    await world.clock.advance(REFRESH_MS);
    expect(world.stateOf(waits)).toBe('requested');
    const create = world.cloud.createInstance.bind(world.cloud);
    let refused = 0;
    world.cloud.createInstance = async (...args) => {
      try {
        return await create(...args);
      } catch (error) {
        refused += 1;
        throw error;
      }
    };
    await world.giveBack(burst);
    const returned = world.clock.now();
    await world.fulfilled(waits);
    expect(world.clock.now() - returned).toBeLessThan(REFRESH_MS / 10);
    const next = await world.submit(['other', 'other']);
    await world.clock.advance(10_000);
    expect(world.stateOf(next)).toBe('requested');
    await world.giveBack(waits);
    await world.fulfilled(next);
    expect(refused).toBe(0);
  });

  it('follows growing limits while a request waits for them', async () => {
    quota(1);
    await world.launcher([demo()]);
    await world.served(['small']);
    const waits = await world.submit(['small']);
    await world.clock.advance(10_000);
    quota(2);
    await refreshed();
    await world.fulfilled(waits);
  });

  it('does not limit a pool that ignores its quota', async () => {
    const answers = world.cloud.describe.bind(world.cloud);
    world.cloud.describe = async () => ({ ...(await answers()), quota: { instances: 1, cores: -1, ram: -1 } });
    const providers = new Map(
      [...world.config([demo()]).providers].map(([name, config]) => {
        const pools = [...config.pools].map(([each, its]) => [each, { ...its, ignoreProviderQuota: true }] as const);
        return [name, { ...config, pools: new Map(pools) }] as const;
      }),
    );
    await world.launcher([demo()], 'launcher1', { providers });
    await world.served(['small', 'small', 'small']);
  });

  it('does not poll the limits of the cloud without demand', async () => {
    let asked = 0;
    const describeCloud = world.cloud.describe.bind(world.cloud);
    world.cloud.describe = () => {
      asked += 1;
      return describeCloud();
    };
    await world.launcher([demo()]);
    const before = asked;
    await world.clock.advance(10 * REFRESH_MS);
    expect(asked).toBe(before);
  });

  it('declines requests that exceed the limits of the cloud, although it has no other usage', async () => {
    quota(2);
    await world.launcher([demo()]);
    const id = await world.submit(['small', 'small', 'small']);
    await world.inState(id, 'failed');
    expect(latestReason(id)).toBe('it needs 3 instances, and the limit of provider demo is 2');
  });

  it('reads outdated limits again before it declines a request because of them', async () => {
    quota(1);
    await world.launcher([demo()]);
    await world.clock.advance(REFRESH_MS);
    quota(2);
    await world.served(['small', 'small']);
    const id = await world.submit(['small', 'small', 'small']);
    await world.inState(id, 'failed');
    expect(latestReason(id)).toBe('it needs 3 instances, and the limit of provider demo is 2');
  });

  it('reads its limits again before it declines a request because of a single answer', async () => {
    const answers = world.cloud.describe.bind(world.cloud);
    const wrong = { instances: 0, cores: 0, ram: 0 };
    await world.launcher([demo()]);
    await world.served(['small']);
    let wrongAnswers = 1;
    world.cloud.describe = async () => {
      const answer = await answers();
      wrongAnswers -= 1;
      return wrongAnswers < 0 ? answer : { ...answer, quota: wrong };
    };
    await refreshed();
    await world.served(['small']);
    expect(wrongAnswers).toBeLessThan(0);
  });

  it('serves requests although its first answer was wrong', async () => {
    let instances = 0;
    const wrong = faultyDriver(world.cloud, () => ({
      getQuotaLimits: () => {
        const limits = QuotaInformation.limit({ instances });
        instances = 1;
        return Promise.resolve(limits);
      },
    }));
    await world.launcher([demo()], 'launcher1', wrong);
    await world.served(['small']);
  });

  it('declines a request because of outdated limits if it cannot read them again', async () => {
    quota(1);
    await world.launcher([demo()]);
    await world.clock.advance(REFRESH_MS);
    world.cloud.describe = () => Promise.reject(new Error('no quota today'));
    const id = await world.submit(['small', 'small']);
    await world.inState(id, 'failed');
    expect(latestReason(id)).toBe('it needs 2 instances, and the limit of provider demo is 1');
  });

  it('is not limited by the cloud of its previous configuration', async () => {
    quota(1);
    const { launcher } = await world.launcher([demo()]);
    await world.served(['small']);
    const silent = faultyDriver(world.cloud, () => ({ getQuotaLimits: () => Promise.reject(new Error('no quota')) }));
    quota(Infinity);
    await world.during(launcher.apply(world.config([demo({}, { 'launch-retries': 1 })], silent)));
    await world.served(['small']);
  });

  it('knows its limits although the cloud needs minutes for them and for its instances', async () => {
    const slow = faultyDriver(world.cloud, () => ({
      getQuotaLimits: async ({ signal }) => {
        await sleep(world.clock, 50_000, signal);
        return QuotaInformation.limit({ instances: 1 });
      },
      listNodes: async ({ signal }) => {
        await sleep(world.clock, 100_000, signal);
        return [];
      },
    }));
    await world.launcher([demo()], 'launcher1', slow);
    await world.inState(await world.submit(['small', 'small']), 'failed');
  });

  it('is unlimited when the cloud reports -1', async () => {
    const answers = world.cloud.describe.bind(world.cloud);
    world.cloud.describe = async () => ({ ...(await answers()), quota: { instances: -1, cores: -1, ram: -1 } });
    await world.launcher([demo()]);
    await world.served(Array.from({ length: 20 }, () => 'small'));
  });

  it('reads its limits at once when the cloud rejects a launch, which is no failure, and waits for quota', async () => {
    await world.launcher([demo({}, { 'launch-retries': 1 })]);
    const first = await world.served(['small']);
    quota(1);
    const aborted = new Set<string>();
    world.server.onCommit(() => {
      for (const [id, { state }] of world.nodes()) if (state === 'aborted') aborted.add(id);
    });
    const waits = await world.submit(['small']);
    await world.until('the launch is refused', () => aborted.size > 0);
    await world.clock.advance(60_000);
    expect(aborted.size).toBe(1);
    expect(world.stateOf(waits)).toBe('requested');
    expect(world.records(REQUESTS).get(waits)).not.toMatchObject({ declined_by: [expect.anything()] });
    expect(latestReason(waits)).toBe('provider demo uses 1 of 1 instances, 1 more is needed');
    await world.giveBack(first);
    await world.fulfilled(waits);
  });

  it('retries with growing delays in a cloud with wrong limits, and serves requests when it has capacity', async () => {
    await world.launcher([demo()]);
    const lying = world.cloud.describe.bind(world.cloud);
    const first = await world.served(['small']);
    quota(1);
    world.cloud.describe = async () => ({ ...(await lying()), quota: { instances: -1, cores: -1, ram: -1 } });
    const made = new Set<string>();
    world.server.onCommit(() => {
      for (const id of world.nodes().keys()) made.add(id);
    });
    const waits = await world.submit(['small']);
    await world.clock.advance(600_000);
    expect(made.size).toBeGreaterThan(2);
    expect(made.size).toBeLessThan(15);
    expect(['requested', 'pending']).toContain(world.stateOf(waits));
    await world.giveBack(first);
    await world.fulfilled(waits);
  });

  it('is unlimited until the cloud reports limits, and keeps the last ones when it stops', async () => {
    const answers = world.cloud.describe.bind(world.cloud);
    await world.launcher([demo()]);
    quota(1);
    let refuses = false;
    world.cloud.describe = () => (refuses ? Promise.reject(new Error('no quota today')) : answers());
    await refreshed();
    const first = await world.served(['small']);
    await world.clock.advance(1000);
    refuses = true;
    await refreshed();
    const waits = await world.submit(['small']);
    await world.clock.advance(60_000);
    expect(latestReason(waits)).toBe('provider demo uses 1 of 1 instances, 1 more is needed');
    await world.giveBack(first);
    await world.fulfilled(waits);
  });
});

it('the resources that a launched instance does not report are those that its label needs', async () => {
  const partly = faultyDriver(world.cloud, (target) => ({
    getRequestHandler: (...args) => {
      const handler = target.getRequestHandler(...args);
      return {
        launch: async (call) => ({ ...(await handler.launch(call)), resources: { instances: 1 } }),
        launchesComplete: () => handler.launchesComplete(),
      };
    },
  }));
  await world.launcher([sized({ 'max-cores': 8 })], 'launcher1', partly);
  const large = await world.served(['large']);
  expect([...world.nodes().values()]).toMatchObject([{ resources: { instances: 1, cores: 8, ram: 16_384 } }]);
  const waits = await world.submit(['small']);
  await world.clock.advance(10_000);
  expect(world.stateOf(waits)).toBe('requested');
  await world.giveBack(large);
  await world.fulfilled(waits);
});

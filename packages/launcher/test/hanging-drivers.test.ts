/** Tests that a driver that never answers, or throws where it should reject, delays only the work that called it. */

import { afterEach, beforeEach, expect, it } from '@jest/globals';
import type { NodepoolConfig } from '@nodepool/config';
import { silentLogger, type LaunchedInstance, type Logger, type NodeLaunch, type Provider } from '@nodepool/core';
import { faultyDriver } from './support/faulty-driver.js';
import { World, pool, provider } from './support/world.js';

const hangs = <T>(): Promise<T> => new Promise(() => undefined);

let world: World;
/** Methods that replace those of every provider from now on. */
let overrides: Partial<Provider>;

beforeEach(() => {
  world = new World();
  overrides = {};
});

afterEach(async () => {
  overrides = {};
  await world.end();
});

const drivers = (): Partial<NodepoolConfig> => faultyDriver(world.cloud, () => overrides);

const demo = provider('demo', [pool('main', ['small'])], { 'launch-timeout': 60, 'launch-retries': 3 });

it('a launch without any call of the cloud is restarted by the next launcher, without counting a failure', async () => {
  overrides = { getRequestHandler: () => ({ launch: hangs, launchesComplete: () => false }) };
  const onlyOnce = { ...demo, 'launch-retries': 1 };
  const first = await world.launcher([onlyOnce], 'launcher1', drivers());
  const id = await world.submit(['small']);
  await world.until('its launch has begun', () =>
    [...world.nodes().values()].some(({ state }) => state === 'building'),
  );
  await first.stop();
  overrides = {};
  await world.launcher([onlyOnce], 'launcher2', drivers());
  await world.fulfilled(id);
  expect(world.cloud.existingInstances()).toHaveLength(1);
});

it('a driver that reports progress of an attempt after its end changes nothing in the record', async () => {
  world.cloud.configure({ bootTimeMs: [30_000, 30_000] });
  let first: NodeLaunch | undefined;
  const late = faultyDriver(world.cloud, (target) => ({
    getRequestHandler: (of, request) => {
      const handler = target.getRequestHandler(of, request);
      const launch = (each: NodeLaunch): Promise<LaunchedInstance> => {
        if (first !== undefined) return handler.launch(each);
        first = each;
        return hangs();
      };
      return { launch, launchesComplete: () => true };
    },
  }));
  await world.launcher([demo], 'launcher1', late);
  const id = await world.submit(['small']);
  await world.until('the second attempt has an instance', () => world.cloud.existingInstances().length > 0);
  await world.clock.advance(5000);
  const before = world.nodes().get('0000000000');
  await expect(first?.save({ externalId: 'late', machine: null })).rejects.toThrow('has ended');
  expect(world.nodes().get('0000000000')).toEqual(before);
  await world.fulfilled(id);
});

it('a driver that reports launches after all have ended is logged, and the request is fulfilled', async () => {
  const warnings: unknown[] = [];
  const log: Logger = {
    ...silentLogger,
    with: () => log,
    named: () => log,
    warn: (message, fields) => void warnings.push([message, fields]),
  };
  world.log = log;
  const drivers = faultyDriver(world.cloud, (target) => ({
    getRequestHandler: (of, request) => {
      const handler = target.getRequestHandler(of, request);
      return { launch: (launch) => handler.launch(launch), launchesComplete: () => false };
    },
  }));
  await world.launcher([demo], 'launcher1', drivers);
  await world.served(['small']);
  expect(warnings).toContainEqual([expect.stringContaining('launches in progress'), { driver: 'example' }]);
});

it.each(['cleanupNode', 'waitForNodeCleanup'] as const)(
  'a deletion whose %s never ends is restarted',
  async (method) => {
    await world.launcher([demo], 'launcher1', drivers());
    const id = await world.served(['small']);
    let calls = 0;
    overrides = {
      [method]: () => {
        calls += 1;
        return hangs();
      },
    };
    await world.giveBack(id);
    await world.until('the deletion hangs', () => calls > 0);
    overrides = {};
    await world.clock.advance(700_000);
    await world.until('the node is gone', () => world.nodes().size === 0);
    expect(world.cloud.existingInstances()).toEqual([]);
  },
);

it('the search for leaked instances continues after one that never ended', async () => {
  let calls = 0;
  overrides = {
    cleanupLeakedResources: () => {
      calls += 1;
      return hangs();
    },
  };
  await world.launcher([demo], 'launcher1', drivers());
  await world.until('the search hangs', () => calls > 0);
  overrides = {};
  const tags = {
    nodepool_provider_name: 'demo',
    nodepool_installation: world.installation(),
    nodepool_image_name: 'debian',
    nodepool_image_format: 'raw',
    nodepool_build_id: 'ab',
    nodepool_upload_id: '0000000001',
  };
  const spec = { name: 'leaked', zone: null, size: 'small', cores: null, ram: null, image: 'debian', tags };
  await world.during(Promise.resolve(world.cloud.createInstance(spec)));
  await world.until('it is gone', () => world.cloud.existingInstances().length === 0);
});

it('a launcher stops and applies configurations without waiting for a hanging driver', async () => {
  const other = provider('other', [pool('main', ['small'])]);
  const { launcher } = await world.launcher([demo], 'launcher1', drivers());
  overrides = { join: hangs };
  await world.during(launcher.apply(world.config([other])));
  await world.until('it serves the other provider', () => launcher.ready);
  await world.served(['small']);
  overrides = {
    join: () => {
      throw new Error('the driver has a defect');
    },
  };
  await world.during(launcher.stop());
  expect(world.lockHolders()).toEqual([]);
});

it('a changed provider whose driver does not stop delays only its own requests, and none of them fails', async () => {
  const providers = (maxServers: number) => [
    provider('hangs', [pool('main', ['small'], { 'max-servers': maxServers })]),
    provider('stops', [pool('main', ['large'], { 'max-servers': maxServers })]),
    provider('unchanged', [pool('main', ['other'])]),
  ];
  const hanging = faultyDriver(world.cloud, ({ config }) => (config.name === 'hangs' ? overrides : {}));
  const { launcher } = await world.launcher(providers(5), 'launcher1', hanging);
  overrides = { join: hangs };
  const applied = launcher.apply(world.config(providers(6), hanging));
  const [small = '', large = ''] = await world.during(
    Promise.all(['small', 'large'].map((label) => world.requestor.submit([label]))),
  );
  await world.clock.advance(5000);
  expect(world.stateOf(large)).toBe('fulfilled');
  await world.during(applied);
  await world.until('the other one is fulfilled', () => world.stateOf(small) === 'fulfilled');
});

it('a request whose wait ends while its provider is restarted fails after the restart', async () => {
  const labels = new Map([['small', { name: 'small', minReady: 0, maxReadyAgeMs: Infinity, maxWaitMs: 60_000 }]]);
  const providers = (more = {}): ReturnType<typeof provider>[] => [
    provider('demo', [pool('main', ['small'], { 'max-servers': 1 })], more),
    provider('other', [pool('main', ['large'])]),
  ];
  const hanging = { ...drivers(), labels };
  const { launcher } = await world.launcher(providers(), 'launcher1', hanging);
  await world.during(world.requestor.take(await world.served(['small'])));
  const id = await world.submit(['small']);
  await world.clock.advance(50_000);
  overrides = { join: hangs };
  const applied = launcher.apply(world.config(providers({ 'launch-retries': 1 }), hanging));
  await world.clock.advance(20_000);
  overrides = {};
  await world.during(applied);
  await world.inState(id, 'failed');
});

it('a provider that its driver cannot create prevents neither the others nor later configurations', async () => {
  const other = provider('other', [pool('main', ['large'])]);
  const { loadedDrivers } = world.config([]);
  const example = loadedDrivers.get('example')!;
  const broken = new Proxy(example, {
    get: (target, name): unknown => {
      const getProvider: typeof example.getProvider = (config) => {
        if (config.name === 'demo') throw new Error('the driver has a defect');
        return target.getProvider(config);
      };
      return name === 'getProvider' ? getProvider : Reflect.get(target, name);
    },
  });
  const withBroken = { loadedDrivers: new Map([['example', broken]]) };
  const { launcher } = await world.launcher([demo, other], 'launcher1', withBroken);
  const id = await world.submit(['large']);
  await world.until('the other provider has served it', () => world.stateOf(id) === 'fulfilled');
  await world.during(launcher.apply(world.config([demo, other], { loadedDrivers })));
  await world.served(['small']);
  await world.during(launcher.apply(world.config([{ ...demo, 'launch-retries': 1 }, other], withBroken)));
  await world.during(launcher.apply(world.config([demo, other], { loadedDrivers })));
  await world.served(['small']);
});

it.each(['getQuotaLimits', 'getAvailabilityZones'] as const)(
  'a pool serves requests although %s never ends',
  async (method) => {
    overrides = { [method]: hangs };
    await world.launcher([demo], 'launcher1', drivers());
    await world.served(['small']);
  },
);

it.each([
  ['labelReady', undefined, 'failed'],
  ['labelReady', { ready: false }, 'failed'],
  ['getAvailabilityZones', null, 'fulfilled'],
  ['getAvailabilityZones', 'zone-1', 'fulfilled'],
])('a driver whose %s returns %p affects only its own provider', async (method, answer, state) => {
  const broken = faultyDriver(world.cloud, ({ config }) =>
    config.name === 'demo' ? { [method]: () => (method === 'labelReady' ? answer : Promise.resolve(answer)) } : {},
  );
  await world.launcher([demo, provider('other', [pool('main', ['large'])])], 'launcher1', broken);
  const [small = '', large = ''] = await world.during(
    Promise.all(['small', 'large'].map((label) => world.requestor.submit([label]))),
  );
  await world.until('the other provider has served its request', () => world.stateOf(large) === 'fulfilled');
  await world.until('the other request has ended', () => world.stateOf(small) === state);
});

it.each([
  ['throws', () => JSON.parse('') as never],
  ['returns no list', () => true as never],
])('a driver whose report of its work %s does not affect explanations and the status page', async (_, inspect) => {
  overrides = { inspect };
  const { launcher } = await world.launcher([demo], 'launcher1', drivers());
  expect(launcher.activity()).toMatchObject([{ provider: 'demo', state: 'serving', work: [] }]);
});

it('a launch whose driver returns no external id fails', async () => {
  overrides = { getRequestHandler: () => ({ launch: async () => ({}) as never, launchesComplete: () => true }) };
  await world.launcher([{ ...demo, 'launch-retries': 1 }], 'launcher1', drivers());
  const id = await world.submit(['small']);
  await world.inState(id, 'failed');
});

it('a label is served once the driver answers what it needs', async () => {
  overrides = { getQuotaForLabel: hangs };
  await world.launcher([demo], 'launcher1', drivers());
  overrides = {};
  await world.clock.advance(180_000);
  await world.served(['small']);
});

/** Tests of the costs of nodes by use, of their metrics, and of the journal. */

import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { silentLogger, type JsonObject, type Metrics } from '@nodepool/core';
import { Recorder } from '@nodepool/status';
import { pool, provider, World } from '../support/world.js';

const PRICES: JsonObject = { currency: 'EUR', types: Object.fromEntries([['small', 3.6]]) };
const SECTION = provider('demo', [pool('main', ['small', 'large'], { 'max-servers': 5 })], { prices: PRICES });

let world: World;
let directory: string;
let recorders: Recorder[];
let collect: () => void;
const counted = new Map<string, number>();
const metrics: Metrics = {
  count: ({ name }, labels, amount = 1) => {
    const key = `${name} ${Object.values(labels).join(' ')}`;
    counted.set(key, (counted.get(key) ?? 0) + amount);
  },
  observe: () => undefined,
  set: ({ name }, labels, value) => {
    if (name === 'nodepool_node_cost_per_hour') counted.set(`${name} ${Object.values(labels).join(' ')}`, value ?? 0);
  },
  onCollect: (refresh) => {
    const before = collect;
    collect = () => {
      before();
      refresh();
    };
    return () => undefined;
  },
};

beforeEach(async () => {
  world = new World();
  counted.clear();
  collect = () => undefined;
  directory = await mkdtemp(join(tmpdir(), 'nodepool-costs-'));
  const { providers } = world.config([SECTION]);
  recorders = [];
  world.recorder = (store) => {
    const recorder = new Recorder({
      ...{ store, metrics, clock: world.clock, log: silentLogger, stateDir: directory },
      activity: () => [],
      providers: () => providers,
    });
    recorders.push(recorder);
    return recorder;
  };
});
afterEach(async () => {
  expect(await world.end()).toEqual([]);
  // They write the journal in the background.
  await Promise.all(recorders.map((recorder) => recorder.stop()));
  await rm(directory, { recursive: true });
});

/** Returns the value rounded to full cents. */
const cents = (key: string): number => Math.round((counted.get(key) ?? 0) * 100) / 100;

it('the cost of a node counts by use, for its tenant and project', async () => {
  world.cloud.configure({ bootTimeMs: [20_000, 20_000] });
  await world.launcher([SECTION], 'launcher1', {
    labels: new Map([['small', { name: 'small', minReady: 1, maxReadyAgeMs: Infinity, maxWaitMs: Infinity }]]),
  });
  await world.until('a node is ready', () => [...world.nodes().values()].some(({ state }) => state === 'ready'));
  collect();
  // 20 seconds at 3.60 per hour.
  expect(counted.get('nodepool_node_cost_total demo small overhead EUR')).toBeCloseTo(0.02, 3);
  await world.clock.advance(3_600_000);
  collect();
  expect(cents('nodepool_node_cost_per_hour demo small idle EUR')).toBe(3.6);
  expect(cents('nodepool_node_cost_total demo small idle EUR')).toBe(3.6);
  const id = await world.served(['small'], { tenant: 'a', data: { project: 'app' } });
  await world.during(world.requestor.take(id));
  await world.clock.advance(1_800_000);
  collect();
  expect(cents('nodepool_tenant_cost_total a app EUR')).toBeCloseTo(1.8, 1);
  expect(cents('nodepool_node_cost_total demo small in-use EUR')).toBeCloseTo(1.8, 1);
});

it('a machine type without a price costs nothing', async () => {
  const unpriced = pool('main', ['small'], { labels: [{ name: 'small', 'cloud-image': 'debian', size: 'medium' }] });
  await world.launcher([provider('demo', [unpriced], { prices: PRICES })]);
  await world.served(['small'], { tenant: 'a' });
  await world.clock.advance(3_600_000);
  collect();
  expect([...counted.keys()].filter((key) => key.includes('cost'))).toEqual([]);
});

it('the costs of the last day survive a restart in the journal', async () => {
  const first = await world.launcher([SECTION]);
  await world.served(['small'], { tenant: 'a' });
  await world.clock.advance(3_600_000);
  await first.stop();
  const { providers } = world.config([SECTION]);
  const recorder = new Recorder({
    ...{ store: first.store, metrics, clock: world.clock, log: silentLogger, stateDir: directory },
    activity: () => [],
    providers: () => providers,
  });
  await recorder.start();
  const sum = recorder.history
    .buckets()
    .flatMap(({ costs }) => costs)
    .filter(({ tenant }) => tenant === 'a')
    .reduce((total, { amount }) => total + amount, 0);
  expect(sum).toBeGreaterThan(3);
  await recorder.stop();
});

it('a record that is unreadable for a while does not repeat the cost since the creation of its node', async () => {
  await world.launcher([SECTION]);
  await world.served(['small'], { tenant: 'a' });
  const [id = ''] = [...world.nodes().keys()];
  const path = `/nodepool/nodes/${id}`;
  await world.clock.advance(3_600_000);
  collect();
  const before = cents('nodepool_node_cost_total demo small overhead EUR');
  const zk = world.server.connect();
  const { data } = await world.during(zk.get(path));
  await world.during(zk.set(path, Buffer.from('{')));
  await world.clock.advance(1000);
  await world.during(zk.set(path, data));
  await world.clock.advance(1000);
  collect();
  expect(cents('nodepool_node_cost_total demo small overhead EUR')).toBe(before);
  await world.during(zk.close());
});

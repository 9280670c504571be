/** Tests of keeping nodes ready, as seen in ZooKeeper and the cloud. */

import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { MIN_READY_REQUESTOR, type JsonObject, type LaunchedInstance, type NodeLaunch } from '@nodepool/core';
import { seededRandom } from '@nodepool/core/testing';
import type { NodepoolConfig } from '@nodepool/config';
import type { Launcher } from '../src/index.js';
import { faultyDriver } from './support/faulty-driver.js';
import { REQUESTS, World, pool, provider } from './support/world.js';

const SEEDS = Array.from({ length: 10 }, (_, index) => index + 1);

let world: World;
beforeEach(() => {
  world = new World();
});
afterEach(async () => {
  expect(await world.end()).toEqual([]);
});

const demo = (poolMore: JsonObject = {}, labels = ['small', 'large']): JsonObject =>
  provider('demo', [pool('main', labels, poolMore)]);

/** Returns the configuration of labels with these values of `min-ready`. */
function keep(minReady: Readonly<Record<string, number>>): Partial<NodepoolConfig> {
  const labels = Object.entries(minReady).map(([name, count]) => ({
    name,
    minReady: count,
    maxReadyAgeMs: Infinity,
    maxWaitMs: Infinity,
  }));
  return { labels: new Map(labels.map((label) => [label.name, label])) };
}

function free(label: string): string[] {
  return [...world.nodes()]
    .filter(([, { state, allocated_to: to, type }]) => state === 'ready' && to === null && isOf(type, label))
    .map(([id]) => id);
}

function isOf(type: unknown, label: string): boolean {
  return Array.isArray(type) && type.includes(label);
}

async function untilFree(label: string, count: number): Promise<void> {
  await world.until(`${count} nodes of label ${label} are free`, () => free(label).length === count);
}

/** Returns a function that returns the largest number of nodes that existed at a time since the call. */
function trackMaximum(): () => number {
  let maximum = 0;
  world.server.onCommit(() => {
    maximum = Math.max(maximum, world.nodes().size);
  });
  return () => maximum;
}

function minReadyRequests(): [string, JsonObject][] {
  return [...world.records(REQUESTS)].filter(([, { requestor }]) => requestor === MIN_READY_REQUESTOR);
}

describe('min-ready', () => {
  it('is implemented by ephemeral requests of the lowest priority that reuse no nodes', async () => {
    world.cloud.configure({ bootTimeMs: [60_000, 60_000] });
    await world.launcher([demo()], 'launcher1', keep({ small: 1 }));
    await world.until('it is asked for', () => minReadyRequests().length > 0);
    const [[id, request]] = minReadyRequests() as [[string, JsonObject]];
    expect(id).toMatch(/^900-\d{10}$/);
    expect(request).toMatchObject({
      node_types: ['small'],
      reuse: false,
      declined_by: [],
      nodes: [],
      requestor_data: null,
      provider: null,
      relative_priority: 0,
      created_time: null,
      tenant_name: null,
    });
    expect(request.event_id).toMatch(/^[0-9a-f]{32}$/);
    expect(world.server.dump().get(`${REQUESTS}/${id}`)?.stat.ephemeralOwner).not.toBe(0n);
    await untilFree('small', 1);
  });

  it('creates as many free nodes as configured, and leaves no requests', async () => {
    await world.launcher([demo()], 'launcher1', keep({ small: 3, large: 1, other: 2 }));
    await untilFree('small', 3);
    await untilFree('large', 1);
    await world.clock.advance(300_000);
    expect(world.records(REQUESTS).size).toBe(0);
    expect(world.nodes().size).toBe(4);
    expect(world.cloud.existingInstances()).toHaveLength(4);
  });

  it('is restored as soon as a node is allocated, while the requestor still uses it', async () => {
    await world.launcher([demo()], 'launcher1', keep({ small: 2 }));
    await untilFree('small', 2);
    const [kept] = free('small');
    const id = await world.submit(['small']);
    expect(await world.fulfilled(id)).toEqual([kept]);
    await untilFree('small', 2);
    expect(world.nodes().size).toBe(3);
  });

  it('is used in a cloud whose instances have host names that are their ids, as in GCE', async () => {
    const named = faultyDriver(world.cloud, (target) => ({
      getRequestHandler: (of, request) => {
        const handler = target.getRequestHandler(of, request);
        const launch = async (each: NodeLaunch): Promise<LaunchedInstance> => {
          const instance = await handler.launch(each);
          return { ...instance, hostname: instance.externalId as string };
        };
        return { launch, launchesComplete: () => handler.launchesComplete() };
      },
    }));
    await world.launcher([demo()], 'launcher1', { ...keep({ small: 1 }), ...named });
    await untilFree('small', 1);
    const ready = free('small');
    expect(await world.fulfilled(await world.submit(['small']))).toEqual(ready);
  });

  it.each(SEEDS)('is exact with several launchers that start together (seed %i)', async (seed) => {
    await world.end();
    world = new World(seed, (random) => Math.floor(random.next() * 5));
    const other = provider('other', [pool('main', ['small'])]);
    const sections = [[demo()], [demo()], [other]];
    const running: Launcher[] = [];
    for (const [index, section] of sections.entries()) {
      running.push((await world.launcher(section, `launcher${index}`)).launcher);
    }
    const maximum = trackMaximum();
    const applied = running.map((launcher, index) =>
      launcher.apply(world.config(sections[index] ?? [], keep({ small: 3 }))),
    );
    await world.during(Promise.all(applied));
    await untilFree('small', 3);
    await world.clock.advance(60_000);
    expect(maximum()).toBe(3);
    await world.served(['small']);
    await untilFree('small', 3);
    await world.clock.advance(60_000);
    expect(world.nodes().size).toBe(4);
  });

  it('is continued by another launcher when the elected one dies', async () => {
    const first = await world.launcher([demo()], 'launcher1', keep({ small: 2 }));
    await untilFree('small', 2);
    await world.launcher([demo()], 'launcher2', keep({ small: 2 }));
    world.server.partition(first.zk);
    await world.served(['small']);
    await untilFree('small', 2);
    await world.clock.advance(300_000);
    expect(world.nodes().size).toBe(3);
    world.server.heal(first.zk);
  });

  it('ignores nodes that no launcher can allocate', async () => {
    const first = await world.launcher([demo()], 'launcher1', keep({ small: 2 }));
    await untilFree('small', 2);
    await world.launcher([provider('other', [pool('main', ['small'])])], 'launcher2', keep({ small: 2 }));
    await first.stop();
    await untilFree('small', 4);
    await world.clock.advance(300_000);
    expect([...world.nodes().values()].map((node) => node.provider)).toEqual(['demo', 'demo', 'other', 'other']);
  });

  it.each([
    ['that was renamed', [pool('next', ['small'])]],
    ['that has lost the label', [pool('main', ['large']), pool('next', ['small'])]],
  ])('ignores nodes of a pool %s', async (_, pools) => {
    const { launcher } = await world.launcher([demo()], 'launcher1', keep({ small: 2 }));
    await untilFree('small', 2);
    const former = free('small');
    await world.during(launcher.apply(world.config([provider('demo', pools)], keep({ small: 2 }))));
    await untilFree('small', 4);
    await world.clock.advance(300_000);
    const [node = ''] = await world.fulfilled(await world.submit(['small']));
    expect(former).not.toContain(node);
    await untilFree('small', 4);
    // The nodes count again once their pool has its name again.
    await world.during(launcher.apply(world.config([demo()], keep({ small: 2 }))));
    await world.clock.advance(300_000);
    expect(free('small')).toEqual(expect.arrayContaining(former));
  });

  it('is requested again after the session was lost with its requests', async () => {
    world.cloud.configure({ bootTimeMs: [60_000, 60_000] });
    const { zk } = await world.launcher([demo()], 'launcher1', keep({ small: 2 }));
    await world.until('the instances boot', () => world.cloud.existingInstances().length === 2);
    world.server.expireSession(zk);
    await untilFree('small', 2);
    await world.clock.advance(300_000);
    expect(world.nodes().size).toBe(2);
    expect(world.cloud.existingInstances()).toHaveLength(2);
  });

  it('counts requests that another program has made for the same purpose', async () => {
    world.cloud.configure({ bootTimeMs: [10_000, 10_000] });
    const { launcher } = await world.launcher([demo()]);
    const maximum = trackMaximum();
    const theirs = await world.submit(['small'], { priority: 900, requestor: MIN_READY_REQUESTOR, reuse: false });
    await world.during(launcher.apply(world.config([demo()], keep({ small: 1 }))));
    await world.fulfilled(theirs);
    await world.clock.advance(60_000);
    // Only the other program deletes its request; the node is free after that.
    expect(world.records(REQUESTS).has(theirs)).toBe(true);
    await world.during(world.requestor.withdraw(theirs));
    await untilFree('small', 1);
    await world.clock.advance(60_000);
    expect(maximum()).toBe(1);
  });

  it('does not exist for a label that is disabled', async () => {
    await world.launcher([demo()], 'launcher1', keep({ small: -1, large: 1 }));
    await untilFree('large', 1);
    await world.clock.advance(300_000);
    expect(world.nodes().size).toBe(1);
  });

  it('follows the configuration', async () => {
    const { launcher } = await world.launcher([demo()], 'launcher1', keep({ small: 1 }));
    await untilFree('small', 1);
    await world.during(launcher.apply(world.config([demo()], keep({ small: 2, large: 1 }))));
    await untilFree('small', 2);
    await untilFree('large', 1);
    await world.during(launcher.apply(world.config([demo()], keep({ small: -1 }))));
    await world.served(['small', 'large']);
    await world.clock.advance(300_000);
    expect(free('small')).toHaveLength(1);
    expect(free('large')).toHaveLength(0);
  });

  it('withdraws requests that no pool has accepted if it is reduced', async () => {
    // Most requests remain unserved, since the pool works on one at a time.
    world.cloud.configure({ bootTimeMs: [1e6, 1e6] });
    const one = provider('demo', [pool('main', ['small'])], { 'max-concurrency': 1 });
    const { launcher } = await world.launcher([one], 'launcher1', keep({ small: 5 }));
    await world.until('all are asked for', () => minReadyRequests().length === 5);
    await world.until('one is begun', () => minReadyRequests().some(([, { state }]) => state === 'pending'));
    await world.during(launcher.apply(world.config([one], keep({ small: 2 }))));
    await world.until('the rest is taken back', () => minReadyRequests().length === 2);
    expect(minReadyRequests().map(([, { state }]) => state)).toContain('pending');
  });

  it('is retried with growing delays while the label cannot be served, and succeeds when it can', async () => {
    world.cloud.configure({ bootTimeMs: [0, 0] });
    const { launcher } = await world.launcher([demo({ 'max-servers': 1 })], 'launcher1', keep({ small: 2 }));
    const asked = new Set<string>();
    world.server.onCommit(() => {
      for (const [id] of minReadyRequests()) asked.add(id);
    });
    await untilFree('small', 1);
    await world.clock.advance(600_000);
    expect(asked.size).toBeGreaterThan(3);
    expect(asked.size).toBeLessThan(20);
    await world.during(launcher.apply(world.config([demo({ 'max-servers': 2 })], keep({ small: 2 }))));
    await untilFree('small', 2);
  });

  it('is retried with growing delays although a Python launcher requests nodes of the label each second', async () => {
    world.cloud.configure({ bootTimeMs: [0, 0] });
    const zk = world.server.connect();
    await world.launcher([demo({ 'max-servers': 1 })], 'launcher1', keep({ small: 2 }));
    await untilFree('small', 1);
    const python = { id: 'python', name: 'main', provider_name: 'demo', supported_labels: ['small'], priority: 100 };
    const component = { hostname: 'python', kind: 'pool', state: 'running', version: '11', model_api: 0 };
    const data = Buffer.from(JSON.stringify({ ...component, ...python, paused: false }));
    await world.during(zk.create('/nodepool/components/pool/python', data, { mode: 'ephemeral-sequential' }));
    const theirs = new Set<string>();
    const asked = new Set<string>();
    world.server.onCommit(() => {
      for (const [id] of minReadyRequests()) asked.add(id);
    });
    for (let second = 0; second < 600; second += 1) {
      const failed = minReadyRequests().filter(([id, { state }]) => state === 'failed' && theirs.has(id));
      for (const [id] of failed) await world.during(zk.delete(`${REQUESTS}/${id}`));
      if (!minReadyRequests().some(([id]) => theirs.has(id))) {
        theirs.add(await world.submit(['small'], { priority: 900, requestor: MIN_READY_REQUESTOR, reuse: false }));
      }
      await world.clock.advance(500);
      for (const [id, { state, declined_by: declinedBy }] of minReadyRequests()) {
        if (state !== 'requested' || !Array.isArray(declinedBy) || declinedBy.length !== 1) continue;
        const change = { state: 'failed', declined_by: [...(declinedBy as string[]), 'python'] };
        await world.during(world.requestor.change(`${REQUESTS}/${id}`, change));
      }
      await world.clock.advance(500);
    }
    expect(theirs.size).toBeGreaterThan(200);
    expect([...asked].filter((id) => !theirs.has(id)).length).toBeLessThan(20);
    await world.during(zk.close());
  });

  it('is not requested while no registered pool has the label', async () => {
    const asked = new Set<string>();
    world.server.onCommit(() => {
      for (const [id] of minReadyRequests()) asked.add(id);
    });
    await world.launcher([demo({}, ['large'])], 'launcher1', keep({ small: 2 }));
    await world.clock.advance(300_000);
    expect([...asked]).toEqual([]);
    await world.launcher([provider('other', [pool('main', ['small'])])], 'launcher2', keep({ small: 2 }));
    await untilFree('small', 2);
  });

  it.each(SEEDS)('is exact again after random faults of launchers and nodes (seed %i)', async (seed) => {
    await world.end();
    world = new World(seed, (random) => Math.floor(random.next() * 20));
    world.cloud.configure({ bootTimeMs: [0, 20_000] });
    const random = seededRandom(seed);
    const launchers = [
      await world.launcher([demo()], 'launcher1', keep({ small: 3 })),
      await world.launcher([demo()], 'launcher2', keep({ small: 3 })),
    ];
    for (let step = 0; step < 10; step += 1) {
      const launcher = launchers[Math.floor(random.next() * launchers.length)]!;
      const what = random.next();
      if (what < 0.4) {
        const id = await world.served(['small']);
        await world.giveBack(id);
      } else if (what < 0.7) {
        world.server.expireSession(launcher.zk);
      } else {
        world.server.disconnect(launcher.zk);
      }
      await world.clock.advance(Math.floor(random.next() * 30_000));
    }
    await world.clock.advance(180_000);
    expect([free('small').length, world.nodes().size, minReadyRequests().length]).toEqual([3, 3, 0]);
    expect(world.cloud.existingInstances()).toHaveLength(3);
  });

  it('leaves no election contender when its launcher stops', async () => {
    const { stop } = await world.launcher([demo()], 'launcher1', keep({ small: 1, large: 1 }));
    await untilFree('small', 1);
    await untilFree('large', 1);
    expect(world.lockHolders().filter((path) => path.startsWith('/nodepool/elections/'))).toHaveLength(2);
    await stop();
    expect(world.lockHolders()).toEqual([]);
  });
});

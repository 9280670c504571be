/** Tests of the limits of tenants, and that several launchers exceed no limit. */

import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { JsonObject } from '@nodepool/core';
import { readCloudSettings } from '@nodepool/driver-example';
import { DecisionLog } from '@nodepool/status';
import { REQUESTS, World, pool, provider, tenants } from './support/world.js';

const SETTINGS = readCloudSettings({});

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

const demo = (): JsonObject => provider('demo', [pool('main', ['small', 'large'])]);

function latestReason(id: string): string | undefined {
  return decisions.of('request', id).at(-1)?.reason;
}

describe('a tenant', () => {
  it('has a limit over all providers, and does not delay others', async () => {
    const sections = [provider('a', [pool('main', ['small'])]), provider('b', [pool('main', ['large'])])];
    await world.launcher(sections, 'launcher1', tenants({ red: { instances: 2 } }));
    const small = await world.served(['small'], { tenant: 'red' });
    const large = await world.served(['large'], { tenant: 'red' });
    const waits = await world.submit(['small'], { tenant: 'red' });
    await world.clock.advance(120_000);
    expect(latestReason(waits)).toBe('tenant red uses 2 of 2 instances, 1 more is needed');
    await world.served(['small'], { tenant: 'blue' });
    expect([...world.records('/nodepool/components/pool').values()].map(({ paused }) => paused)).toEqual([
      false,
      false,
    ]);
    await world.giveBack(large);
    await world.fulfilled(waits);
    await world.giveBack(small);
  });

  it('gets the capacity of a deleted node in another provider, also for a later request', async () => {
    const sections = [provider('a', [pool('main', ['small'])]), provider('b', [pool('main', ['large'])])];
    await world.launcher(sections, 'launcher1', tenants({ red: { instances: 1 } }));
    const first = await world.served(['small'], { tenant: 'red' });
    const next = await world.submit(['small'], { tenant: 'red' });
    const last = await world.submit(['large'], { tenant: 'red' });
    // By then a starting pool has checked all requests again.
    await world.clock.advance(120_000);
    await world.giveBack(first);
    await world.fulfilled(next);
    await world.giveBack(next);
    await world.clock.advance(60_000);
    expect(world.stateOf(last)).toBe('fulfilled');
  });

  it('whose request gets a ready node counts it, according to the record', async () => {
    const labels = new Map([['small', { name: 'small', minReady: 4, maxReadyAgeMs: Infinity, maxWaitMs: Infinity }]]);
    await world.launcher([demo()], 'launcher1', { labels, ...tenants({ red: { instances: 2 } }) });
    const ready = (): JsonObject[] => [...world.nodes().values()].filter(({ state }) => state === 'ready');
    await world.until('four are ready', () => ready().length === 4);
    expect(ready().map(({ tenant_name: tenant }) => tenant)).toEqual([null, null, null, null]);
    const ids: string[] = [];
    for (let index = 0; index < 4; index += 1) {
      ids.push(await world.submit(['small'], { tenant: 'red', requestor: `zuul ${index}` }));
    }
    await world.clock.advance(120_000);
    expect(ids.map((id) => world.stateOf(id))).toEqual(['fulfilled', 'fulfilled', 'requested', 'requested']);
    expect(latestReason(ids[2]!)).toBe('tenant red uses 2 of 2 instances, 1 more is needed');
    const owners = [...world.nodes().values()].filter(({ tenant_name: tenant }) => tenant === 'red');
    expect(owners.map(({ requestor }) => requestor).sort()).toEqual(['zuul 0', 'zuul 1']);
    await world.served(['small'], { tenant: 'blue' });
    for (const id of ids) {
      await world.fulfilled(id);
      await world.giveBack(id);
    }
  });

  it('never exceeds its limit: requests above it are declined', async () => {
    await world.launcher([demo()], 'launcher1', tenants({ red: { instances: 2 } }));
    const id = await world.submit(['small', 'small', 'small'], { tenant: 'red' });
    await world.inState(id, 'failed');
    expect(latestReason(id)).toBe('it needs 3 instances, and the limit of tenant red is 2');
    await world.served(['small', 'small', 'small'], { tenant: 'blue' });
  });

  it('gets another limit by configuration without a restart of providers', async () => {
    const { launcher } = await world.launcher([demo()], 'launcher1', tenants({ red: { instances: 1 } }));
    await world.served(['small'], { tenant: 'red' });
    const waits = await world.submit(['small'], { tenant: 'red' });
    await world.clock.advance(1000);
    const [registered] = world.records('/nodepool/components/pool').keys();
    await world.during(launcher.apply(world.config([demo()], tenants({ red: { instances: 2 } }))));
    await world.fulfilled(waits);
    expect([...world.records('/nodepool/components/pool').keys()]).toEqual([registered]);
  });
});

describe('several launchers', () => {
  const SEEDS = Array.from({ length: 8 }, (_, index) => index + 1);

  it.each(SEEDS)('never exceed a limit in any order of their steps (seed %i)', async (seed) => {
    await world.end();
    world = new World(seed, (random) => Math.floor(random.next() * 10));
    world.cloud.configure({ bootTimeMs: [0, 3000], quota: { ...SETTINGS.quota, instances: 7 } });
    const over: string[] = [];
    world.server.onCommit(() => {
      const begun = [...world.nodes().values()].filter(({ state }) => state !== 'init');
      const checkLimit = (what: string, limit: number, counts: (node: JsonObject) => boolean): void => {
        const count = begun.filter(counts).length;
        if (count > limit) over.push(`${what}: ${count} of ${limit}`);
      };
      checkLimit('pool a', 4, (node) => node.pool === 'a');
      checkLimit('pool b', 5, (node) => node.pool === 'b');
      checkLimit('the provider', 7, () => true);
      checkLimit('tenant red', 3, (node) => node.tenant_name === 'red');
    });
    const section = provider('demo', [
      pool('a', ['small'], { 'max-servers': 4 }),
      pool('b', ['small', 'large'], { 'max-servers': 5 }),
    ]);
    for (const name of ['one', 'two', 'three']) {
      await world.launcher([section], name, tenants({ red: { instances: 3 } }));
    }
    const wanted = Array.from({ length: 16 }, (_, index) => ({
      labels: index % 3 === 0 ? ['small', 'large'] : ['small'],
      tenant: index % 2 === 0 ? 'red' : 'blue',
    }));
    const ids = await world.during(
      Promise.all(wanted.map(({ labels, tenant }) => world.requestor.submit(labels, { tenant }))),
    );
    const done = new Set<string>();
    while (done.size < ids.length) {
      await world.clock.advance(500);
      for (const [id, { state }] of world.records(REQUESTS)) {
        if (state !== 'fulfilled') continue;
        done.add(id);
        await world.giveBack(id);
      }
    }
    expect(over).toEqual([]);
    await world.until('all nodes are gone', () => world.nodes().size === 0);
    expect(world.cloud.existingInstances()).toEqual([]);
  });
});

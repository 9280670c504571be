/**
 * Tests how requests are offered to the pools of a launcher: in order, once per class of equal requests, and over
 * several turns.
 */

import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { openStore, type RequestEntry, type Store } from '@nodepool/store';
import { seededRandom } from '@nodepool/core/testing';
import { silentLogger, TaskSupervisor, type Clock } from '@nodepool/core';
import { CandidatePools } from '../src/pool/candidate-pools.js';
import { RequestScheduler } from '../src/scheduling/request-scheduler.js';
import type { ScheduledPool } from '../src/scheduling/scheduled-pools.js';
import { World } from './support/world.js';

let world: World;
let store: Store;
beforeEach(async () => {
  world = new World();
  const zk = world.server.connect();
  store = openStore(zk, { clock: world.clock, random: seededRandom(1), identifier: 'test' });
  store.start();
  await world.during(store.ready());
});
afterEach(async () => {
  store.close();
  expect(await world.end()).toEqual([]);
});

/** Returns a pool that has all labels and accepts no request. */
function watcher(offered: (entry: RequestEntry) => void): ScheduledPool {
  return {
    id: 'watcher',
    isStarting: false,
    hasLabels: () => true,
    hasDeclined: () => false,
    offer: (_, entry) => {
      offered(entry);
      return false;
    },
    expire: () => false,
    firstChanged: () => undefined,
    settled: () => undefined,
    cancelled: () => undefined,
  };
}

async function submit(count: number, label: (index: number) => string, priority = 200): Promise<void> {
  const labels = Array.from({ length: count }, (_, index) => label(index));
  await world.during(Promise.all(labels.map((each) => world.requestor.submit([each], { priority }))));
  await world.until('the store knows them', () => store.requests.size >= count);
}

const contextOf = (clock: Clock) => ({
  ...{ store, clock, random: seededRandom(1), log: silentLogger },
  tasks: new TaskSupervisor(clock, () => undefined),
});

const NO_LIMITS = { limitOf: () => ({ at: Infinity, reason: '' }) };

describe('the scheduler', () => {
  it('offers the oldest of equal requests, and the highest priority first', async () => {
    await submit(500, (index) => `label-${index % 2}`);
    await submit(1, () => 'label-1', 100);
    const scheduler = new RequestScheduler(
      contextOf(world.clock),
      new CandidatePools(store.components, world.clock, silentLogger),
      NO_LIMITS,
    );
    const offered: string[] = [];
    scheduler.add(watcher(({ id }) => offered.push(id)));
    await world.clock.advance(1000);
    expect(offered).toEqual(['100-0000000500', '200-0000000000']);
    scheduler.stop();
  });

  it('shares one budget per turn among all pools', async () => {
    await submit(60, (index) => `label-${index}`);
    let spentMs = 0;
    let timers = 0;
    const clock: Clock = {
      now: () => world.clock.now(),
      monotonic: () => world.clock.monotonic() + spentMs,
      schedule: (delayMs, call) => {
        timers += 1;
        return world.clock.schedule(delayMs, call);
      },
    };
    const candidates = new CandidatePools(store.components, clock, silentLogger);
    const scheduler = new RequestScheduler(contextOf(clock), candidates, NO_LIMITS);
    const perTurn = new Map<number, number>();
    const pools = Array.from({ length: 20 }, () =>
      watcher(() => {
        // Each decision takes 0.1 ms.
        spentMs += 0.1;
        perTurn.set(timers, (perTurn.get(timers) ?? 0) + 1);
      }),
    );
    for (const pool of pools) scheduler.add(pool);
    await world.clock.advance(1000);
    expect([...perTurn.values()].reduce((sum, count) => sum + count, 0)).toBe(60 * 20);
    // The budget of 10 ms allows 100 decisions; the pools of one more class may exceed it.
    expect(Math.max(...perTurn.values())).toBeLessThanOrEqual(100 + 20);
    scheduler.stop();
  });

  it('offers all requests to each new pool, although finding them takes several turns', async () => {
    await submit(30, (index) => `label-${index}`);
    let spentMs = 0;
    const { now, schedule } = world.clock;
    const clock: Clock = {
      now: now.bind(world.clock),
      monotonic: () => world.clock.monotonic() + spentMs,
      schedule: schedule.bind(world.clock),
    };
    const candidates = new CandidatePools(store.components, clock, silentLogger);
    const scheduler = new RequestScheduler(contextOf(clock), candidates, NO_LIMITS);
    await world.clock.advance(1000);
    const offered = [0, 0, 0, 0];
    const pools = offered.map((_, index) => ({
      ...watcher(() => void (offered[index] = (offered[index] ?? 0) + 1)),
      hasLabels: () => {
        spentMs += 1;
        return true;
      },
    }));
    for (const pool of pools) scheduler.add(pool);
    await world.clock.advance(1000);
    expect(offered).toEqual([30, 30, 30, 30]);
    scheduler.stop();
  });

  it('reports to a pool that everything is offered, although there is nothing to offer', async () => {
    const candidates = new CandidatePools(store.components, world.clock, silentLogger);
    const scheduler = new RequestScheduler(contextOf(world.clock), candidates, NO_LIMITS);
    await world.clock.advance(1000);
    let settled = 0;
    scheduler.add({ ...watcher(() => undefined), settled: () => void (settled += 1) });
    await world.clock.advance(1000);
    expect(settled).toBeGreaterThan(0);
    scheduler.stop();
  });

  it('lets no pool that was removed decline a request at its wait limit', async () => {
    await submit(1, () => 'small');
    const candidates = new CandidatePools(store.components, world.clock, silentLogger);
    const at = world.clock.now() + 60_000;
    const limits = { limitOf: () => ({ at, reason: 'max-wait' }) };
    const scheduler = new RequestScheduler(contextOf(world.clock), candidates, limits);
    const expired: string[] = [];
    const named = (id: string): ScheduledPool => ({
      ...watcher(() => undefined),
      id,
      expire: () => expired.push(id) > 0,
    });
    const removed = named('removed');
    scheduler.add(removed);
    scheduler.add(named('kept'));
    await world.clock.advance(1000);
    scheduler.remove(removed);
    await world.clock.advance(61_000);
    expect(expired).toEqual(['kept']);
    scheduler.stop();
  });
});

/** Sessions that are lost, connections that break, and answers that never come, at each step of a request's life. */

import { describe, expect, it } from '@jest/globals';
import { seededRandom } from '@nodepool/core/testing';
import { LeaseLostError, RequestRemovedError, type Lease } from '../src/index.js';
import { afterCommits, FAULTS } from './support/faults.js';
import { encode } from './support/scripted-launcher.js';
import { World } from './support/world.js';

/** More than the writes and events of one life. */
const STEPS = 20;
/** From a transaction to the fault: at once, and in the middle of what follows. */
const DELAYS_MS = [0, 2000];
/** Longer than a session. */
const USE_MS = 15_000;

/** Fails if a launcher deletes a node while its holder has not been notified of the loss. */
function watchHolder(world: World): { hold(lease: Lease): void; release(): void } {
  let held: Lease | undefined;
  world.launcher.onDelete = (id) => {
    const used = held !== undefined && !held.lost.aborted && held.nodes.some((node) => node.id === id);
    if (used) world.violations.push(`node ${id} was deleted while it was used`);
  };
  return { hold: (lease) => void (held = lease), release: () => void (held = undefined) };
}

/** Acquires two nodes, uses them for a while, and gives them back. Resolves with whether the lease was lost. */
async function life(world: World): Promise<'used' | 'lost'> {
  const holder = watchHolder(world);
  for (;;) {
    let lease: Lease;
    try {
      lease = await world.requestor.acquire({ labels: ['small', 'big'] });
    } catch (error) {
      // The session was lost between the lock and the use: the program asks again.
      if (error instanceof LeaseLostError) continue;
      throw error;
    }
    holder.hold(lease);
    await new Promise<void>((resolve) => {
      world.clock.schedule(USE_MS, resolve);
    });
    const { aborted } = lease.lost;
    holder.release();
    await lease.return();
    return aborted ? 'lost' : 'used';
  }
}

function expectClean(world: World): void {
  expect(world.violations).toEqual([]);
  expect([world.records('requests').size, world.records('nodes').size, world.contenders()]).toEqual([0, 0, []]);
}

describe.each(Object.entries(FAULTS))('%s', (name, fault) => {
  it('at any step: the holder is notified before its nodes are deleted, and no record remains', async () => {
    let reached = 0;
    const outcomes = new Set<string>();
    for (let run = 0; run < STEPS * DELAYS_MS.length; run++) {
      const world = await World.start(run + 1);
      const happened = afterCommits(world, run % STEPS, fault, DELAYS_MS[Math.floor(run / STEPS)]);
      outcomes.add(await world.run(life(world)));
      await world.clock.advance(60_000);
      if (happened()) reached++;
      expectClean(world);
      await world.stop();
    }

    expect(reached).toBeGreaterThan(10);
    expect([...outcomes].sort()).toEqual(/session/.test(name) ? ['lost', 'used'] : ['used']);
  });

  it('does not remove or duplicate a durable request', async () => {
    for (let step = 0; step < 4; step++) {
      const world = await World.start(step + 1);
      world.launcher.mode = 'wait';
      if (step === 0) fault(world);
      else afterCommits(world, step - 1, fault);
      const request = await world.run(world.requestor.request({ labels: ['small'], durable: true }));
      await world.clock.advance(60_000);
      expect([...world.records('requests').keys()]).toEqual([request.id]);

      world.launcher.mode = 'serve';
      const lease = await world.run(request.take());
      expect(lease.lost.aborted).toBe(false);
      await world.run(lease.return());
      await world.clock.advance(1000);
      expectClean(world);
      await world.stop();
    }
  });
});

it('a request that is not durable ends with the session and reports that', async () => {
  const world = await World.start();
  world.launcher.mode = 'wait';
  const request = await world.run(world.requestor.request({ labels: ['small'] }));
  const waiting = request.fulfilled();
  waiting.catch(() => undefined);
  world.server.expireSession(world.zooKeeper);

  await expect(world.run(waiting)).rejects.toThrow(RequestRemovedError);
  await expect(world.run(waiting)).rejects.toMatchObject({ reason: 'session-lost' });
  await world.stop();
});

it('an interrupted submission is withdrawn with any outcome', async () => {
  const world = await World.start();
  world.launcher.mode = 'wait';
  const interrupt = new AbortController();
  world.server.loseNextWrite(world.zooKeeper, 'after-applied');
  const submitting = world.requestor.request({ labels: ['small'], durable: true }, { signal: interrupt.signal });
  submitting.catch(() => undefined);
  await world.clock.runUntil(() => world.records('requests').size === 1);
  interrupt.abort(new Error('interrupted'));

  await expect(world.run(submitting)).rejects.toThrow('interrupted');
  await world.clock.advance(10_000);
  expect(world.records('requests').size).toBe(0);
  await world.stop();
});

it.each([true, false])(
  'a request is cancelled at its deadline even if ZooKeeper is away, durable: %s',
  async (durable) => {
    const world = await World.start();
    world.launcher.mode = 'wait';
    const acquired = world.requestor.acquire({ labels: ['small'], durable }, { timeoutMs: 10_000 });
    acquired.catch(() => undefined);
    await world.clock.advance(5000);
    expect(world.records('requests').size).toBe(1);
    world.server.partition(world.zooKeeper, 'silent');

    await expect(world.run(acquired)).rejects.toMatchObject({ code: 'request-timeout' });
    await world.clock.advance(60_000);
    world.server.heal(world.zooKeeper);
    await world.clock.advance(10_000);
    expect(world.records('requests').size).toBe(0);
    await world.stop();
  },
);

it('equal requests are submitted as often as requested although answers are lost', async () => {
  const world = await World.start();
  world.launcher.mode = 'wait';
  world.server.loseNextWrite(world.zooKeeper, 'after-applied');
  const spec = { labels: ['small'], eventId: 'same', durable: true };
  const requests = await world.run(Promise.all([1, 2, 3, 4].map(() => world.requestor.request(spec))));

  expect([...world.records('requests').keys()].sort()).toEqual(requests.map(({ id }) => id).sort());
  expect(new Set(requests.map(({ id }) => id)).size).toBe(4);
  await world.stop();
});

it.each([1, 2, 3, 4, 5])('all requests succeed or end cleanly under random faults, seed %i', async (seed) => {
  const random = seededRandom(seed);
  const faults = Object.values(FAULTS);
  const world = await World.start(seed);
  const disturb = (): void => {
    faults[Math.floor(random.next() * faults.length)]?.(world);
    timer = world.clock.schedule(500 + random.next() * 20_000, disturb);
  };
  let timer = world.clock.schedule(1000, disturb);
  for (let i = 0; i < 15; i++) await world.run(life(world));
  timer.cancel();
  await world.clock.advance(120_000);

  expectClean(world);
  await world.stop();
});

describe('a restored backup of ZooKeeper', () => {
  it.each(['waits', 'is cancelled'])('does not affect a new request with the id of one that %s', async (end) => {
    const world = await World.start();
    const { server, clock, launcher, requestor, zooKeeper } = world;
    launcher.mode = 'wait';
    const backup = server.snapshot();
    const cancellation = new AbortController();
    const acquired = requestor.acquire({ labels: ['small'] }, { signal: cancellation.signal });
    await clock.runUntil(() => world.records('requests').size === 1, 60_000);
    const [id = ''] = world.records('requests').keys();
    const other = server.connect({ sessionTimeoutMs: 9000 });
    await world.run(other.connected());

    server.restore(backup);
    const record = { state: 'requested', node_types: ['big'], requestor: 'other' };
    const { path } = await world.run(
      other.create('/nodepool/requests/200-', encode(record), { mode: 'persistent-sequential' }),
    );
    expect(path).toBe(`/nodepool/requests/${id}`);
    if (end === 'is cancelled') {
      cancellation.abort(new Error('cancelled'));
      await expect(world.run(acquired)).rejects.toThrow('cancelled');
      expect([...world.records('requests').keys()]).toEqual([id]);
      await world.run(other.close());
      await world.stop();
      return;
    }
    server.expireSession(zooKeeper);
    await clock.runUntil(() => world.records('requests').size === 2, 60_000);
    expect([...world.records('requests').values()].map((request) => request['node_types'])).toEqual([
      ['big'],
      ['small'],
    ]);

    launcher.mode = 'serve';
    const lease = await world.run(acquired);
    expect(lease.nodes.map(({ label }) => label)).toEqual(['small']);
    await world.run(lease.return());
    await world.run(other.close());
    await world.stop();
  });
});

/** Durable leases under faults, and after the death of their process at any step. */

import { describe, expect, it } from '@jest/globals';
import { seededRandom } from '@nodepool/core/testing';
import type { TransactionOp, ZooKeeper } from '@nodepool/zookeeper';
import { LeaseLostError, openRequestor, RequestRemovedError, type Lease, type Requestor } from '../src/index.js';
import { afterCommits, FAULTS } from './support/faults.js';
import { World } from './support/world.js';

const OWNER = 'test/ci';
const SPEC = { labels: ['small', 'big'], durable: true };
/** More than the writes of one life. */
const STEPS = 8;

/** Another process of the same program. */
interface Process {
  readonly zooKeeper: ZooKeeper;
  readonly requestor: Requestor;
  stop(): Promise<void>;
}

function startProcess(world: World, seed = 99): Process {
  const zooKeeper = world.server.connect({ sessionTimeoutMs: 9000 });
  const requestor = openRequestor(zooKeeper, { name: 'test', clock: world.clock, random: seededRandom(seed) });
  const stop = async (): Promise<void> => {
    await requestor.close();
    await zooKeeper.close();
  };
  return { zooKeeper, requestor, stop };
}

async function take(world: World): Promise<Lease> {
  const request = await world.requestor.request(SPEC);
  return request.take({ durable: OWNER, userData: { job: 1 } });
}

function expectClean(world: World): void {
  expect([world.records('requests').size, world.records('nodes').size, world.contenders()]).toEqual([0, 0, []]);
}

it('a lease survives its session, and ends when it is returned', async () => {
  const world = await World.start();
  const lease = await world.run(take(world));
  expect(lease.owner).toBe(OWNER);
  expect(lease.nodes.map(({ label, state }) => [label, state])).toEqual([
    ['small', 'in-use'],
    ['big', 'in-use'],
  ]);
  world.server.expireSession(world.zooKeeper);
  await world.clock.advance(60_000);
  expect([lease.lost.aborted, world.records('nodes').size, world.launcher.deleted]).toEqual([false, 2, []]);
  await world.run(lease.confirm());
  expect([...world.records('nodes').values()].map((node) => node['user_data'])).toEqual([{ job: 1 }, { job: 1 }]);

  await world.run(lease.return());
  await world.run(lease.return());
  await world.run(lease.deleted());
  await world.clock.advance(1000);
  expectClean(world);
  await world.stop();
});

it('a lease of nodes that are not in use yet survives as well', async () => {
  const world = await World.start();
  const request = await world.run(world.requestor.request(SPEC));
  const lease = await world.run(request.lock({ durable: OWNER }));
  expect([...world.records('nodes').values()].map(({ state }) => state)).toEqual(['ready', 'ready']);
  world.server.expireSession(world.zooKeeper);
  await world.clock.advance(60_000);
  await world.run(lease.use({ userData: 'x' }));
  await world.run(lease.hold({ comment: 'debugging' }));
  await world.clock.advance(60_000);
  expect([...world.records('nodes').values()].map(({ state, comment }) => [state, comment])).toEqual([
    ['hold', 'debugging'],
    ['hold', 'debugging'],
  ]);
  expect(world.contenders()).toEqual([]);
  await world.stop();
});

it('another process lists and adopts the leases of its owner, and of no other', async () => {
  const world = await World.start();
  const mine = await world.run(take(world));
  const request = await world.run(world.requestor.request({ labels: ['small'], durable: true }));
  const other = await world.run(request.take({ durable: `${OWNER}/other` }));
  const later = startProcess(world);
  const ids = mine.nodes.map(({ id }) => id);

  expect(await world.run(later.requestor.leases(OWNER))).toEqual([{ requestId: '200-0000000000', nodes: ids }]);
  expect(await world.run(later.requestor.leases('test'))).toEqual([]);
  const adoption = later.requestor.adoptLease(OWNER, [...ids, ...other.nodes.map(({ id }) => id)]);
  await expect(world.run(adoption)).rejects.toMatchObject({ code: 'lease-lost', nodeIds: [other.nodes[0]?.id] });

  const lease = await world.run(later.requestor.adoptLease(OWNER, ids, { labels: SPEC.labels }));
  await world.clock.advance(1000);
  expect(lease.nodes.map(({ label }) => label)).toEqual(SPEC.labels);
  expect([mine.lost.aborted, lease.lost.aborted, other.lost.aborted]).toEqual([true, false, false]);
  await expect(world.run(mine.hold())).rejects.toThrow(LeaseLostError);
  await world.run(mine.return());
  await world.clock.advance(10_000);
  expect(world.records('nodes').size).toBe(3);

  await world.run(lease.return());
  await world.run(other.return());
  await world.clock.advance(1000);
  expectClean(world);
  await world.run(later.stop());
  await world.stop();
});

it('processes that share a lease cannot both end it', async () => {
  for (let seed = 1; seed <= 10; seed++) {
    const world = await World.start(seed);
    const lease = await world.run(take(world));
    const other = startProcess(world);
    const ids = lease.nodes.map(({ id }) => id);
    const shared = await world.run(other.requestor.adoptLease(OWNER, ids, { takeOver: false }));
    await world.run(lease.confirm());
    const random = seededRandom(seed);
    const held = (async (): Promise<boolean> => {
      await new Promise<void>((resolve) => world.clock.schedule(random.next() * 4, resolve));
      return lease.hold().then(
        () => true,
        (error: unknown) => {
          expect(error).toBeInstanceOf(LeaseLostError);
          return false;
        },
      );
    })();
    const returned = (async (): Promise<void> => {
      await new Promise<void>((resolve) => world.clock.schedule(random.next() * 4, resolve));
      await shared.return();
    })();
    const [isHeld] = await world.run(Promise.all([held, returned]));
    await world.clock.advance(1000);
    const left = [...world.records('nodes').values()].map(({ state }) => state);
    if (isHeld) expect(left).toEqual(['hold', 'hold']);
    else expect(left.length).toBeLessThan(2);
    expect(world.contenders()).toEqual([]);
    await world.run(other.stop());
    await world.stop();
  }
});

describe.each(Object.entries(FAULTS))('%s', (_, fault) => {
  it('at any step: the nodes are held until they are returned, and nothing remains', async () => {
    let reached = 0;
    for (let step = 0; step < STEPS; step++) {
      const world = await World.start(step + 1);
      const happened = afterCommits(world, step, fault);
      const lease = await world.run(take(world));
      await world.clock.advance(60_000);
      expect([lease.lost.aborted, world.records('nodes').size, world.launcher.deleted]).toEqual([false, 2, []]);
      await world.run(lease.return());
      await world.clock.advance(60_000);
      if (happened()) reached++;
      expect(world.launcher.deleted).toHaveLength(2);
      expectClean(world);
      await world.stop();
    }
    expect(reached).toBeGreaterThan(4);
  });
});

it('the next process continues after the death of the first at any step', async () => {
  const states = new Set<string>();
  for (let step = 0; step < STEPS; step++) {
    const world = await World.start(step + 1);
    const request = await world.run(world.requestor.request(SPEC));
    const died = afterCommits(world, step, () => world.server.partition(world.zooKeeper, 'silent'));
    const life = (async (): Promise<void> => {
      const lease = await request.take({ durable: OWNER });
      await lease.return();
    })();
    const end = life.catch((error: unknown) => {
      // The later process has ended the lease.
      expect(error).toBeInstanceOf(RequestRemovedError);
    });
    await world.clock.runUntil(died, 60_000);
    await world.clock.advance(60_000);

    const later = startProcess(world);
    const nodes = world.records('nodes').size;
    try {
      const lease = await world.run(later.requestor.resume(request.id).take({ durable: OWNER }));
      expect(lease.nodes.map(({ state }) => state)).toEqual(['in-use', 'in-use']);
      states.add(`lease of ${nodes}`);
      await world.run(lease.return());
    } catch (error) {
      // The first process had returned the nodes.
      expect(error).toBeInstanceOf(RequestRemovedError);
      expect(nodes).toBe(0);
      states.add('returned');
    }
    await world.clock.advance(10_000);
    expect(await world.run(later.requestor.leases(OWNER))).toEqual([]);
    expectClean(world);
    await world.run(later.stop());
    world.server.heal(world.zooKeeper);
    await world.run(end);
    await world.stop();
  }
  expect([...states].sort()).toEqual(['lease of 2', 'returned']);
});

it('a process that was suspended while another took over cannot return or hold the nodes', async () => {
  const world = await World.start();
  const lease = await world.run(take(world));
  const ids = lease.nodes.map(({ id }) => id);
  world.server.partition(world.zooKeeper, 'silent');
  const later = startProcess(world);
  const adopted = await world.run(later.requestor.adoptLease(OWNER, ids));
  const holding = lease.hold();
  holding.catch(() => undefined);
  await world.clock.advance(60_000);
  world.server.heal(world.zooKeeper);
  await expect(world.run(holding)).rejects.toThrow(LeaseLostError);
  await world.run(adopted.confirm());
  expect(adopted.nodes.map(({ state }) => state)).toEqual(['in-use', 'in-use']);
  await world.run(adopted.return());
  await world.clock.advance(1000);
  expectClean(world);
  await world.run(later.stop());
  await world.stop();
});

it('a node that another program locks meanwhile is locked after it', async () => {
  const world = await World.start();
  const request = await world.run(world.requestor.request(SPEC));
  const [id = ''] = await world.run(request.fulfilled());
  const other = startProcess(world);
  const path = `/nodepool/nodes/${id}/lock/${'0'.repeat(32)}__lock__`;
  const contender = await world.run(other.zooKeeper.create(path, undefined, { mode: 'ephemeral-sequential' }));
  const taking = request.take({ durable: OWNER });
  await world.clock.advance(5000);
  expect(world.contenders()).toEqual([contender.path]);
  await world.run(other.zooKeeper.delete(contender.path));
  const lease = await world.run(taking);
  await world.run(lease.return());
  await world.clock.advance(1000);
  expectClean(world);
  await world.run(other.stop());
  await world.stop();
});

it('operations of the program are part of the transaction that locks the nodes', async () => {
  const world = await World.start();
  await world.run(world.zooKeeper.create('/record'));
  const request = await world.run(world.requestor.request(SPEC));
  const set = (version: number): TransactionOp => ({ type: 'set', path: '/record', data: Buffer.from('x'), version });
  const refused = request.take({ durable: OWNER, alongside: [set(7)] });
  await expect(world.run(refused)).rejects.toMatchObject({ code: 'bad-version' });
  const absent = request.take({ durable: OWNER, alongside: [set(0), { type: 'check', path: '/other', version: 0 }] });
  await expect(world.run(absent)).rejects.toMatchObject({ code: 'no-node' });
  expect([world.records('requests').size, world.contenders()]).toEqual([1, []]);

  world.server.loseNextWrite(world.zooKeeper, 'after-applied');
  const lease = await world.run(request.take({ durable: OWNER, alongside: [set(0)] }));
  expect(world.server.dump().get('/record')?.stat.version).toBe(1);
  await world.run(lease.return());
  await world.run(lease.deleted());
  await world.stop();
});

it('a program that closes its client leaves the lease, and no timers', async () => {
  const world = await World.start();
  await world.run(take(world));
  await world.run(world.requestor.close());
  await world.run(world.zooKeeper.close());
  await world.run(world.other.close());
  await world.run(world.launcher.stop());
  await world.clock.advance(120_000);
  expect(world.clock.pending).toBe(0);
  expect([world.records('nodes').size, world.contenders().length]).toEqual([2, 2]);
});

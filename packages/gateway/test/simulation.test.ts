/**
 * Gateways in virtual time that are cut off or lose answers in every step. After each transaction of the server, the
 * rules hold: a lease has its request or its nodes, and no node is locked for a lease that does not have it.
 */

import { describe, expect, it } from '@jest/globals';
import type { JsonObject, Metrics } from '@nodepool/core';
import { seededRandom, silentLogger, VirtualClock } from '@nodepool/core/testing';
import type { ZooKeeper } from '@nodepool/zookeeper';
import { SimulatedZooKeeperServer } from '@nodepool/zookeeper/simulated';
import type { Principal } from '../src/auth/principal.js';
import { QuotaError } from '../src/leases/lease-service.js';
import { Leases } from '../src/leases/leases.js';
import type { LeaseState } from '../src/leases/record.js';
import { ScriptedLauncher } from './support/scripted-launcher.js';

const LIMIT_MS = 600_000;
const PRINCIPAL: Principal = {
  subject: 'test',
  grant: {
    name: 'test',
    tenant: 'acme',
    labels: ['*'],
    priorities: { min: 0, max: 999, default: 200 },
    maxNodes: 100,
    maxLifetime: 86_400,
  },
};
const SPEC = { labels: ['debian', 'windows'], name: 'job', priority: 200, tenant: 'acme', lifetime: 600, data: null };
const METRICS: Metrics = {
  count: () => undefined,
  observe: () => undefined,
  set: () => undefined,
  onCollect: () => () => undefined,
};

interface SimulatedGateway {
  readonly leases: Leases;
  readonly zooKeeper: ZooKeeper;
}

class Simulation {
  readonly clock = new VirtualClock();
  readonly server = new SimulatedZooKeeperServer({ clock: this.clock, latencyMs: 1 });
  readonly launcher = new ScriptedLauncher(this.server.connect({ sessionTimeoutMs: 60_000 }), this.clock);
  readonly gateways: SimulatedGateway[] = [];
  readonly violations = new Set<string>();
  private readonly options = new AbortController();

  static async start(gateways: number, seed: number): Promise<Simulation> {
    const simulation = new Simulation();
    await simulation.run(simulation.launcher.start());
    for (let count = 0; count < gateways; count++) await simulation.gateway(seed * 10 + count);
    simulation.server.onCommit(() => simulation.check());
    return simulation;
  }

  async gateway(seed: number): Promise<SimulatedGateway> {
    const zooKeeper = this.server.connect({ sessionTimeoutMs: 9000 });
    const leases = new Leases({
      ...{ zooKeeper, clock: this.clock, random: seededRandom(seed), log: silentLogger, metrics: METRICS },
      identifier: `gateway-${seed}`,
      retention: () => 3600,
    });
    const gateway = { leases, zooKeeper };
    this.gateways.push(gateway);
    await this.run(leases.start());
    return gateway;
  }

  /** Cuts a gateway off for ever, as its death does. */
  kill({ zooKeeper }: SimulatedGateway): void {
    this.server.partition(zooKeeper, 'silent');
  }

  create({ leases }: SimulatedGateway, key = 'job', principal = PRINCIPAL): ReturnType<Leases['service']['create']> {
    return leases.service.create(principal, SPEC, key, { signal: this.options.signal });
  }

  async run<T>(work: Promise<T>): Promise<T> {
    let settled = false;
    const done = (): void => {
      settled = true;
    };
    work.then(done, done);
    if (!(await this.clock.runUntil(() => settled, LIMIT_MS))) throw new Error('the promise was never settled');
    return work;
  }

  async until(condition: () => boolean): Promise<void> {
    if (!(await this.clock.runUntil(condition, LIMIT_MS))) throw new Error('the condition never held');
  }

  records(folder: string): ReadonlyMap<string, JsonObject> {
    const prefix = `/nodepool/${folder}/`;
    const found = new Map<string, JsonObject>();
    for (const [path, { data }] of this.server.dump()) {
      const id = path.slice(prefix.length);
      if (path.startsWith(prefix) && !id.includes('/') && data.length > 0) {
        found.set(id, JSON.parse(Buffer.from(data).toString()) as JsonObject);
      }
    }
    return found;
  }

  stateOf(id: string): LeaseState | undefined {
    return this.records('gateway/leases').get(id)?.['state'] as LeaseState | undefined;
  }

  /** Expects that nothing of ended leases remains. */
  expectClean(): void {
    expect([...this.violations]).toEqual([]);
    expect([...this.records('requests').keys()]).toEqual([]);
    expect([...this.records('nodes')].map(([id, { state, user_data: data }]) => [id, state, data])).toEqual([]);
  }

  async stop(): Promise<void> {
    this.options.abort(new Error('the simulation ends'));
    for (const { leases, zooKeeper } of this.gateways) {
      this.server.heal(zooKeeper);
      await this.run(leases.stop());
      await this.run(zooKeeper.close());
    }
    await this.run(this.launcher.stop());
  }

  /** Checks the rules. */
  private check(): void {
    const leases = this.records('gateway/leases');
    const nodes = this.records('nodes');
    const requests = [...this.records('requests').values()].map((request) => leaseOf(request['requestor_data']));
    const holders = new Map<string, string>();
    for (const [path, { data }] of this.server.dump()) {
      const [, node] = /^\/nodepool\/nodes\/(\d+)\/lock\/.*__lock__/.exec(path) ?? [];
      const [, lease] = /^lease\/(.*)$/.exec(Buffer.from(data).toString()) ?? [];
      if (node !== undefined && lease !== undefined) holders.set(node, lease);
    }
    for (const [id, { state, nodes: own }] of leases) {
      const waiting = requests.filter((lease) => lease === id).length;
      if (waiting > 1) this.violations.add(`lease ${id} has ${waiting} requests`);
      if (state === 'waiting' && waiting === 0) this.violations.add(`lease ${id} waits without a request`);
      if (state === 'ready' && waiting > 0) this.violations.add(`lease ${id} has nodes and a request`);
      if (state !== 'ready') continue;
      for (const { id: node } of own as unknown as readonly { readonly id: string }[]) {
        if (holders.get(node) !== id || nodes.get(node)?.['state'] !== 'in-use') {
          this.violations.add(`lease ${id} is ready without node ${node}`);
        }
      }
    }
    for (const [node, lease] of holders) {
      const state = leases.get(lease)?.['state'] as LeaseState | undefined;
      if (state !== 'ready' && state !== 'ending')
        this.violations.add(`node ${node} belongs to lease ${lease}: ${state ?? 'none'}`);
    }
  }
}

function leaseOf(data: unknown): unknown {
  return typeof data === 'object' && data !== null && 'lease' in data ? data.lease : undefined;
}

/** More than the transactions of a life. */
const STEPS = 12;

describe('a gateway that dies', () => {
  it('in any step leaves the lease to the other one', async () => {
    const reached = new Set<LeaseState | undefined>();
    for (let step = 0; step < STEPS; step++) {
      const simulation = await Simulation.start(2, step + 1);
      const [first, second] = simulation.gateways as [SimulatedGateway, SimulatedGateway];
      let commits = 0;
      let id = '';
      simulation.server.onCommit(() => {
        if (commits++ !== step) return;
        simulation.clock.schedule(0, () => {
          reached.add(simulation.stateOf(id));
          simulation.kill(first);
        });
      });
      const life = (async (): Promise<void> => {
        id = (await simulation.create(first)).entry.id;
        await first.leases.service.release(id, 'success', null, {});
      })();
      life.catch(() => undefined);
      await simulation.clock.advance(5000);

      // The caller repeats its requests at the other gateway.
      const { entry } = await simulation.run(simulation.create(second));
      const state = simulation.stateOf(entry.id);
      if (state === 'waiting') await simulation.until(() => simulation.stateOf(entry.id) === 'ready');
      await simulation.run(second.leases.service.release(entry.id, null, null, {}));
      await simulation.until(() => simulation.stateOf(entry.id) === 'ended');
      await simulation.clock.advance(120_000);
      expect(simulation.records('gateway/leases').size).toBe(1);
      simulation.expectClean();
      await simulation.stop();
    }
    expect(reached.size).toBeGreaterThan(2);
  });

  it('alone, in any step, continues after its restart', async () => {
    for (let step = 0; step < STEPS; step++) {
      const simulation = await Simulation.start(1, step + 1);
      const [first] = simulation.gateways as [SimulatedGateway];
      let commits = 0;
      simulation.server.onCommit(() => {
        if (commits++ === step) simulation.clock.schedule(0, () => simulation.kill(first));
      });
      const creation = simulation.create(first);
      creation.catch(() => undefined);
      await simulation.clock.advance(60_000);
      const second = await simulation.gateway(77 + step);
      const { entry } = await simulation.run(simulation.create(second));
      await simulation.until(() => simulation.stateOf(entry.id) === 'ready');
      await simulation.run(second.leases.service.release(entry.id, null, null, {}));
      await simulation.until(() => simulation.stateOf(entry.id) === 'ended');
      await simulation.clock.advance(120_000);
      simulation.expectClean();
      await simulation.stop();
    }
  });
});

it('a lease that is not renewed ends, once, at the time of the ensemble', async () => {
  const simulation = await Simulation.start(3, 5);
  const [first, second] = simulation.gateways as [SimulatedGateway, SimulatedGateway];
  const { entry } = await simulation.run(simulation.create(first));
  await simulation.until(() => simulation.stateOf(entry.id) === 'ready');
  await simulation.clock.advance(500_000);
  await simulation.run(second.leases.service.renew(entry.id, undefined, {}));
  await simulation.clock.advance(590_000);
  expect(simulation.stateOf(entry.id)).toBe('ready');
  await simulation.clock.advance(30_000);
  expect(simulation.stateOf(entry.id)).toBe('ended');
  expect(simulation.records('gateway/leases').get(entry.id)).toMatchObject({ end: { reason: 'expired' } });
  await expect(simulation.run(first.leases.service.renew(entry.id, undefined, {}))).rejects.toMatchObject({
    code: 'lease-over',
  });
  simulation.expectClean();
  await simulation.clock.advance(3_700_000);
  expect(simulation.records('gateway/leases').size).toBe(0);
  await simulation.stop();
});

it('a renewal in the moment of the expiry is either refused, or the lease continues', async () => {
  const outcomes = new Set<string>();
  for (let offset = -4; offset <= 4; offset += 0.5) {
    const simulation = await Simulation.start(2, 50);
    const [first, second] = simulation.gateways as [SimulatedGateway, SimulatedGateway];
    const { entry } = await simulation.run(simulation.create(first));
    await simulation.until(() => simulation.stateOf(entry.id) === 'ready');
    const renewed = simulation.records('gateway/leases').get(entry.id)?.['renewed'] as number;
    await simulation.clock.advance((renewed + 600) * 1000 - simulation.clock.now() + offset);
    const outcome = await simulation.run(
      second.leases.service.renew(entry.id, undefined, {}).then(
        () => 'ready',
        () => 'ended',
      ),
    );
    outcomes.add(outcome);
    await simulation.clock.advance(30_000);
    expect([offset, simulation.stateOf(entry.id)]).toEqual([offset, outcome]);
    await simulation.stop();
  }
  expect(outcomes.size).toBe(2);
});

it('gateways that create leases at the same time do not exceed the limit of nodes', async () => {
  for (let seed = 1; seed <= 5; seed++) {
    const simulation = await Simulation.start(3, seed);
    simulation.launcher.mode = 'wait';
    const limited: Principal = { ...PRINCIPAL, grant: { ...PRINCIPAL.grant, maxNodes: 5 } };
    const attempts = Array.from({ length: 9 }, (_, at) =>
      simulation.create(simulation.gateways[at % 3]!, `job ${at}`, limited).then(
        () => 'created',
        (error: unknown) => (error instanceof QuotaError ? 'quota' : error),
      ),
    );
    const outcomes = await simulation.run(Promise.all(attempts));
    expect(outcomes.toSorted()).toEqual([...Array<string>(2).fill('created'), ...Array<string>(7).fill('quota')]);
    expect(simulation.records('requests').size).toBe(2);
    await simulation.stop();
  }
});

it('a lease that waits expires, too, and its request is withdrawn', async () => {
  const simulation = await Simulation.start(2, 6);
  simulation.launcher.mode = 'wait';
  const { entry } = await simulation.run(simulation.create(simulation.gateways[0]!));
  await simulation.clock.advance(590_000);
  expect(simulation.stateOf(entry.id)).toBe('waiting');
  await simulation.clock.advance(30_000);
  expect(simulation.stateOf(entry.id)).toBe('ended');
  simulation.expectClean();
  await simulation.stop();
});

it('leases survive the absence of all gateways and of ZooKeeper', async () => {
  const simulation = await Simulation.start(2, 7);
  const { entry } = await simulation.run(simulation.create(simulation.gateways[0]!));
  await simulation.until(() => simulation.stateOf(entry.id) === 'ready');
  for (const { zooKeeper } of simulation.gateways) simulation.server.partition(zooKeeper, 'silent');
  await simulation.clock.advance(120_000);
  expect([simulation.stateOf(entry.id), simulation.launcher.deleted]).toEqual(['ready', []]);
  for (const { zooKeeper } of simulation.gateways) simulation.server.heal(zooKeeper);
  await simulation.until(() => simulation.gateways.every(({ leases }) => leases.ready));
  await simulation.run(simulation.gateways[1]!.leases.service.renew(entry.id, undefined, {}));
  await simulation.clock.advance(550_000);
  expect(simulation.stateOf(entry.id)).toBe('ready');
  await simulation.clock.advance(100_000);
  simulation.expectClean();
  await simulation.stop();
});

it('requests and nodes without a record are returned, and those of other programs are not', async () => {
  const simulation = await Simulation.start(2, 8);
  const [first] = simulation.gateways as [SimulatedGateway];
  const ready = (await simulation.run(simulation.create(first, 'ready'))).entry;
  const kept = (await simulation.run(simulation.create(first, 'kept'))).entry;
  await simulation.until(() => [ready, kept].every(({ id }) => simulation.stateOf(id) === 'ready'));
  simulation.launcher.mode = 'wait';
  const waiting = (await simulation.run(simulation.create(first, 'waiting'))).entry;
  // A look-alike: the data of a lease, but the lock of another program.
  const { store } = simulation.launcher;
  const [node] = store.nodes.allocatedTo('200-0000000000');
  const [id = ''] = await simulation.run(store.nodes.create([{ ...node!.node, state: 'hold', allocated_to: null }]));
  const use = { id, change: { state: 'in-use' } } as const;
  await simulation.run(store.nodes.tryLockAll([use], { owner: 'other/program' }));
  for (const lease of [ready, waiting])
    await simulation.run(first.zooKeeper.delete(`/nodepool/gateway/leases/${lease.id}`));
  simulation.violations.clear();
  await simulation.clock.advance(30_000);
  expect(simulation.records('nodes').size).toBe(5);
  await simulation.clock.advance(90_000);
  expect([...simulation.records('requests').keys()]).toEqual([]);
  expect(simulation.records('nodes').size).toBe(3);
  expect(await simulation.run(store.nodes.holder(id))).toMatchObject({ identifier: 'other/program' });
  expect(simulation.stateOf(kept.id)).toBe('ready');
  await simulation.stop();
});

it.each([1, 2, 3, 4, 5, 6])('the rules hold under random faults, seed %i', async (seed) => {
  const simulation = await Simulation.start(3, seed);
  const random = seededRandom(seed);
  const pick = (): SimulatedGateway => simulation.gateways[Math.floor(random.next() * 3)] ?? simulation.gateways[0]!;
  const disturb = (): void => {
    const { zooKeeper } = pick();
    const fault = Math.floor(random.next() * 4);
    if (fault === 0) simulation.server.disconnect(zooKeeper);
    else if (fault === 1) simulation.server.loseNextWrite(zooKeeper, 'after-applied');
    else if (fault === 2) simulation.server.loseNextWrite(zooKeeper, 'before-applied');
    else simulation.server.expireSession(zooKeeper);
    timer = simulation.clock.schedule(200 + random.next() * 5000, disturb);
  };
  let timer = simulation.clock.schedule(100, disturb);
  const ids: string[] = [];
  for (let job = 0; job < 12; job++) {
    const creating = (async (): Promise<string> => {
      for (;;) {
        try {
          return (await simulation.create(pick(), `job ${job}`)).entry.id;
        } catch {
          await new Promise<void>((resolve) => simulation.clock.schedule(500, resolve));
        }
      }
    })();
    ids.push(await simulation.run(creating));
    await simulation.clock.advance(random.next() * 3000);
  }
  await simulation.until(() => ids.every((id) => simulation.stateOf(id) === 'ready'));
  for (const id of ids.slice(0, 6)) {
    const releasing = (async (): Promise<void> => {
      for (let done = false; !done;) {
        try {
          done = (await pick().leases.service.release(id, null, null, {})) !== undefined;
        } catch {
          await new Promise<void>((resolve) => simulation.clock.schedule(500, resolve));
        }
      }
    })();
    await simulation.run(releasing);
  }
  timer.cancel();
  await simulation.clock.advance(800_000);
  expect(ids.map((id) => simulation.stateOf(id))).toEqual(ids.map(() => 'ended'));
  simulation.expectClean();
  await simulation.stop();
});

/** Tests of nodes in use that lose their instance: their record, their holder, and the health of their offer. */

import { describe, expect, it } from '@jest/globals';
import { sleep, TransientError, type Instance, type Provider, type ProviderContext } from '@nodepool/core';
import type { NodepoolConfig } from '@nodepool/config';
import type { Interruption } from '@nodepool/requestor';
import { MINUTE_MS, NODES, demo, heldNode, notes, warnings, world } from './support/cleanup-world.js';
import { faultyDriver } from './support/faulty-driver.js';
import type { TakenNodes } from './support/requestor.js';
import type { RunningLauncher } from './support/world.js';

const LOST = 'A node loses or has lost its instance; its holder is notified';

/** The cloud takes these instances away: the time at which each ends (ms since the epoch), if it is known, by id. */
let reclaimed: Map<string, number | undefined>;
/** Instances that listings lack or show as stopped. */
let hidden: Set<string>;
let stopped: Set<string>;
/** Duration of listings (ms). */
let listMs: number;
/** Number of listings with hidden instances. */
let lackings: number;
/** Announces a change of the instances to the launcher. */
let announce: () => Promise<void>;

/** Lets listings show what the variables say, and the driver announce changes. */
function shown(): Partial<NodepoolConfig> {
  reclaimed = new Map();
  hidden = new Set();
  stopped = new Set();
  listMs = 0;
  lackings = 0;
  const show = (instance: Instance): Instance => {
    const id = instance.externalId as string;
    if (stopped.has(id)) return { ...instance, ready: false };
    if (!reclaimed.has(id)) return instance;
    return { ...instance, ready: false, failed: 'spot', reclaimed: { endsAt: reclaimed.get(id) } };
  };
  return faultyDriver(world.cloud, (original: Provider) => ({
    start: async (context: ProviderContext) => {
      announce = () => context.checkInstances?.() ?? Promise.reject(new Error('not offered'));
      await original.start(context);
    },
    listNodes: async (call) => {
      const listed = await original.listNodes(call);
      await sleep(world.clock, listMs, call.signal);
      if (hidden.size > 0) lackings += 1;
      return listed.filter(({ externalId }) => !hidden.has(externalId as string)).map(show);
    },
  }));
}

function instanceOf(node: string): string {
  return world.nodes().get(node)?.external_id as string;
}

async function taken(labels: readonly string[] = ['small']): Promise<TakenNodes & { readonly told: Interruption[] }> {
  const nodes = await world.during(world.requestor.take(await world.served([...labels])));
  await world.during(nodes.lease.use());
  const told: Interruption[] = [];
  nodes.lease.onInterruption((each) => told.push(each));
  return { ...nodes, told };
}

function said(message: string): unknown[] {
  return [...notes, ...warnings].filter((each) => each.message === message).map(({ fields }) => fields);
}

describe('a node in use', () => {
  it('whose instance the cloud takes away is recorded at the announcement, and its holder learns the end', async () => {
    await world.launcher([demo()], 'launcher1', shown());
    const { ids, lease, told } = await taken();
    const [node = ''] = ids;
    const endsAt = world.clock.now() + 2 * MINUTE_MS;
    reclaimed.set(instanceOf(node), endsAt);
    const began = world.clock.monotonic();
    await world.during(announce());
    expect(world.clock.monotonic() - began).toBeLessThan(15_000);
    expect(world.nodes().get(node)).toMatchObject({
      state: 'in-use',
      interruption: { kind: 'reclaimed', ends_at: endsAt / 1000 },
    });
    await world.until('its holder is told', () => told.length === 1);
    expect(told).toMatchObject([{ nodeId: node, kind: 'reclaimed', endsAt }]);
    expect(told[0]?.reason).toContain(instanceOf(node));
    expect(lease.lost.aborted).toBe(false);
    expect(said(LOST)).toMatchObject([{ node_id: node, state: 'in-use' }]);

    // The holder still owns the node, and returns it as usual.
    await world.during(lease.confirm());
    await world.during(lease.return());
    await world.until('it is deleted', () => !world.nodes().has(node));
  });

  it('whose instance is missing is recorded once a second listing confirms it', async () => {
    await world.launcher([demo()], 'launcher1', shown());
    const { ids, lease, told } = await taken();
    const [node = ''] = ids;
    await world.clock.advance(2 * MINUTE_MS);
    world.cloud.destroyInstance(instanceOf(node));
    await world.until('it is recorded', () => world.nodes().get(node)?.interruption !== undefined);
    await world.until('its holder is told', () => told.length > 0);
    expect(told).toMatchObject([{ nodeId: node, kind: 'missing', endsAt: undefined }]);
    expect(world.nodes().get(node)).toMatchObject({ state: 'in-use' });
    await world.during(lease.return());
  });

  it('is not recorded if only one listing lacks its instance', async () => {
    await world.launcher([demo()], 'launcher1', shown());
    const { ids, lease, told } = await taken();
    await world.clock.advance(2 * MINUTE_MS);
    const lists = world.cloud.existingInstances().map(({ id }) => id);
    hidden = new Set(lists);
    lackings = 0;
    await world.until('a listing lacks it', () => lackings > 0);
    hidden.clear();
    await world.clock.advance(5 * MINUTE_MS);
    expect(world.nodes().get(ids[0] ?? '')).not.toHaveProperty('interruption');
    expect(told).toEqual([]);
    await world.during(lease.return());
  });

  it('is not recorded while the cloud lists too few instances', async () => {
    await world.launcher([demo()], 'launcher1', shown());
    const { ids, lease, told } = await taken(['small', 'small', 'small', 'small', 'small']);
    await world.clock.advance(2 * MINUTE_MS);
    hidden = new Set(ids.map(instanceOf));
    await world.clock.advance(10 * MINUTE_MS);
    expect(told).toEqual([]);
    await world.during(lease.return());
  });

  it('whose instance was stopped for minutes is recorded, and the record says when it runs again', async () => {
    await world.launcher([demo()], 'launcher1', shown());
    const { ids, lease, told } = await taken();
    const [node = ''] = ids;
    await world.clock.advance(2 * MINUTE_MS);
    stopped.add(instanceOf(node));
    await world.clock.advance(4 * MINUTE_MS);
    expect(told).toEqual([]);
    await world.clock.advance(4 * MINUTE_MS);
    expect(told).toMatchObject([{ kind: 'stopped' }]);
    stopped.clear();
    await world.clock.advance(2 * MINUTE_MS);
    expect(world.nodes().get(node)).not.toHaveProperty('interruption');
    await world.during(lease.return());
  });

  it('stays recorded as taken away by a launcher that has not received the announcement', async () => {
    await world.launcher([demo()], 'launcher1', shown());
    const { ids, lease } = await taken();
    const [node = ''] = ids;
    reclaimed.set(instanceOf(node), world.clock.now() + 2 * MINUTE_MS);
    await world.during(announce());
    reclaimed.clear();
    await world.clock.advance(5 * MINUTE_MS);
    expect(world.nodes().get(node)).toMatchObject({ interruption: { kind: 'reclaimed' } });
    await world.clock.advance(5 * MINUTE_MS);
    expect(world.nodes().get(node)).not.toHaveProperty('interruption');
    await world.during(lease.return());
  });

  it('is recorded once although two launchers serve it, and again if its requestor drops the field', async () => {
    await world.launcher([demo()], 'launcher1', shown());
    await world.launcher([demo()], 'launcher2', shown());
    const { ids, lease } = await taken();
    const [node = ''] = ids;
    reclaimed.set(instanceOf(node), undefined);
    await world.clock.advance(3 * MINUTE_MS);
    expect(said(LOST)).toHaveLength(1);
    // Zuul writes the whole record as it has read it when it locked the node.
    await world.during(world.requestor.change(`${NODES}/${node}`, { interruption: null }));
    await world.clock.advance(2 * MINUTE_MS);
    expect(world.nodes().get(node)).toMatchObject({ interruption: { kind: 'reclaimed' } });
    await world.during(lease.return());
  });

  it('on hold is recorded, too, and stays', async () => {
    await world.launcher([demo()], 'launcher1', shown());
    const node = await heldNode();
    reclaimed.set(instanceOf(node), undefined);
    await world.clock.advance(2 * MINUTE_MS);
    expect(world.nodes().get(node)).toMatchObject({ state: 'hold', interruption: { kind: 'reclaimed' } });
  });
});

describe('an announcement', () => {
  it('lets a ready node be replaced at once, and not be handed out', async () => {
    const labels = new Map([['small', { name: 'small', minReady: 1, maxReadyAgeMs: Infinity, maxWaitMs: Infinity }]]);
    await world.launcher([demo()], 'launcher1', { labels, ...shown() });
    const ready = (): string[] => [...world.nodes()].filter(([, { state }]) => state === 'ready').map(([id]) => id);
    await world.until('a node is ready', () => ready().length === 1);
    await world.clock.advance(2 * MINUTE_MS);
    const [lost = ''] = ready();
    reclaimed.set(instanceOf(lost), world.clock.now() + 2 * MINUTE_MS);
    listMs = 3000;
    const announced = announce();
    const id = await world.submit(['small']);
    expect(await world.fulfilled(id)).not.toContain(lost);
    await world.during(announced);
    await world.clock.advance(5000);
    expect(ready()).not.toContain(lost);
  });

  it('is complete once the records are written', async () => {
    const running = await world.launcher([demo()], 'launcher1', shown());
    const { ids, lease } = await taken();
    const [node = ''] = ids;
    reclaimed.set(instanceOf(node), undefined);
    world.server.setLag(running.zk, 2000);
    let isComplete = false;
    const announced = announce().then(() => (isComplete = true));
    await world.until('it is written', () => world.nodes().get(node)?.interruption !== undefined);
    expect(isComplete).toBe(false);
    world.server.setLag(running.zk, 0);
    await world.during(announced);
    await world.during(lease.return());
  });

  it('is refused while the instances cannot be listed, so that the driver keeps it', async () => {
    let fails = false;
    let check: ProviderContext['checkInstances'];
    await world.launcher(
      [demo()],
      'launcher1',
      faultyDriver(world.cloud, (original: Provider) => ({
        start: async (context: ProviderContext) => {
          check = context.checkInstances;
          await original.start(context);
        },
        listNodes: (call) => (fails ? Promise.reject(new TransientError('no list')) : original.listNodes(call)),
      })),
    );
    const { lease } = await taken();
    fails = true;
    await expect(world.during(check?.() ?? Promise.resolve())).rejects.toThrow('no list');
    fails = false;
    await world.during(check?.() ?? Promise.reject(new Error('not offered')));
    await world.during(lease.return());
  });
});

describe('an offer whose instances the cloud takes away', () => {
  const interrupted = ({ launcher }: RunningLauncher): unknown[] =>
    launcher.activity()[0]?.offers.filter(({ obstacle }) => obstacle?.cause === 'interrupted') ?? [];
  const takeAway = async (nodes: readonly string[]): Promise<void> => {
    for (const node of nodes) reclaimed.set(instanceOf(node), undefined);
    await world.during(announce());
  };

  it('is avoided for a while, and used again without an operator', async () => {
    world.cloud.configure({ zones: ['north', 'south'] });
    const running = await world.launcher([demo()], 'launcher1', shown());
    const { ids, lease } = await taken(['small', 'small', 'small', 'small']);
    const zone = world.nodes().get(ids[0] ?? '')?.az as string;
    await takeAway(ids.slice(0, 2));
    expect(interrupted(running)).toEqual([]);
    await takeAway(ids);
    expect(interrupted(running)).toMatchObject([{ label: 'small', zone, state: 'open' }]);
    for (let round = 0; round < 5; round += 1) {
      const [other = ''] = await world.fulfilled(await world.submit(['small']));
      expect(world.nodes().get(other)?.az).not.toBe(zone);
    }
    await world.during(lease.return());
    await world.clock.advance(30 * MINUTE_MS);
    expect(interrupted(running)).toEqual([]);
  });

  it('is used nevertheless if there is no other', async () => {
    const running = await world.launcher([demo()], 'launcher1', shown());
    const { ids, lease } = await taken(['small', 'small', 'small']);
    await takeAway(ids);
    expect(interrupted(running)).toMatchObject([{ state: 'open' }]);
    const began = world.clock.now();
    await world.fulfilled(await world.submit(['small']));
    expect(world.clock.now() - began).toBeLessThan(MINUTE_MS);
    await world.during(lease.return());
  });

  it('is not avoided because of a small share of its nodes', async () => {
    const running = await world.launcher([demo()], 'launcher1', shown());
    const { ids, lease } = await taken(Array.from({ length: 40 }, () => 'small'));
    await takeAway(ids.slice(0, 3));
    expect(interrupted(running)).toEqual([]);
    await takeAway(ids.slice(0, 4));
    expect(interrupted(running)).toHaveLength(1);
    await world.during(lease.return());
  });

  it('is not avoided because of instances that an operator has stopped', async () => {
    const running = await world.launcher([demo()], 'launcher1', shown());
    const { ids, told, lease } = await taken(['small', 'small', 'small', 'small']);
    await world.clock.advance(2 * MINUTE_MS);
    stopped = new Set(ids.map(instanceOf));
    await world.clock.advance(8 * MINUTE_MS);
    expect(told).toHaveLength(4);
    expect(interrupted(running)).toEqual([]);
    await world.during(lease.return());
  });
});

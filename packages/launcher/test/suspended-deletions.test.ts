/** The launcher deletes nothing by tag or as leaked while the records may not be those of the resources. */

import { describe, expect, it } from '@jest/globals';
import {
  NODES,
  MINUTE_MS,
  world,
  other,
  warnings,
  demo,
  freeNode,
  formerNode,
  createInstance,
  tagsOfNode,
  exists,
} from './support/cleanup-world.js';

const ID = '/nodepool/installation';

const ours = (nodeId: string, attempt = 'a'): Record<string, string> => ({
  ...tagsOfNode(nodeId, attempt),
  nodepool_installation: world.installation(),
});

/** Requests nodes and takes them into use. Resolves with their instances. */
async function inUse(count: number): Promise<string[]> {
  const id = await world.served(Array.from({ length: count }, () => 'small'));
  await world.during(world.requestor.take(id));
  return world.cloud.existingInstances().map((instance) => instance.id);
}

function suspensionsLogged(): number {
  return warnings.filter(({ message }) => message.includes('suspended until an operator')).length;
}

describe('instances in use survive', () => {
  it('an empty ensemble under running launchers, and new nodes with the same ids', async () => {
    const empty = world.server.snapshot();
    await world.launcher([demo()]);
    const { store } = await world.launcher([demo()], 'launcher2');
    const instances = await inUse(8);
    world.server.restore(empty);
    const id = await world.submit(Array.from({ length: 5 }, () => 'small'));
    await world.fulfilled(id);
    await world.clock.advance(20 * MINUTE_MS);
    expect(instances.map(exists)).toEqual(instances.map(() => true));
    expect(store.suspensions.all()).toMatchObject([
      { provider: null, reason: expect.stringContaining('changed from') },
    ]);
  });

  it.each([1, 3, 8])(
    'an empty ensemble with the id of the lost one, if there are %i of them, at once and later',
    async (count) => {
      const empty = world.server.snapshot();
      const first = await world.launcher([demo()]);
      const installation = world.installation();
      const instances = await inUse(count);
      await first.stop();
      world.server.restore(empty);
      await world.during(other.create('/nodepool').then(() => other.create(ID, Buffer.from(installation))));
      const { store } = await world.launcher([demo()]);
      // A burst passes the ids of the lost nodes before the first search for leaked resources.
      await world.fulfilled(await world.submit(Array.from({ length: 10 }, () => 'small')));
      await world.clock.advance(20 * MINUTE_MS);
      expect(instances.map(exists)).toEqual(instances.map(() => true));
      expect(store.suspensions.all()).toMatchObject([
        { provider: null, reason: expect.stringContaining('ZooKeeper has not created') },
      ]);
      expect(suspensionsLogged()).toBe(1);
    },
  );
});

it.each([
  ['further nodes were created since', true],
  ['no node was created since', false],
])('an older state stops deletions by tag until an operator confirms, if %s', async (_what, hasMoreNodes) => {
  world.cloud.configure({ bootTimeMs: [30_000, 30_000] });
  await world.launcher([demo()]);
  const id = await world.submit(['small']);
  await world.until('the instance boots', () => world.cloud.existingInstances().length === 1);
  const building = world.server.snapshot();
  await world.fulfilled(id);
  const { ids } = await world.during(world.requestor.take(id));
  if (hasMoreNodes) await freeNode();
  const [own] = world.cloud.existingInstances();
  // The record of the node in use is that of its launch, without the id of its instance.
  world.server.restore(building);
  const [node = ''] = ids;
  await world.during(
    world.requestor.change(`${NODES}/${node}`, { state: 'used', external_id: null, allocated_to: null }),
  );
  await world.clock.advance(20 * MINUTE_MS);
  expect(exists(own!.id)).toBe(true);
  expect(world.nodes().has(node)).toBe(true);
  const { store } = await world.launcher([demo()], 'launcher2');
  await world.during(store.suspensions.resume(null));
  await world.until('the node is deleted', () => !world.nodes().has(node));
});

it('nodes that were created after the suspension are launched, deleted and replaced', async () => {
  const { store } = await world.launcher([demo()]);
  await world.during(store.suspensions.suspend(null, 'a test'));
  const node = await freeNode();
  const [own] = world.cloud.existingInstances();
  const progress = { kind: 'deletion', attempt: own!.tags['nodepool_launch_attempt'] ?? '', number: 1, started: 1 };
  await world.during(world.requestor.change(`${NODES}/${node}`, { state: 'used', external_id: null, progress }));
  await world.until('its record is gone', () => !world.nodes().has(node));
  expect(world.cloud.existingInstances()).toEqual([]);
});

it.each([
  ['the same id of the installation', undefined],
  ['an id of the installation that cannot be read', ''],
])('a copy of the ensemble that went on for itself, with %s, stops deletions', async (_what, id) => {
  const first = await world.launcher([demo()]);
  await world.fulfilled(await world.submit(['small']));
  await first.stop();
  const before = world.server.snapshot();
  for (let count = 0; count < 30; count += 1) {
    const created = other.create(`${NODES}/`, Buffer.from('{}'), { mode: 'persistent-sequential' });
    await world.during(created.then(({ path }) => other.delete(path)));
  }
  if (id !== undefined) await world.during(other.set(ID, Buffer.from(id)));
  const copy = world.server.snapshot();
  world.server.restore(before);
  const { store } = await world.launcher([demo()]);
  const instances = await inUse(3);
  world.server.restore(copy);
  await world.clock.advance(30 * MINUTE_MS);
  await world.fulfilled(await world.submit(Array.from({ length: 5 }, () => 'small')));
  await world.clock.advance(30 * MINUTE_MS);
  expect(instances.map(exists)).toEqual(instances.map(() => true));
  expect(store.suspensions.all()).toHaveLength(1);
});

describe('resources without a record suspend the deletions of their provider, once in the log,', () => {
  it.each([
    ['a tenth of many', 16, 2, false],
    ['more than a tenth of many', 20, 4, true],
    ['most of few', 1, 2, true],
    ['a single one', 0, 1, false],
  ])('if they are %s (%i with, %i without)', async (_what, known, unknown, suspended) => {
    const { store } = await world.launcher([demo()]);
    const former = await formerNode();
    if (known > 0) await world.fulfilled(await world.submit(Array.from({ length: known }, () => 'small')));
    const stray: string[] = [];
    for (let index = 0; index < unknown; index += 1) stray.push(await createInstance(ours(former, `stray${index}`)));
    await world.clock.advance(10 * MINUTE_MS);
    expect(stray.map(exists)).toEqual(stray.map(() => suspended));
    expect(store.suspensions.all().map(({ provider }) => provider)).toEqual(suspended ? ['demo'] : []);
    expect(suspensionsLogged()).toBe(suspended ? 1 : 0);
  });
});

it('after the confirmation, a resource is judged by its present tags, a minute later', async () => {
  const { store } = await world.launcher([demo()]);
  const node = await formerNode();
  const next = String(Number(node) + 1).padStart(10, '0');
  const instance = await createInstance(ours(next));
  const suspended = (): boolean => store.suspensions.all().some(({ provider }) => provider === null);
  await world.until('deletions are suspended', suspended);
  /** Confirms the records. Resolves with the time (ms) until `condition` holds. */
  const resumedUntil = async (what: string, condition: () => boolean): Promise<number> => {
    await world.during(store.suspensions.resume(null));
    const began = world.clock.monotonic();
    await world.until(what, condition);
    return world.clock.monotonic() - began;
  };
  // ZooKeeper has not created its node.
  expect(await resumedUntil('deletions are suspended again', suspended)).toBeGreaterThan(1.5 * MINUTE_MS);
  while ((await freeNode()) < next);
  // It has now, with another attempt.
  expect(await resumedUntil('it is deleted', () => !exists(instance))).toBeGreaterThan(MINUTE_MS);
  expect(suspended()).toBe(false);
});

it('after the confirmation, a launcher that did not search during the suspension sees each resource anew', async () => {
  const first = await world.launcher([demo()]);
  const second = await world.launcher([demo()], 'launcher2');
  const { store } = first;
  const node = await formerNode();
  const instance = await createInstance(ours(String(Number(node) + 1).padStart(10, '0')));
  await world.until('deletions are suspended', () => store.suspensions.all().length > 0);
  await world.during(store.suspensions.resume(null));
  await world.until('the confirmation arrives', () => second.store.suspensions.all().length === 0);
  await world.clock.advance(MINUTE_MS);
  expect(store.suspensions.all()).toEqual([]);
  // ZooKeeper has still not created its node.
  await world.clock.advance(10 * MINUTE_MS);
  expect(exists(instance)).toBe(true);
});

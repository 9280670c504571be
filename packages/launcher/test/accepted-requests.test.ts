/** Tests that a request is completed as it was accepted, whatever changes in the configuration meanwhile. */

import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { JsonObject } from '@nodepool/core';
import type { CloudSettings } from '@nodepool/driver-example';
import { World, pool, provider, type RunningLauncher } from './support/world.js';

let world: World;
let running: RunningLauncher;

const label = (more: JsonObject = {}): JsonObject => ({
  ...{ name: 'small', 'cloud-image': 'debian', size: 'small', ...more },
});
const demo = (labels: readonly JsonObject[], more: JsonObject = {}, poolMore: JsonObject = {}): JsonObject =>
  provider('demo', [{ ...pool('main', []), labels, ...poolMore }], more);
const IMAGES = [
  { name: 'debian', username: 'root' },
  { name: 'fedora', username: 'ci' },
];

/** Returns the faults of a cloud whose instances fail with this probability. */
const failing = (probability: number): CloudSettings['faults'] => ({
  ...{ 'create-errors': 0, 'lost-answers': 0, 'failed-instances': probability, 'stuck-instances': 0 },
  ...{ 'delete-errors': 0, 'list-errors': 0, 'upload-errors': 0, 'capacity-errors': 0, 'auth-errors': 0 },
});

/** Changes during a launch. */
const CHANGES: readonly [string, readonly JsonObject[]][] = [
  ['the label is removed', [demo([{ ...label(), name: 'other' }])]],
  ['the last label of the pool is removed', [demo([])]],
  ['the pool is removed', [provider('demo', [pool('next', ['other'])])]],
  ['the provider is removed', []],
  ['the provider is renamed', [{ ...demo([label()]), name: 'renamed' }]],
  ['the image is renamed', [demo([label({ 'cloud-image': 'fedora' })], { 'cloud-images': [IMAGES[1]!] })]],
  ['the size of the label is changed', [demo([label({ size: 'large' })])]],
  ['max-servers is lowered', [demo([label()], {}, { 'max-servers': 1 })]],
  ['max-servers is 0', [demo([label()], {}, { 'max-servers': 0 })]],
  ['max-cores is lowered', [demo([label()], {}, { 'max-cores': 1 })]],
  ['max-concurrency is 0', [demo([label()], { 'max-concurrency': 0 })]],
  ['launch-timeout is lowered', [demo([label()], { 'launch-timeout': 1 })]],
  ['launch-retries are lowered', [demo([label()], { 'launch-retries': 1 })]],
  ['the rate is changed', [demo([label()], { rate: 5 })]],
];

beforeEach(async () => {
  world = new World();
  world.cloud.configure({ bootTimeMs: [20_000, 20_000] });
  running = await world.launcher([demo([label()])]);
});
afterEach(async () => {
  expect(await world.end()).toEqual([]);
});

async function reload(sections: readonly JsonObject[]): Promise<void> {
  await world.during(running.launcher.apply(world.config(sections)));
}

async function booting(count: number): Promise<void> {
  await world.until('instances boot', () => world.cloud.existingInstances().length === count);
}

describe.each(CHANGES)('a request is completed as it was accepted if %s', (_, sections) => {
  it('while its instances boot', async () => {
    const id = await world.submit(['small', 'small']);
    await booting(2);
    const instances = world.cloud.existingInstances().map((each) => each.id);
    await reload(sections);
    const nodes = await world.fulfilled(id);
    for (const node of nodes) {
      expect(world.nodes().get(node)).toMatchObject({ provider: 'demo', pool: 'main', image_id: 'debian' });
    }
    expect(world.cloud.existingInstances().map((each) => each.id)).toEqual(instances);
  });

  it('between two attempts', async () => {
    world.cloud.configure({ faults: failing(1) });
    const id = await world.submit(['small']);
    await booting(1);
    await world.until('the attempt has failed', () =>
      [...world.nodes().values()].some(({ progress }) => (progress as { number?: number } | null)?.number === 2),
    );
    world.cloud.configure({ faults: failing(0) });
    await reload(sections);
    const [node] = await world.fulfilled(id);
    expect(world.nodes().get(node!)).toMatchObject({ provider: 'demo', pool: 'main', image_id: 'debian' });
    expect(world.cloud.existingInstances().find(({ state }) => state === 'running')).toMatchObject({ image: 'debian' });
  });
});

it('a request is completed as it was accepted if the driver of its provider cannot be loaded any more', async () => {
  const id = await world.submit(['small']);
  await booting(1);
  await world.during(running.launcher.apply(world.config([demo([label()])], { loadedDrivers: new Map() })));
  await world.fulfilled(id);
  expect(world.cloud.existingInstances()).toHaveLength(1);
});

it('a request that waits is decided by the new configuration', async () => {
  await reload([demo([label()], {}, { 'max-servers': 1 })]);
  const accepted = await world.submit(['small']);
  await booting(1);
  const waiting = await world.submit(['small']);
  await reload([demo([{ ...label(), name: 'other' }])]);
  await world.inState(waiting, 'failed');
  await world.fulfilled(accepted);
});

it('new requests do not wait for those that were accepted before', async () => {
  const accepted = await world.submit(['small']);
  await booting(1);
  world.cloud.configure({ bootTimeMs: [1000, 1000] });
  await reload([demo([label({ 'cloud-image': 'fedora' })], { 'cloud-images': IMAGES })]);
  const [node] = await world.fulfilled(await world.submit(['small'], { reuse: false }));
  expect(world.nodes().get(node!)).toMatchObject({ image_id: 'fedora' });
  expect(world.stateOf(accepted)).toBe('pending');
  await world.fulfilled(accepted);
});

it('several changes during one launch interrupt it as little as one', async () => {
  const id = await world.submit(['small']);
  await booting(1);
  for (const [, sections] of CHANGES) await reload(sections);
  await world.fulfilled(id);
  expect(world.cloud.existingInstances()).toHaveLength(1);
});

it('nodes and gauges of a provider are left to its new configuration', async () => {
  const id = await world.submit(['small']);
  await booting(1);
  await reload([demo([label()], {}, { 'max-servers': 3 })]);
  expect(running.launcher.activity()).toMatchObject([
    { provider: 'demo', pools: [{ pool: 'main', limit: { instances: 3 }, requests: [{ request: id }] }] },
  ]);
  await world.fulfilled(id);
  await world.giveBack(id);
  await world.until('the node is deleted', () => world.nodes().size === 0);
  expect(running.launcher.activity()).toMatchObject([{ provider: 'demo', pools: [{ pool: 'main', requests: [] }] }]);
});

it('a launcher that stops releases the requests of earlier configurations, and another one resumes them', async () => {
  const id = await world.submit(['small']);
  await booting(1);
  await reload([demo([label()], { 'max-concurrency': 7 })]);
  await running.stop();
  expect(world.lockHolders()).toEqual([]);
  expect(world.stateOf(id)).toBe('pending');
  await world.launcher([demo([label()])]);
  await world.fulfilled(id);
  expect(world.cloud.existingInstances()).toHaveLength(1);
});

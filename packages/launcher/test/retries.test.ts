/** Tests of launch retries at a limit: the instance of a failed attempt counts until it is deleted. */

import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { KeyScanError, type JsonObject } from '@nodepool/core';
import { readCloudSettings } from '@nodepool/driver-example';
import { faultyDriver } from './support/faulty-driver.js';
import { World, pool, provider } from './support/world.js';

const DELETION_MS = 20_000;
const { faults: NO_FAULTS } = readCloudSettings({});

let world: World;
/** Number of the next login scans that fail. */
let failures: number;
/** Largest number of instances that existed at the same time. */
let greatest: number;

beforeEach(() => {
  world = new World();
  world.cloud.configure({ deleteTimeMs: [DELETION_MS, DELETION_MS], bootTimeMs: [1000, 1000] });
  greatest = 0;
  const { cloud } = world;
  const create = cloud.createInstance.bind(cloud);
  cloud.createInstance = async (spec) => {
    const instance = await create(spec);
    greatest = Math.max(greatest, cloud.existingInstances().length);
    return instance;
  };
  world.scanner = {
    scan: () => {
      failures -= 1;
      return failures >= 0 ? Promise.reject(new KeyScanError('no answer')) : Promise.resolve(['ssh-rsa A']);
    },
  };
});
afterEach(async () => {
  expect(await world.end()).toEqual([]);
});

const demo = (maxServers: number): JsonObject =>
  provider('demo', [pool('main', ['small'], { 'max-servers': maxServers, 'host-key-checking': true })], {
    'launch-retries': 5,
  });

async function submit(count: number): Promise<string> {
  return world.submit(Array.from({ length: count }, () => 'small'));
}

it('at max-servers, every retry waits until the instance of the failed attempt is deleted', async () => {
  failures = 4;
  await world.launcher([demo(3)]);
  const id = await submit(3);
  await world.fulfilled(id);
  expect(failures).toBeLessThan(0);
  expect(greatest).toBe(3);
});

it('at max-servers, a retry waits although the record does not have the id of the instance yet', async () => {
  failures = 1;
  const silent = faultyDriver(world.cloud, (original) => ({
    getRequestHandler: (name, request) => {
      const handler = original.getRequestHandler(name, request);
      return {
        launch: (launch) => handler.launch({ ...launch, save: () => Promise.resolve() }),
        launchesComplete: () => handler.launchesComplete(),
      };
    },
  }));
  await world.launcher([demo(1)], 'launcher1', silent);
  await world.fulfilled(await submit(1));
  expect(failures).toBeLessThan(0);
  expect(greatest).toBe(1);
});

it('below max-servers, a retry does not wait', async () => {
  failures = 1;
  await world.launcher([demo(2)]);
  const id = await submit(1);
  const before = world.clock.monotonic();
  await world.fulfilled(id);
  expect(world.clock.monotonic() - before).toBeLessThan(DELETION_MS);
  expect(greatest).toBe(2);
});

it('a hanging deletion continues to count, also when another launcher resumes the launch', async () => {
  failures = 1;
  world.cloud.configure({ faults: { ...NO_FAULTS, 'delete-errors': 1 } });
  const first = await world.launcher([demo(1)]);
  const id = await submit(1);
  await world.clock.advance(60_000);
  await world.launcher([demo(1)], 'launcher2');
  await first.stop();
  await world.clock.advance(300_000);
  expect(world.stateOf(id)).toBe('pending');
  expect(greatest).toBe(1);
  world.cloud.configure({ faults: NO_FAULTS });
  await world.fulfilled(id);
  expect(greatest).toBe(1);
});

it('in a cloud that uses ids again, the record of a failed attempt finds its instance by the attempt', async () => {
  world.cloud.configure({ reusesIds: true });
  failures = 1;
  await world.launcher([demo(2)]);
  const id = await submit(1);
  await world.until('the first attempt has its instance', () => world.cloud.existingInstances().length === 1);
  const [first] = world.cloud.existingInstances();
  await world.fulfilled(id);
  const isFirst = ({ tags }: { readonly tags: Readonly<Record<string, string>> }): boolean =>
    tags['nodepool_launch_attempt'] === first?.tags['nodepool_launch_attempt'];
  await world.clock.advance(2 * DELETION_MS);
  expect(world.cloud.existingInstances().filter(isFirst)).toEqual([]);
  expect(world.cloud.existingInstances()).toHaveLength(1);
});

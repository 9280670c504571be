/**
 * Features of the simple framework for drivers of larger clouds: concurrent calls, and resources other than instances.
 */

import { VirtualClock } from '@nodepool/core/testing';
import { describe, expect, it } from '@jest/globals';
import {
  simpleTaskManagerDriver,
  sleep,
  type LabelConfig,
  type ProviderConfig,
  type Resource,
  type SimpleTaskManagerAdapter,
  type TaskManager,
} from '../../src/index.js';
import { ProviderHarness, watch } from './provider-harness.js';
import { tinyConfig } from './tiny-drivers.js';

const CALL_MS = 1000;
const CALLS = 5;

function adapterWith(overrides: Partial<SimpleTaskManagerAdapter>): SimpleTaskManagerAdapter {
  return {
    createInstance: async () => 'i-1',
    deleteInstance: async () => undefined,
    listInstances: async () => [],
    ...overrides,
  };
}

async function harnessFor(clock: VirtualClock, adapter: SimpleTaskManagerAdapter): Promise<ProviderHarness> {
  const driver = simpleTaskManagerDriver<LabelConfig, ProviderConfig>({
    name: 'simple',
    schema: {},
    getProviderConfig: () => tinyConfig(),
    getAdapter: () => adapter,
  });
  return new ProviderHarness(clock, driver).start();
}

describe('calls of a driver on the simple framework', () => {
  it.each([
    ['sequential', undefined, CALLS],
    ['concurrent if the limit allows it', CALLS, 1],
  ])('are %s', async (_how, concurrency, rounds) => {
    const clock = new VirtualClock();
    const managers: TaskManager[] = [];
    const harness = await harnessFor(
      clock,
      adapterWith({
        ...(concurrency === undefined ? {} : { concurrency }),
        start: async (_context, tasks) => {
          managers.push(tasks);
        },
      }),
    );
    const task = { service: 'tiny', method: 'GET', operation: 'wait', main: () => sleep(clock, CALL_MS) };
    const calls = managers.flatMap((tasks) => Array.from({ length: CALLS }, () => tasks.submit(task, harness.call())));
    expect(calls).toHaveLength(CALLS);
    await harness.finish(watch(Promise.all(calls)));
    expect(clock.monotonic()).toBe(rounds * CALL_MS);
  });
});

describe('a cleanup round of a driver on the simple framework', () => {
  it('lists the driver’s other resources, and has the driver delete them', async () => {
    const tags = { nodepool_provider_name: 'tiny' };
    const image: Resource = { kind: 'image', externalId: 'image-1', name: 'image-1', tags };
    const deleted: unknown[] = [];
    const harness = await harnessFor(
      new VirtualClock(),
      adapterWith({
        listInstances: async () => [{ externalId: 'i-1', ready: true, deleted: false, tags }],
        deleteInstance: async (_tasks, externalId) => void deleted.push(['instance', externalId]),
        listResources: async () => [image],
        deleteResource: async (_tasks, { kind, externalId }) => void deleted.push([kind, externalId]),
      }),
    );
    const round = { leaked: async (resources: readonly Resource[]) => resources };
    await harness.finish(watch(harness.provider.cleanupLeakedResources(round, harness.call())));
    expect(deleted).toEqual(
      expect.arrayContaining([
        ['instance', 'i-1'],
        ['image', 'image-1'],
      ]),
    );
    expect(deleted).toHaveLength(2);
  });
});

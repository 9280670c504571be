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

async function benchFor(clock: VirtualClock, adapter: SimpleTaskManagerAdapter): Promise<ProviderHarness> {
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
    ['one after another', undefined, CALLS],
    ['all at once with enough concurrency', CALLS, 1],
  ])('are made %s', async (_how, concurrency, rounds) => {
    const clock = new VirtualClock();
    const managers: TaskManager[] = [];
    const harness = await benchFor(
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

describe('a clean-up round of a driver on the simple framework', () => {
  it('offers what the driver lists besides instances, and has the driver delete that', async () => {
    const tags = { nodepool_provider_name: 'tiny' };
    const image: Resource = { kind: 'image', externalId: 'image-1', name: 'image-1', tags };
    const deleted: unknown[] = [];
    const harness = await benchFor(
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

/** Behaviour of providers on all levels of the driver API. */

import { VirtualClock } from '@nodepool/core/testing';
import { describe, expect, it } from '@jest/globals';
import { QuotaError, type Resource } from '../../src/index.js';
import { ProviderHarness, INSTALLATION, watch } from './provider-harness.js';
import { TinyCloud } from './tiny-cloud.js';
import { machineDriver, plainDriver, simpleDriver } from './tiny-drivers.js';

describe.each([
  ['plain interfaces', plainDriver],
  ['state machines', machineDriver],
  ['the simple framework', simpleDriver],
])('a provider on %s', (_name, driver) => {
  async function setUp(): Promise<{ clock: VirtualClock; cloud: TinyCloud; harness: ProviderHarness }> {
    const clock = new VirtualClock();
    const cloud = new TinyCloud(clock);
    return { clock, cloud, harness: await new ProviderHarness(clock, driver(cloud)).start() };
  }

  it('launches an instance with its tags, and saves its external id', async () => {
    const { harness } = await setUp();
    const instance = await harness.finish(harness.launch());
    expect(instance).toMatchObject({ externalId: 'i-1', hostname: 'node-0000000001', ready: true });
    expect(harness.saves[0]?.externalId).toBe('i-1');
    const [listed] = await harness.finish(watch(harness.provider.listNodes(harness.call())));
    expect(listed?.tags).toEqual({
      nodepool_node_id: '0000000001',
      nodepool_provider_name: 'tiny',
      nodepool_pool_name: 'main',
      nodepool_installation: INSTALLATION,
      nodepool_launch_attempt: 'attempt-0000000001',
    });
  });

  it('cleans up a node until the cloud lists none of its instances, and can repeat that', async () => {
    const { harness, cloud } = await setUp();
    const { externalId } = await harness.finish(harness.launch());
    await harness.cleanUp('0000000001', { externalId });
    expect(cloud.existing).toEqual([]);
    await harness.cleanUp('0000000001', { externalId });
  });

  it('finds the instances of a node by tags when the external id is unknown', async () => {
    const { harness, cloud } = await setUp();
    await harness.finish(harness.launch({ nodeId: '0000000007' }));
    await harness.finish(harness.launch({ nodeId: '0000000008' }));
    await harness.cleanUp('0000000007');
    expect(cloud.existing).toEqual(['i-2']);
  });

  it('passes on the typed error of the cloud', async () => {
    const { harness, cloud } = await setUp();
    cloud.failNext('create', { kind: 'refuse', error: new QuotaError('no more than 10 instances') });
    await expect(harness.finish(harness.launch())).rejects.toMatchObject({ code: 'quota', outcome: 'not-applied' });
  });

  it('stops a launch when its signal aborts', async () => {
    const { harness, clock } = await setUp();
    const controller = new AbortController();
    const launch = harness.launch({ signal: controller.signal });
    await clock.advance(1500);
    controller.abort(new Error('the request was withdrawn'));
    await expect(harness.finish(launch)).rejects.toMatchObject({ code: 'aborted' });
  });

  it('deletes only the given leaked resources', async () => {
    const { harness, cloud } = await setUp();
    for (let index = 0; index < 3; index += 1) await harness.finish(harness.launch());
    const asked: Resource[][] = [];
    const round = {
      leaked: async (resources: readonly Resource[]) => {
        asked.push([...resources]);
        return resources.filter((resource) => resource.externalId === 'i-2');
      },
    };
    await harness.finish(watch(harness.provider.cleanupLeakedResources(round, harness.call())));
    expect(asked.map((resources) => resources.map(({ externalId }) => externalId))).toEqual([['i-1', 'i-2', 'i-3']]);
    await harness.clock.advance(10_000);
    expect(cloud.existing).toEqual(['i-1', 'i-3']);
  });

  it('stops its background work, and leaves launched instances unchanged', async () => {
    const { harness, cloud, clock } = await setUp();
    const launches = [harness.launch(), harness.launch(), harness.launch()];
    await clock.advance(2500);
    harness.provider.stop();
    await harness.finish(watch(harness.provider.join()));
    for (const launch of launches) await expect(harness.finish(launch)).rejects.toMatchObject({ code: 'aborted' });
    const calls = { ...cloud.calls };
    await clock.advance(3_600_000);
    expect(cloud.calls).toEqual(calls);
    expect(clock.pending).toBe(0);
    expect(cloud.existing).toHaveLength(3);
    expect(harness.tasks.size).toBe(0);
  });
});

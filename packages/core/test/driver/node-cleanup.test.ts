/** Deletion of the cloud resources of a node. */

import { VirtualClock } from '@nodepool/core/testing';
import { describe, expect, it } from '@jest/globals';
import {
  AuthError,
  ConflictError,
  type DriverError,
  NotFoundError,
  ThrottledError,
  TransientError,
  type JsonValue,
  type Node,
} from '../../src/index.js';
import { ProviderHarness, INSTALLATION, watch } from './provider-harness.js';
import { TinyCloud } from './tiny-cloud.js';
import { driverOf, machineAdapter, machineDriver } from './tiny-drivers.js';

async function launched(options = {}): Promise<{ clock: VirtualClock; cloud: TinyCloud; harness: ProviderHarness }> {
  const clock = new VirtualClock();
  const cloud = new TinyCloud(clock, options);
  const harness = await new ProviderHarness(clock, machineDriver(cloud)).start();
  await harness.finish(harness.launch());
  return { clock, cloud, harness };
}

const NODE = '0000000001';

describe('the cleanup of a node', () => {
  it('ends only when the cloud no longer lists the instance', async () => {
    const { harness, cloud, clock } = await launched({ deletionMs: 30_000 });
    const since = clock.monotonic();
    await harness.cleanUp(NODE, { externalId: 'i-1' });
    expect(clock.monotonic() - since).toBeGreaterThanOrEqual(30_000);
    expect(cloud.existing).toEqual([]);
  });

  it.each<[string, DriverError]>([
    ['a conflict', new ConflictError('the instance is busy')],
    ['throttling', new ThrottledError('slow down', { retryAfterMs: 40_000 })],
    ['a failure of the cloud', new TransientError('503')],
  ])('is retried after %s', async (_what, error) => {
    const { harness, cloud } = await launched();
    cloud.failNext('delete', { kind: 'refuse', error }, { kind: 'refuse', error });
    await harness.cleanUp(NODE, { externalId: 'i-1' });
    expect(cloud.calls.delete).toBe(3);
    expect(cloud.existing).toEqual([]);
  });

  it('is retried at once when a listing succeeds after an outage, and not after other listings', async () => {
    const { harness, cloud, clock } = await launched();
    const error = new TransientError('503');
    const refuse = { kind: 'refuse', error } as const;
    cloud.failNext('delete', ...Array.from({ length: 8 }, () => refuse));
    await harness.provider.cleanupNode(harness.cleanup(NODE, { externalId: 'i-1' }));
    const cleanup = watch(harness.provider.waitForNodeCleanup(NODE));
    const list = async (): Promise<unknown> => {
      return harness.finish(watch(harness.provider.listNodes(harness.call()))).catch(() => undefined);
    };
    await clock.runUntil(() => cloud.calls.delete === 7);
    await list();
    await clock.advance(1000);
    expect(cloud.calls.delete).toBe(7);
    cloud.failNext('list', refuse);
    await list();
    await list();
    await clock.advance(2000);
    expect(cloud.calls.delete).toBe(8);
    await harness.finish(cleanup);
  });

  it('continues with the state of the failed machine', async () => {
    const clock = new VirtualClock();
    const cloud = new TinyCloud(clock);
    const states: JsonValue[] = [];
    const normal = machineAdapter(cloud);
    const adapter = machineAdapter(cloud, {
      getDeleteStateMachine: (externalId, saved, log) => {
        states.push(saved);
        if (saved !== null) return normal.getDeleteStateMachine(externalId, null, log);
        return {
          state: 'deleting',
          externalId,
          advance: () => {
            throw new TransientError('503');
          },
          save: () => ({ operation: 'o-1' }),
        };
      },
    });
    const harness = await new ProviderHarness(clock, driverOf(adapter)).start();
    await harness.finish(harness.launch());
    await harness.cleanUp(NODE, { externalId: 'i-1' });
    expect(states).toEqual([null, { operation: 'o-1' }]);
  });

  it('succeeds when the deletion takes effect and its answer is lost', async () => {
    const { harness, cloud } = await launched({ deletionMs: 0 });
    cloud.failNext('delete', { kind: 'lose-answer' });
    await harness.cleanUp(NODE, { externalId: 'i-1' });
    expect(cloud.existing).toEqual([]);
  });

  it('succeeds when no instance exists', async () => {
    const { harness } = await launched();
    await harness.cleanUp(NODE, { externalId: 'i-99' });
    await harness.cleanUp('0000000099');
  });

  it('fails with its error, and can be started again', async () => {
    const { harness, cloud } = await launched();
    cloud.failNext('delete', { kind: 'refuse', error: new AuthError('the password has expired') });
    await expect(harness.cleanUp(NODE, { externalId: 'i-1' })).rejects.toMatchObject({ code: 'auth' });
    await harness.cleanUp(NODE, { externalId: 'i-1' });
    expect(cloud.existing).toEqual([]);
  });

  it('stops at its deadline, and reports the last failure', async () => {
    const { harness, cloud, clock } = await launched();
    const refuse = { kind: 'refuse', error: new ConflictError('the instance is busy') } as const;
    cloud.failNext('delete', ...Array.from({ length: 50 }, () => refuse));
    const deadline = clock.monotonic() + 60_000;
    await expect(harness.cleanUp(NODE, { externalId: 'i-1', deadline })).rejects.toMatchObject({
      code: 'timeout',
      message: expect.stringContaining('the instance is busy'),
    });
  });

  it('is shared by concurrent callers', async () => {
    const { harness, cloud } = await launched();
    await harness.provider.cleanupNode(harness.cleanup(NODE, { externalId: 'i-1' }));
    await harness.provider.cleanupNode(harness.cleanup(NODE, { externalId: 'i-1' }));
    const waits = [0, 1].map(() => watch(harness.provider.waitForNodeCleanup(NODE)));
    for (const wait of waits) await harness.finish(wait);
    expect(cloud.calls.delete).toBe(1);
  });

  it('returns its result to later callers until the record of the node is deleted', async () => {
    const { harness, clock } = await launched();
    await harness.provider.cleanupNode(harness.cleanup(NODE, { externalId: 'i-1' }));
    await clock.advance(60_000);
    await harness.provider.waitForNodeCleanup(NODE);
    await harness.provider.waitForNodeCleanup(NODE);
    harness.provider.nodeDeletedNotification?.({ id: NODE } as Node);
    await expect(harness.provider.waitForNodeCleanup(NODE)).rejects.toMatchObject({ code: 'unexpected' });
  });

  const own = {
    nodepool_node_id: NODE,
    nodepool_provider_name: 'tiny',
    nodepool_pool_name: 'main',
    nodepool_installation: INSTALLATION,
    nodepool_launch_attempt: `attempt-${NODE}`,
  };
  const { nodepool_installation: _none, ...untagged } = own;

  it('finds all instances of the recorded attempt, also those without an installation', async () => {
    const { harness, cloud, clock } = await launched();
    const { signal } = new AbortController();
    watch(cloud.create('twin', own, signal));
    watch(cloud.create('old', untagged, signal));
    await clock.advance(100);
    await harness.cleanUp(NODE);
    expect(cloud.existing).toEqual([]);
  });

  it.each<[string, Record<string, string>]>([
    ['node', { ...own, nodepool_node_id: '0000000002' }],
    ['provider', { ...own, nodepool_provider_name: 'other' }],
    ['pool', { ...own, nodepool_pool_name: 'other' }],
    ['installation', { ...own, nodepool_installation: 'staging' }],
    ['attempt', { ...own, nodepool_launch_attempt: 'another' }],
    ['attempt, without an installation', { ...untagged, nodepool_launch_attempt: 'another' }],
  ])('leaves an instance of another %s', async (_what, tags) => {
    const { harness, cloud, clock } = await launched();
    watch(cloud.create('alien', tags, new AbortController().signal));
    await clock.advance(100);
    await harness.cleanUp(NODE);
    expect(cloud.existing).toEqual(['i-2']);
  });

  it.each([null, ''])('finds nothing for a node whose recorded attempt is %j', async (launchAttempt) => {
    const { harness, cloud, clock } = await launched();
    watch(cloud.create('alien', { ...own, nodepool_launch_attempt: '' }, new AbortController().signal));
    await clock.advance(100);
    await harness.cleanUp(NODE, { launchAttempt });
    expect(cloud.existing).toEqual(['i-1', 'i-2']);
  });

  it('ignores an outdated listing', async () => {
    const clock = new VirtualClock();
    const cloud = new TinyCloud(clock);
    const harness = await new ProviderHarness(clock, machineDriver(cloud)).start();
    await harness.finish(harness.launch());
    // Created after the last listing.
    watch(cloud.create('later', { ...own, nodepool_node_id: '0000000077' }, new AbortController().signal));
    await clock.advance(100);
    await harness.cleanUp('0000000077', { launchAttempt: own.nodepool_launch_attempt });
    expect(cloud.existing).toEqual(['i-1']);
  });

  it('ends when the provider stops, and leaves no work running', async () => {
    const { harness, clock } = await launched({ deletionMs: 1e9 });
    await harness.provider.cleanupNode(harness.cleanup(NODE, { externalId: 'i-1' }));
    const wait = watch(harness.provider.waitForNodeCleanup(NODE));
    await clock.advance(5000);
    expect(harness.tasks.list().map(({ name }) => name)).toEqual([`cleanup of node ${NODE}`]);
    harness.provider.stop();
    await harness.provider.join();
    await expect(harness.finish(wait)).rejects.toMatchObject({ code: 'aborted' });
    expect(harness.tasks.size).toBe(0);
    expect(clock.pending).toBe(0);
    expect(harness.failures).toEqual([]);
  });
});

describe('a deletion machine with state', () => {
  it('is saved, and resumes in another process', async () => {
    const clock = new VirtualClock();
    const cloud = new TinyCloud(clock, { deletionMs: 30_000 });
    const resumed: JsonValue[] = [];
    const plain = machineAdapter(cloud);
    const driver = driverOf({
      ...plain,
      getDeleteStateMachine: (externalId, saved, log) => {
        resumed.push(saved);
        return plain.getDeleteStateMachine(externalId, saved, log);
      },
    });
    const first = await new ProviderHarness(clock, driver).start();
    await first.finish(first.launch());
    const before = first.saves.length;
    await first.provider.cleanupNode(first.cleanup(NODE, { externalId: 'i-1' }));
    await clock.advance(10_000);
    first.provider.stop();
    expect(first.saves.slice(before).map(({ machine }) => machine)).toEqual([
      { state: 'deleting' },
      { state: 'waiting' },
    ]);

    const second = await new ProviderHarness(clock, driver).start();
    await second.cleanUp(NODE, { externalId: 'i-1', saved: first.saves.at(-1)!.machine });
    expect(resumed).toEqual([null, { state: 'waiting' }]);
    expect(cloud.existing).toEqual([]);
  });
});

describe('the cleanup of leaked resources', () => {
  it('continues after a resource that cannot be deleted, and reports the number of failures', async () => {
    const clock = new VirtualClock();
    const cloud = new TinyCloud(clock);
    const harness = await new ProviderHarness(clock, machineDriver(cloud)).start();
    for (let index = 0; index < 4; index += 1) await harness.finish(harness.launch());
    cloud.failNext(
      'delete',
      { kind: 'refuse', error: new ConflictError('the instance is busy') },
      { kind: 'refuse', error: new NotFoundError('it does not exist') },
    );
    const cleaning = watch(harness.provider.cleanupLeakedResources({ leaked: async (all) => all }, harness.call()));
    await expect(harness.finish(cleaning)).rejects.toMatchObject({
      code: 'conflict',
      message: expect.stringContaining('1 of 4'),
    });
    await clock.advance(10_000);
    expect(cloud.existing).toEqual(['i-1', 'i-2']);
  });
});

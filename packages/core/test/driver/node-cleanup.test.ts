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
import { Bench, INSTALLATION, watch } from './bench.js';
import { TinyCloud } from './tiny-cloud.js';
import { driverOf, machineAdapter, machineDriver } from './tiny-drivers.js';

async function launched(options = {}): Promise<{ clock: VirtualClock; cloud: TinyCloud; bench: Bench }> {
  const clock = new VirtualClock();
  const cloud = new TinyCloud(clock, options);
  const bench = await new Bench(clock, machineDriver(cloud)).start();
  await bench.finish(bench.launch());
  return { clock, cloud, bench };
}

const NODE = '0000000001';

describe('the cleanup of a node', () => {
  it('ends only when the cloud lists the instance no more', async () => {
    const { bench, cloud, clock } = await launched({ deletionMs: 30_000 });
    const since = clock.monotonic();
    await bench.cleanUp(NODE, { externalId: 'i-1' });
    expect(clock.monotonic() - since).toBeGreaterThanOrEqual(30_000);
    expect(cloud.existing).toEqual([]);
  });

  it.each<[string, DriverError]>([
    ['a conflict', new ConflictError('the instance is busy')],
    ['throttling', new ThrottledError('slow down', { retryAfterMs: 40_000 })],
    ['a failure of the cloud', new TransientError('503')],
  ])('is tried again after %s', async (_what, error) => {
    const { bench, cloud } = await launched();
    cloud.failNext('delete', { kind: 'refuse', error }, { kind: 'refuse', error });
    await bench.cleanUp(NODE, { externalId: 'i-1' });
    expect(cloud.calls.delete).toBe(3);
    expect(cloud.existing).toEqual([]);
  });

  it('succeeds when the deletion takes effect and its answer is lost', async () => {
    const { bench, cloud } = await launched({ deletionMs: 0 });
    cloud.failNext('delete', { kind: 'lose-answer' });
    await bench.cleanUp(NODE, { externalId: 'i-1' });
    expect(cloud.existing).toEqual([]);
  });

  it('succeeds when there is no such instance', async () => {
    const { bench } = await launched();
    await bench.cleanUp(NODE, { externalId: 'i-99' });
    await bench.cleanUp('0000000099');
  });

  it('fails with what stopped it, and can be started again', async () => {
    const { bench, cloud } = await launched();
    cloud.failNext('delete', { kind: 'refuse', error: new AuthError('the password has expired') });
    await expect(bench.cleanUp(NODE, { externalId: 'i-1' })).rejects.toMatchObject({ code: 'auth' });
    await bench.cleanUp(NODE, { externalId: 'i-1' });
    expect(cloud.existing).toEqual([]);
  });

  it('is given up at its deadline, and names the last failure', async () => {
    const { bench, cloud, clock } = await launched();
    const refuse = { kind: 'refuse', error: new ConflictError('the instance is busy') } as const;
    cloud.failNext('delete', ...Array.from({ length: 50 }, () => refuse));
    const deadline = clock.monotonic() + 60_000;
    await expect(bench.cleanUp(NODE, { externalId: 'i-1', deadline })).rejects.toMatchObject({
      code: 'timeout',
      message: expect.stringContaining('the instance is busy'),
    });
  });

  it('is shared by concurrent callers', async () => {
    const { bench, cloud } = await launched();
    await bench.provider.cleanupNode(bench.cleanup(NODE, { externalId: 'i-1' }));
    await bench.provider.cleanupNode(bench.cleanup(NODE, { externalId: 'i-1' }));
    const waits = [0, 1].map(() => watch(bench.provider.waitForNodeCleanup(NODE)));
    for (const wait of waits) await bench.finish(wait);
    expect(cloud.calls.delete).toBe(1);
  });

  it('returns its result to later callers until the record of the node is deleted', async () => {
    const { bench, clock } = await launched();
    await bench.provider.cleanupNode(bench.cleanup(NODE, { externalId: 'i-1' }));
    await clock.advance(60_000);
    await bench.provider.waitForNodeCleanup(NODE);
    await bench.provider.waitForNodeCleanup(NODE);
    bench.provider.nodeDeletedNotification?.({ id: NODE } as Node);
    await expect(bench.provider.waitForNodeCleanup(NODE)).rejects.toMatchObject({ code: 'unexpected' });
  });

  it('finds all instances of the node and its duplicates, and none of other providers, installations or attempts', async () => {
    const { bench, cloud, clock } = await launched();
    const signal = new AbortController().signal;
    const untagged = { nodepool_node_id: NODE, nodepool_provider_name: 'tiny' };
    const tags = { ...untagged, nodepool_installation: INSTALLATION };
    watch(cloud.create('twin', tags, signal));
    watch(cloud.create('alien', { ...tags, nodepool_provider_name: 'other' }, signal));
    watch(cloud.create('staging', { ...tags, nodepool_installation: 'staging' }, signal));
    watch(cloud.create('old', { ...untagged, nodepool_launch_attempt: 'recorded' }, signal));
    watch(cloud.create('older', { ...untagged, nodepool_launch_attempt: 'another' }, signal));
    await clock.advance(100);
    await bench.cleanUp(NODE, { launchAttempt: 'recorded' });
    expect(cloud.existing).toEqual(['i-3', 'i-4', 'i-6']);
  });

  it('ignores an old listing', async () => {
    const clock = new VirtualClock();
    const cloud = new TinyCloud(clock);
    const bench = await new Bench(clock, machineDriver(cloud)).start();
    await bench.finish(bench.launch());
    // Created after the last listing.
    watch(
      cloud.create(
        'later',
        { nodepool_node_id: '0000000077', nodepool_provider_name: 'tiny', nodepool_installation: INSTALLATION },
        new AbortController().signal,
      ),
    );
    await clock.advance(100);
    await bench.cleanUp('0000000077');
    expect(cloud.existing).toEqual(['i-1']);
  });

  it('ends when the provider stops, and leaves nothing running', async () => {
    const { bench, clock } = await launched({ deletionMs: 1e9 });
    await bench.provider.cleanupNode(bench.cleanup(NODE, { externalId: 'i-1' }));
    const wait = watch(bench.provider.waitForNodeCleanup(NODE));
    await clock.advance(5000);
    expect(bench.tasks.list().map(({ name }) => name)).toEqual([`cleanup of node ${NODE}`]);
    bench.provider.stop();
    await bench.provider.join();
    await expect(bench.finish(wait)).rejects.toMatchObject({ code: 'aborted' });
    expect(bench.tasks.size).toBe(0);
    expect(clock.pending).toBe(0);
    expect(bench.failures).toEqual([]);
  });
});

describe('a deletion machine that has something to remember', () => {
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
    const first = await new Bench(clock, driver).start();
    await first.finish(first.launch());
    const before = first.saves.length;
    await first.provider.cleanupNode(first.cleanup(NODE, { externalId: 'i-1' }));
    await clock.advance(10_000);
    first.provider.stop();
    expect(first.saves.slice(before).map(({ machine }) => machine)).toEqual([
      { state: 'deleting' },
      { state: 'waiting' },
    ]);

    const second = await new Bench(clock, driver).start();
    await second.cleanUp(NODE, { externalId: 'i-1', saved: first.saves.at(-1)!.machine });
    expect(resumed).toEqual([null, { state: 'waiting' }]);
    expect(cloud.existing).toEqual([]);
  });
});

describe('the clean-up of leaked resources', () => {
  it('goes on after one that cannot be deleted, and says how many failed', async () => {
    const clock = new VirtualClock();
    const cloud = new TinyCloud(clock);
    const bench = await new Bench(clock, machineDriver(cloud)).start();
    for (let index = 0; index < 4; index += 1) await bench.finish(bench.launch());
    cloud.failNext(
      'delete',
      { kind: 'refuse', error: new ConflictError('the instance is busy') },
      { kind: 'refuse', error: new NotFoundError('it does not exist') },
    );
    const cleaning = watch(bench.provider.cleanupLeakedResources({ leaked: async (all) => all }, bench.call()));
    await expect(bench.finish(cleaning)).rejects.toMatchObject({
      code: 'conflict',
      message: expect.stringContaining('1 of 4'),
    });
    await clock.advance(10_000);
    expect(cloud.existing).toEqual(['i-1', 'i-2']);
  });
});

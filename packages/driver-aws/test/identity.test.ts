/** The identity of instances: in shared calls, of spot instances and fleets, and after a restart of the launcher. */

import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { CreateVolumeCommand, DeleteTagsCommand, EC2Client, TerminateInstancesCommand } from '@aws-sdk/client-ec2';
import { INTERRUPTED_LAUNCH, type JsonObject, type LaunchedInstance } from '@nodepool/core';
import { REGION } from '@nodepool/simulated-aws';
import { callOn } from '@nodepool/driver-kit';
import { idOf, openCloud, section, type OpenCloud } from './cloud.js';
import { TestProvider } from './provider.js';

const FLEET: JsonObject = { fleet: { 'instance-types': ['m5.large'], 'allocation-strategy': 'lowest-price' } };

let open: OpenCloud;
const started: TestProvider[] = [];

beforeEach(async () => {
  open = await openCloud();
});

afterEach(async () => {
  open.cloud.faults.clear();
  for (const test of started.splice(0)) await test.stop();
  await open.close();
});

async function provider(...change: [change?: JsonObject, label?: JsonObject]): Promise<TestProvider> {
  const test = await TestProvider.started(open, section(open, ...change));
  started.push(test);
  return test;
}

const ids = (count: number): string[] => Array.from({ length: count }, (_, index) => `${index + 1}`.padStart(10, '0'));

function launchAll(test: TestProvider, count: number): Promise<readonly LaunchedInstance[]> {
  return test.end(Promise.all(ids(count).map((id) => test.begin(id))));
}

const existing = (): ReturnType<OpenCloud['cloud']['inspect']['instances']> =>
  open.cloud.inspect.instances().filter(({ state }) => state !== 'terminated');

/** Returns the listed node of each instance. */
async function nodesById(test: TestProvider): Promise<ReadonlyMap<unknown, string | undefined>> {
  const listed = await test.end(test.provider.listNodes(callOn(open.time.clock)));
  return new Map(listed.map(({ externalId, tags }) => [externalId, tags['nodepool_node_id']]));
}

async function withClient(work: (client: EC2Client) => Promise<unknown>): Promise<void> {
  const client = new EC2Client({ region: REGION, endpoint: open.cloud.url, credentials: open.cloud.credentials });
  await work(client);
  client.destroy();
}

describe('instances of a shared call', () => {
  it('are recorded with the host names of their nodes', async () => {
    const launched = await launchAll(await provider(), 3);
    expect(launched.map(({ hostname }) => hostname)).toEqual(ids(3).map((id) => `np${id}`));
  });

  it('get the host name as the tag Name, at a rate that leaves a burst its calls', async () => {
    const test = await provider();
    const launched = await launchAll(test, 20);
    await open.time.until(() => false, 10_000);
    expect(open.cloud.calls.count('ec2.CreateTags')).toBeLessThanOrEqual(6);
    await open.time.until(() => open.cloud.calls.count('ec2.CreateTags') === 20, 60_000);
    const names = new Map(existing().map(({ id, tags }) => [id, tags['Name']]));
    expect(launched.map(({ externalId }) => names.get(idOf(externalId)))).toEqual(ids(20).map((id) => `np${id}`));
  });

  it('get no name once their deletion has begun', async () => {
    const test = await provider();
    const launched = await launchAll(test, 4);
    await test.end(Promise.all(ids(4).map((id, at) => test.beginCleanUp(launched[at]?.externalId ?? null, id))));
    await open.time.until(() => false, 60_000);
    expect(open.cloud.calls.count('ec2.CreateTags')).toBeLessThanOrEqual(1);
  });

  it('are as many as the quota allows, although EC2 refuses the call for all of them', async () => {
    open.cloud.configure({ partialAtQuota: false });
    open.cloud.setQuota('L-1216C47A', 10);
    const test = await provider();
    open.cloud.calls.reset();
    const results = await test.end(Promise.allSettled(ids(20).map((id) => test.begin(id))));
    expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(5);
    for (const result of results) {
      if (result.status === 'rejected') expect(result.reason).toMatchObject({ code: 'quota', outcome: 'not-applied' });
    }
    expect(existing()).toHaveLength(5);
    expect(open.cloud.calls.count('ec2.RunInstances')).toBeLessThanOrEqual(8);
  });

  it('share tags of volumes, which are leaked once all instances have ended', async () => {
    const test = await provider();
    const launched = await launchAll(test, 3);
    const Tags = Object.entries(open.cloud.inspect.volumes()[0]?.tags ?? {}).map(([Key, Value]) => ({ Key, Value }));
    const [AvailabilityZone = ''] = Object.keys(open.cloud.subnets);
    const TagSpecifications = [{ ResourceType: 'volume' as const, Tags }];
    await withClient((client) =>
      client.send(new CreateVolumeCommand({ AvailabilityZone, Size: 8, TagSpecifications })),
    );
    const leaked = async (): Promise<readonly unknown[]> =>
      (await test.cleanUpRound()).filter(({ kind }) => kind === 'volume').map(({ tags }) => tags);
    expect(await leaked()).toEqual([]);
    await withClient((client) =>
      client.send(new TerminateInstancesCommand({ InstanceIds: launched.map(({ externalId }) => idOf(externalId)) })),
    );
    await open.time.until(() => false, 10_000);
    expect(await leaked()).toMatchObject([{ ...test.tagsOf('0000000001') }]);
  });
});

describe('spot instances that show neither the token nor the index of their call', () => {
  beforeEach(() => open.cloud.configure({ spotShowsCall: false }));

  it.each([1, 5])('have the identity of their nodes: %d of one call', async (count) => {
    const test = await provider({}, { 'use-spot': true });
    const launched = await launchAll(test, count);
    const nodes = await nodesById(test);
    expect(launched.map(({ externalId }) => nodes.get(externalId))).toEqual(ids(count));
    expect(existing()).toHaveLength(count);
    await test.end(Promise.all(ids(count).map((id, at) => test.beginCleanUp(launched[at]?.externalId ?? null, id))));
    expect(existing()).toEqual([]);
  });

  it('get their tags although EC2 does not know them yet', async () => {
    open.cloud.configure({ readLagMs: 8000 });
    const test = await provider({}, { 'use-spot': true });
    const launched = await launchAll(test, 2);
    const nodes = await nodesById(test);
    expect(launched.map(({ externalId }) => nodes.get(externalId))).toEqual(ids(2));
  });

  it('are no copies, and a later copy survives', async () => {
    const test = await provider({}, { 'use-spot': true });
    const { externalId } = await test.launch();
    await open.time.until(() => false, 180_000);
    const copy = open.cloud.duplicate(idOf(externalId));
    await test.cleanUpRound(() => true);
    expect(existing().map(({ id }) => id)).toEqual([copy]);
  });

  it('are leaked if their tagging failed', async () => {
    const test = await provider({}, { 'use-spot': true });
    const fault = { kind: 'status', status: 500, code: 'InternalError' } as const;
    open.cloud.faults.add({ on: 'ec2.CreateTags', times: 1, fault });
    const results = await test.end(Promise.allSettled(ids(2).map((id) => test.begin(id))));
    expect(results.map(({ status }) => status)).toContain('fulfilled');
    const recorded = new Set(results.flatMap((each) => (each.status === 'fulfilled' ? [each.value.externalId] : [])));
    await test.cleanUpRound(({ externalId, kind }) => kind === 'instance' && !recorded.has(externalId));
    expect(new Set(existing().map(({ id }) => id))).toEqual(recorded);
  });
});

describe('a fleet', () => {
  it('has volumes with the identity of their node, and a copy of its instance survives', async () => {
    const test = await provider({}, FLEET);
    const { externalId } = await test.launch();
    for (const { tags } of open.cloud.inspect.volumes()) expect(tags).toMatchObject({ ...test.tagsOf('0000000001') });
    const copy = open.cloud.duplicate(idOf(externalId), { 'aws:ec2:fleet-id': undefined });
    await test.cleanUpRound(({ kind }) => kind === 'instance');
    expect(existing().map(({ id }) => id)).toEqual([copy]);
  });
});

describe('a launcher that is killed', () => {
  /** Begins launches whose call hangs, and resolves when the call has arrived. */
  async function beginHanging(when: 'before' | 'after', ...change: Parameters<typeof provider>): Promise<void> {
    const first = await provider(...change);
    const { calls, faults } = open.cloud;
    faults.add({ on: 'ec2.RunInstances', fault: { kind: 'hang', when } });
    for (const id of ids(3)) first.begin(id).catch(() => undefined);
    await open.time.until(() => calls.count('ec2.RunInstances') === 1, 10_000);
  }

  const resume = async (...change: Parameters<typeof provider>): Promise<readonly PromiseSettledResult<unknown>[]> => {
    const second = await provider(...change);
    return second.end(Promise.allSettled(ids(3).map((id) => second.begin(id, { saved: INTERRUPTED_LAUNCH }))));
  };

  it('after EC2 has launched the instances of a shared call: the next launcher finds each of them', async () => {
    await beginHanging('after');
    const results = await resume();
    const found = results.map((each) => (each.status === 'fulfilled' ? each.value : each.reason) as LaunchedInstance);
    expect(new Set(found.map(({ externalId }) => externalId)).size).toBe(3);
    expect(existing()).toHaveLength(3);
    expect(found.map(({ hostname }) => hostname)).toEqual(ids(3).map((id) => `np${id}`));
  });

  it('before EC2 has received the call: the next launcher finds nothing, and launches nothing by itself', async () => {
    await beginHanging('before');
    for (const result of await resume()) {
      expect(result).toMatchObject({ status: 'rejected', reason: { outcome: 'not-applied' } });
    }
    expect(existing()).toEqual([]);
  });

  it('while lists lack the new instances: the next launcher waits for them', async () => {
    open.cloud.configure({ readLagMs: 20_000 });
    await beginHanging('after');
    const results = await resume();
    expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'fulfilled']);
    expect(existing()).toHaveLength(3);
  });
});

it('an instance without its tags is of no node', async () => {
  const test = await provider();
  const { externalId } = await test.launch();
  await withClient((client) =>
    client.send(new DeleteTagsCommand({ Resources: [idOf(externalId)], Tags: [{ Key: 'nodepool_node_id' }] })),
  );
  expect((await nodesById(test)).get(externalId)).toBeUndefined();
});

/** Launches and deletions of instances, with and without faults. */

import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { DriverError, JsonObject } from '@nodepool/core';
import { INSTANCE_PROFILE, KMS_KEY_ARN } from '@nodepool/simulated-aws';
import { callOn } from '@nodepool/driver-kit';
import { idOf, openCloud, section, type OpenCloud } from './cloud.js';
import { TestProvider } from './provider.js';

const STANDARD = 'L-1216C47A';
const SPOT = 'L-34B43A08';

const IMAGE = { name: 'amazon', username: 'ec2-user' } as const;
const NO_IMAGE: JsonObject = { name: 'name', values: ['no-such-image-*'] };

let open: OpenCloud;
const started: TestProvider[] = [];

beforeEach(async () => {
  open = await openCloud();
});

afterEach(async () => {
  for (const test of started.splice(0)) await test.stop();
  await open.close();
});

type Change = [change?: JsonObject, label?: JsonObject, pool?: JsonObject];

async function provider(...change: Change): Promise<TestProvider> {
  const test = await TestProvider.started(open, section(open, ...change));
  started.push(test);
  return test;
}

const ids = (count: number, from = 1): string[] =>
  Array.from({ length: count }, (_, index) => String(index + from).padStart(10, '0'));

const existing = (): ReturnType<OpenCloud['cloud']['inspect']['instances']> =>
  open.cloud.inspect.instances().filter(({ state }) => state !== 'terminated');

describe('a launch', () => {
  it('creates an instance with one call, and its volume and interface have the tags of the node', async () => {
    const test = await provider();
    const launched = await test.launch();
    expect(launched.interfaceIp).toBe(launched.publicIpv4);
    expect(launched.resources).toEqual({ instances: 1, cores: 1, ram: 8192, [STANDARD]: 2 });
    expect(launched.machine).toEqual({ type: 'm5.large', market: 'on-demand' });
    const { inspect, calls } = open.cloud;
    expect(calls.count('ec2.RunInstances')).toBe(1);
    for (const { tags } of [...inspect.instances(), ...inspect.volumes(), ...inspect.networkInterfaces()]) {
      expect(tags['nodepool_node_id']).toBe('0000000001');
    }
    const { externalId } = launched;
    await test.cleanUp(externalId);
    expect(existing()).toEqual([]);
    expect(inspect.volumes()).toEqual([]);
    expect(inspect.networkInterfaces()).toEqual([]);
  });

  it('has all settings of its label and pool', async () => {
    const test = await provider(
      {},
      {
        'volume-type': 'gp3',
        'volume-size': 40,
        iops: 4000,
        throughput: 200,
        'kms-key-id': KMS_KEY_ARN,
        userdata: '#cloud-config\n',
        'iam-instance-profile': { name: INSTANCE_PROFILE },
        'ebs-optimized': true,
        imdsv2: 'required',
        tags: { team: 'ci' },
        'dynamic-tags': { tenant: 'of {request.tenant_name}' },
      },
      { 'security-group-ids': [...open.cloud.securityGroups], 'public-ip-address': false },
    );
    const launched = await test.launch();
    expect(launched.interfaceIp).toBe(launched.privateIpv4);
    expect(launched.publicIpv4).toBeUndefined();
    const [instance] = existing();
    expect(instance).toMatchObject({
      userData: '#cloud-config\n',
      metadataTokens: 'required',
      ebsOptimized: true,
      securityGroupIds: [...open.cloud.securityGroups],
    });
    expect(instance?.instanceProfile).toContain(INSTANCE_PROFILE);
    expect(instance?.tags).toMatchObject({ team: 'ci', Name: expect.any(String) });
    expect(open.cloud.inspect.volumes()).toMatchObject([
      { sizeGib: 40, volumeType: 'gp3', iops: 4000, throughput: 200, encrypted: true, deleteOnTermination: true },
    ]);
  });

  it('can have a dedicated host, which is released with the instance', async () => {
    const [zone = ''] = Object.keys(open.cloud.subnets);
    const test = await provider({}, { 'dedicated-host': true }, { 'availability-zone': zone });
    const { externalId, az } = await test.launch();
    expect(az).toBe(zone);
    const released = /^released/;
    const hosts = (): unknown[] => open.cloud.inspect.hosts().filter(({ state }) => !released.test(state));
    expect(hosts()).toHaveLength(1);
    // A copy has the tags of the node, too.
    const copy = open.cloud.duplicate(open.cloud.inspect.hosts()[0]?.id ?? '');
    await test.cleanUp(externalId);
    expect(existing()).toEqual([]);
    expect(hosts()).toMatchObject([{ id: copy }]);
  });

  it.each(['prioritized', 'lowest-price'])('can be by an on-demand fleet with the strategy %s', async (strategy) => {
    const fleet = { 'instance-types': ['m5.large', 'm6i.large'], 'allocation-strategy': strategy };
    const test = await provider({}, { fleet, 'iam-instance-profile': { name: INSTANCE_PROFILE } });
    const { externalId } = await test.launch();
    const [instance] = existing();
    expect(instance?.id).toBe(externalId);
    expect(instance?.market).toBe('on-demand');
    expect(instance?.tags['nodepool_node_id']).toBe('0000000001');
    expect(instance?.instanceProfile).toContain(INSTANCE_PROFILE);
  });

  it.each(['prioritized', 'price-capacity-optimized', 'capacity-optimized', 'diversified', 'lowest-price'])(
    'can be by a spot fleet with the strategy %s',
    async (strategy) => {
      const fleet = { 'instance-types': ['m5.large', 'm6i.large'], 'allocation-strategy': strategy };
      const test = await provider({}, { fleet, 'use-spot': true }, { 'subnet-ids': Object.values(open.cloud.subnets) });
      await test.launch();
      expect(existing()).toMatchObject([{ market: 'spot', tags: { nodepool_node_id: '0000000001' } }]);
    },
  );
});

describe('a burst', () => {
  it('launches and deletes 200 nodes with few calls', async () => {
    open.cloud.configure({ pendingMs: 20_000, shuttingDownMs: 20_000 });
    const test = await provider({ rate: 2 });
    open.cloud.calls.reset();
    const nodes = ids(200);
    const launched = await test.end(Promise.all(nodes.map((id) => test.begin(id))));
    expect(new Set(launched.map(({ externalId }) => externalId)).size).toBe(200);
    expect(open.cloud.calls.count('ec2.RunInstances')).toBeLessThanOrEqual(40);
    await test.end(Promise.all(nodes.map((id, index) => test.beginCleanUp(launched[index]?.externalId ?? null, id))));
    expect(existing()).toEqual([]);
    expect(open.cloud.calls.count('ec2')).toBeLessThanOrEqual(200);
  });

  it('costs at most one call per node that lives for ten minutes, and names all in the end', async () => {
    open.cloud.configure({ pendingMs: 20_000, shuttingDownMs: 20_000 });
    const test = await provider({ rate: 2 });
    open.cloud.calls.reset();
    const nodes = ids(200);
    const launched = await test.end(Promise.all(nodes.map((id) => test.begin(id))));
    await open.time.until(() => false, 600_000);
    const deleted = 100;
    const calls = open.cloud.calls.count('ec2');
    await test.end(
      Promise.all(
        nodes.slice(0, deleted).map((id, index) => test.beginCleanUp(launched[index]?.externalId ?? null, id)),
      ),
    );
    const ofDeletion = open.cloud.calls.count('ec2') - calls;
    // The second half would cost as much.
    expect(calls + 2 * ofDeletion).toBeLessThanOrEqual(200);
    await open.time.until(() => false, 3_600_000);
    const names = new Map(existing().map(({ id, tags }) => [id, tags['Name']]));
    const left = launched.slice(deleted);
    expect(left.map(({ externalId }) => names.get(idOf(externalId)))).toEqual(
      nodes.slice(deleted).map((id) => `np${id}`),
    );
  });

  it('stays within the token buckets of AWS', async () => {
    open.cloud.configure({ throttles: true, pendingMs: 20_000, shuttingDownMs: 20_000 });
    const test = await provider({ rate: 2 });
    open.cloud.calls.reset();
    const nodes = ids(300);
    const begun = open.time.clock.now();
    const launched = await test.end(Promise.all(nodes.map((id) => test.begin(id))));
    // At two launched instances per second without the bucket, this takes 150 seconds.
    expect(open.time.clock.now() - begun).toBeLessThan(60_000);
    await test.end(Promise.all(nodes.map((id, index) => test.beginCleanUp(launched[index]?.externalId ?? null, id))));
    expect(existing()).toEqual([]);
    expect(test.apiCalls.filter(({ status }) => status === 503)).toEqual([]);
  });

  it('waits for the bucket if other programs have emptied it', async () => {
    open.cloud.faults.add({ on: 'ec2.RunInstances', times: 3, fault: { kind: 'throttle' } });
    const test = await provider();
    const results = await test.end(Promise.allSettled(ids(3).map((id) => test.begin(id))));
    expect(results.map((each) => (each.status === 'rejected' ? (each.reason as DriverError).code : ''))).toEqual([
      'throttled',
      'throttled',
      'throttled',
    ]);
    open.cloud.faults.clear();
    const launched = await test.end(Promise.all(['4', '5'].map((id) => test.begin(id.padStart(10, '0')))));
    expect(launched).toHaveLength(2);
  });

  it('gives each instance of a shared call the identity of its node from its creation', async () => {
    const test = await provider();
    const launched = await test.end(Promise.all(ids(7).map((id) => test.begin(id))));
    expect(open.cloud.calls.count('ec2.RunInstances')).toBe(1);
    const listed = await test.provider.listNodes(callOn(open.time.clock));
    for (const [index, { externalId }] of launched.entries()) {
      const tags = listed.find((each) => each.externalId === externalId)?.tags;
      expect(tags?.['nodepool_node_id']).toBe(ids(7)[index]);
    }
  });

  it('serves the first nodes of a partial answer, and closes the offer for the others', async () => {
    open.cloud.capacity.limit({ instanceType: 'm5.large' }, 3);
    const test = await provider();
    const results = await test.end(Promise.allSettled(ids(5).map((id) => test.begin(id))));
    expect(results.map(({ status }) => status)).toEqual([
      'fulfilled',
      'fulfilled',
      'fulfilled',
      'rejected',
      'rejected',
    ]);
    for (const result of results.slice(3)) {
      expect(result).toMatchObject({ reason: { code: 'capacity', outcome: 'not-applied' } });
    }
    expect(existing()).toHaveLength(3);
  });

  it('terminates the others although one instance is unknown', async () => {
    const test = await provider();
    const launched = await test.end(Promise.all(ids(3).map((id) => test.begin(id))));
    open.cloud.forgetInstance(idOf(launched[1]?.externalId));
    await test.end(Promise.all(ids(3).map((id, index) => test.beginCleanUp(launched[index]?.externalId ?? null, id))));
    expect(existing()).toEqual([]);
    // EC2 refuses the first call, and the second one, without the unknown instance, follows at once.
    const operations = open.cloud.calls.last().map(({ operation }) => operation);
    const first = operations.indexOf('ec2.TerminateInstances');
    expect(operations.slice(first, first + 2)).toEqual(['ec2.TerminateInstances', 'ec2.TerminateInstances']);
  });
});

describe('errors of a launch', () => {
  it.each([
    ['InvalidKeyPair.NotFound', '"key-name"'],
    ['InvalidSubnetID.NotFound', '"subnet-id"'],
    ['InvalidGroup.NotFound', '"security-group-ids"'],
    ['InvalidAMIID.NotFound', '"image-id"'],
    ['InvalidUserData.Malformed', '"userdata"'],
  ])('%s names the key %s', async (code, key) => {
    open.cloud.faults.add({ on: 'ec2.RunInstances', fault: { kind: 'status', status: 400, code } });
    const error = await (await provider()).failedLaunch();
    expect(error).toMatchObject({ code: 'configuration', outcome: 'not-applied' });
    expect(error.message.split(key)).toHaveLength(2);
  });

  it.each<[value: string, key: string, ...change: Change]>([
    ['a key pair', '"key-name"', {}, { 'key-name': 'missing' }],
    ['an instance profile', '"iam-instance-profile"', {}, { 'iam-instance-profile': { name: 'missing' } }],
    ['an instance type', '"instance-type"', {}, { 'instance-type': 'qq9.large' }],
    ['a volume', '"volume-size"', {}, { 'volume-size': 1 }],
    ['iops', '"iops"', {}, { 'volume-type': 'gp3', 'volume-size': 100, iops: 1 }],
    ['a security group', '"security-group-ids"', {}, {}, { 'security-group-id': 'sg-0123456789abcdef0' }],
    ['an image', '"image-id"', { 'cloud-images': [{ ...IMAGE, 'image-id': 'ami-0123456789abcdef0' }] }],
    ['filters of images', '"image-filters"', { 'cloud-images': [{ ...IMAGE, 'image-filters': [NO_IMAGE] }] }],
  ])('%s that AWS refuses names the key %s', async (_value, key, ...change) => {
    const error = await (await provider(...change)).failedLaunch();
    expect(error).toMatchObject({ code: 'configuration', message: expect.stringContaining(key) });
  });

  it('a subnet that does not exist names the key', async () => {
    await expect(provider({}, {}, { 'subnet-id': 'subnet-0123456789abcdef0' })).rejects.toMatchObject({
      ...{ code: 'configuration', message: expect.stringContaining('"subnet-id"') },
    });
  });
});

describe('quotas', () => {
  it('a fleet needs what each of its types needs, and the region may lack some of them', async () => {
    const fleet = (types: string[]): JsonObject => ({
      fleet: { 'instance-types': types, 'allocation-strategy': 'lowest-price' },
    });
    const needOf = async (types: string[]): Promise<unknown> => {
      const test = await provider({}, fleet(types));
      const need = test.provider.getQuotaForLabel?.('main', 'small', callOn(open.time.clock));
      return (await test.end(need ?? Promise.resolve(undefined)))?.toResources();
    };
    expect(await needOf(['m5.xlarge', 'm5.large', 'qq9.large'])).toEqual({
      ...{ instances: 1, cores: 1, ram: 8192, [STANDARD]: 2 },
    });
    expect(await needOf(['m5.large', 'g4dn.xlarge'])).toEqual({ instances: 1, cores: 1, ram: 8192 });
    await expect(needOf(['qq9.large'])).rejects.toMatchObject({ code: 'configuration' });
  });

  it('do not count a stopped instance of another person, which AWS does not count either', async () => {
    const test = await provider();
    const { externalId } = await test.launch();
    const stranger = open.cloud.duplicate(idOf(externalId), { nodepool_installation: undefined });
    const useOf = async (): Promise<unknown> => {
      const listed = await test.end(test.provider.listNodes(callOn(open.time.clock)));
      return listed.find((each) => each.externalId === stranger)?.resources;
    };
    expect(await useOf()).toMatchObject({ [STANDARD]: 2 });
    open.cloud.endInstance(stranger, 'stopped', 'Client.UserInitiatedShutdown');
    await open.time.until(() => false, 60_000);
    expect(await useOf()).toEqual({ instances: 1, cores: 1, ram: 8192 });
  });
});

it('an instance that shuts down by itself has failed, and is deleted', async () => {
  const test = await provider();
  const { externalId } = await test.launch();
  open.cloud.endInstance(idOf(externalId), 'stopped', 'Client.InstanceInitiatedShutdown');
  await open.time.until(() => false, 60_000);
  const [listed] = await test.end(test.provider.listNodes(callOn(open.time.clock)));
  expect(listed).toMatchObject({ ready: false, failed: expect.stringContaining('InstanceInitiatedShutdown') });
  // It does not end by itself, so the deletion has to be repeated.
  const message = `The instance ID '${idOf(externalId)}' does not exist`;
  const fault = { kind: 'status', status: 400, code: 'InvalidInstanceID.NotFound', message } as const;
  open.cloud.faults.add({ on: 'ec2.TerminateInstances', fault });
  await test.cleanUp(externalId);
  expect(existing()).toEqual([]);
});

describe('spot', () => {
  it('is preferred, and on-demand instances are another offer', async () => {
    const test = await provider({}, { 'use-spot': 'prefer', 'instance-types': ['m5.large', 'm6i.large'] });
    const types = test.config.pools.get('main')?.labels.get('small')?.machineTypes;
    expect(types).toEqual(['m5.large (spot)', 'm6i.large (spot)', 'm5.large', 'm6i.large']);
    open.cloud.capacity.limit({ market: 'spot' }, 0);
    await expect(test.launch('0000000001', { machineType: 'm5.large (spot)' })).rejects.toMatchObject({
      code: 'capacity',
    });
    const { resources } = await test.launch('0000000002', { machineType: 'm5.large' });
    expect(resources).toMatchObject({ [STANDARD]: 2 });
    const need = await test.provider.getQuotaForLabel?.('main', 'small', callOn(open.time.clock), 'm5.large (spot)');
    expect(need?.get(SPOT)).toBe(2);
    expect(need?.get(STANDARD)).toBe(0);
  });
});

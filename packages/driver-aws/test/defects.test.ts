/** Cases that the driver of the Python Nodepool gets wrong, named after the behaviour of this one. */

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { DriverError, JsonObject, NodeLaunch } from '@nodepool/core';
import { failureOf } from '@nodepool/driver-kit';
import { BUCKET, INSTANCE_PROFILE } from '@nodepool/simulated-aws';
import { isKnownFamily, resourcesOf } from '../src/quota.js';
import { idOf, openCloud, section, type OpenCloud } from './cloud.js';
import { TestProvider } from './provider.js';

const STANDARD = 'L-1216C47A';
const SPOT = 'L-34B43A08';
const TYPES = ['m5.large', 'm6i.large'];
const FLEET = { fleet: { 'instance-types': TYPES, 'allocation-strategy': 'lowest-price' } };

let open: OpenCloud;
let folder: string;
const started: TestProvider[] = [];

beforeEach(async () => {
  open = await openCloud();
  folder = mkdtempSync(join(tmpdir(), 'nodepool-aws-'));
});

afterEach(async () => {
  for (const test of started.splice(0)) await test.stop();
  await open.close();
  rmSync(folder, { recursive: true });
});

type Change = [change?: JsonObject, label?: JsonObject, pool?: JsonObject];

async function provider(...change: Change): Promise<TestProvider> {
  const test = await TestProvider.started(open, section(open, ...change));
  started.push(test);
  return test;
}

const ids = (count: number): string[] => Array.from({ length: count }, (_, index) => `${index + 1}`.padStart(10, '0'));

const existing = (): ReturnType<OpenCloud['cloud']['inspect']['instances']> =>
  open.cloud.inspect.instances().filter(({ state }) => state !== 'terminated');

const failure = async (...change: Change): Promise<DriverError> => failureOf((await provider(...change)).launch());

async function needOf(test: TestProvider, label = 'small'): Promise<Readonly<Record<string, number>>> {
  const need = await test.end(
    test.provider.getQuotaForLabel?.('main', label, test.call()) ?? Promise.resolve(undefined),
  );
  return Object.fromEntries([STANDARD, SPOT, 'L-DB2E81BA', 'L-43DA4232'].map((code) => [code, need?.get(code) ?? 0]));
}

describe('1. a create call without an answer', () => {
  it.each([1, 3])('makes no twin of the %d instances of one call', async (count) => {
    const test = await provider();
    open.cloud.faults.add({ on: 'ec2.RunInstances', fault: { kind: 'cut', when: 'after' } });
    const launched = await test.end(Promise.all(ids(count).map((id) => test.begin(id))));
    expect(new Set(launched.map(({ externalId }) => externalId)).size).toBe(count);
    expect(existing()).toHaveLength(count);
  });

  it('makes no twin of a fleet', async () => {
    const test = await provider({}, FLEET);
    open.cloud.faults.add({ on: 'ec2.CreateFleet', fault: { kind: 'cut', when: 'after' } });
    const { externalId } = await test.launch();
    expect(existing().map(({ id }) => id)).toEqual([externalId]);
  });

  it('repeats a call with refused credentials with the same token and tags', async () => {
    const test = await provider();
    open.cloud.faults.add({ on: 'ec2.RunInstances', fault: { kind: 'status', status: 401, code: 'AuthFailure' } });
    await test.launch();
    const calls = open.cloud.calls.last().filter(({ operation }) => operation === 'ec2.RunInstances');
    const [first, second] = calls.map(({ parameters }) => Object.fromEntries(parameters));
    expect(first).toEqual(second);
    expect(first?.['ClientToken']).toBe('attempt-of-0000000001');
  });
});

describe('2. an error inside the answer of a fleet', () => {
  it('of capacity is one of capacity', async () => {
    open.cloud.capacity.limit({}, 0);
    expect(await failure({}, FLEET)).toMatchObject({ code: 'capacity', outcome: 'not-applied' });
  });

  it('of a quota is one of the quota', async () => {
    open.cloud.setQuota(STANDARD, 0);
    expect(await failure({}, FLEET)).toMatchObject({ code: 'quota', outcome: 'not-applied' });
  });

  it.each([
    ['InsufficientInstanceCapacity', 'capacity'],
    ['MaxSpotInstanceCountExceeded', 'quota'],
    ['MaxFleetCountExceeded', 'quota'],
    ['RequestLimitExceeded', 'throttled'],
    ['InvalidKeyPair.NotFound', 'configuration'],
  ])('%s is %s, like one that is thrown', async (code, expected) => {
    const fault = { kind: 'fleet-error', code, message: 'in the answer' } as const;
    open.cloud.faults.add({ on: 'ec2.CreateFleet', fault });
    expect(await failure({}, FLEET)).toMatchObject({ code: expected, outcome: 'not-applied' });
    expect(existing()).toEqual([]);
  });

  it('of one type is none, because another type has capacity', async () => {
    open.cloud.capacity.limit({ instanceType: 'm5.large' }, 0);
    await (await provider({}, FLEET)).launch();
    expect(existing()).toMatchObject([{ instanceType: 'm6i.large' }]);
  });
});

describe('3. a refusal that says nothing about the node', () => {
  it.each([
    ['VcpuLimitExceeded', 'quota'],
    ['InstanceLimitExceeded', 'quota'],
    ['MaxSpotInstanceCountExceeded', 'quota'],
    ['VolumeLimitExceeded', 'quota'],
    ['SpotMaxPriceTooLow', 'capacity'],
    ['UnfulfillableCapacity', 'capacity'],
    ['InsufficientInstanceCapacity', 'capacity'],
    ['InsufficientFreeAddressesInSubnet', 'capacity'],
    ['Unsupported', 'capacity'],
    ['RequestLimitExceeded', 'throttled'],
  ])('%s is %s, and uses up no attempt', async (code, expected) => {
    open.cloud.faults.add({ on: 'ec2.RunInstances', fault: { kind: 'status', status: 400, code } });
    expect(await failure()).toMatchObject({ code: expected, outcome: 'not-applied' });
    expect(existing()).toEqual([]);
  });

  it('is one of addresses, if the subnet has none', async () => {
    const [subnet = ''] = Object.values(open.cloud.subnets);
    open.cloud.capacity.setFreeAddresses(subnet, 0);
    expect(await failure({}, {}, { 'subnet-id': subnet })).toMatchObject({ code: 'capacity' });
  });

  it('is one of the quota, if an instance ends because of a limit of volumes', async () => {
    const fault = { kind: 'launch-failure', code: 'Client.VolumeLimitExceeded', message: 'too many volumes' } as const;
    open.cloud.configure({ pendingMs: 5000 });
    open.cloud.faults.add({ on: 'ec2.RunInstances', fault });
    expect(await failure()).toMatchObject({ code: 'quota', outcome: 'applied' });
  });
});

describe('4. a fleet', () => {
  it('has the addresses, profile, zone and root device of its label and pool', async () => {
    const [, zone = ''] = Object.keys(open.cloud.subnets);
    const label = { ...FLEET, 'iam-instance-profile': { name: INSTANCE_PROFILE }, 'ebs-optimized': true };
    const pool = { 'availability-zone': zone, 'public-ipv4': false, 'public-ipv6': true };
    const test = await provider({}, { ...label, 'volume-size': 41 }, pool);
    const { publicIpv4, publicIpv6, az } = await test.launch();
    expect([publicIpv4, publicIpv6 !== undefined, az]).toEqual([undefined, true, zone]);
    const [instance] = existing();
    expect(instance?.instanceProfile).toContain(INSTANCE_PROFILE);
    expect(instance?.ebsOptimized).toBe(true);
    // The image's root device is /dev/xvda: another name would add a second volume.
    expect(open.cloud.inspect.volumes().map(({ sizeGib }) => sizeGib)).toEqual([41]);
  });

  it('is launched although another program has deleted its launch template', async () => {
    const test = await provider({}, FLEET);
    await test.launch('0000000001');
    const fault = { kind: 'status', status: 400, code: 'InvalidLaunchTemplateName.NotFoundException' } as const;
    open.cloud.faults.add({ on: 'ec2.CreateFleet', fault });
    await test.launch('0000000002');
    expect(existing()).toHaveLength(2);
  });
});

describe('5. a pool with several subnets', () => {
  const launchIn = (zone: string): Partial<NodeLaunch> => ({ availabilityZone: zone });

  it('offers each zone, and lacks capacity in one of them only', async () => {
    const zones = Object.keys(open.cloud.subnets).slice(0, 3);
    open.cloud.capacity.limit({ zone: zones[0] ?? '' }, 0);
    const test = await provider({}, {}, { 'subnet-ids': Object.values(open.cloud.subnets).slice(0, 3) });
    const offered = await test.end(
      test.provider.getAvailabilityZones?.('main', test.call()) ?? Promise.resolve(undefined),
    );
    expect(offered).toEqual(zones);
    const error = await test.failedLaunch('0000000001', launchIn(zones[0] ?? ''));
    expect(error).toMatchObject({ code: 'capacity' });
    const { az } = await test.launch('0000000002', launchIn(zones[1] ?? ''));
    expect(az).toBe(zones[1]);
  });
});

describe('6. an instance type with other letters than those of the old families', () => {
  it.each([
    ['im4gn.large', STANDARD],
    ['is4gen.medium', STANDARD],
    ['gr6.4xlarge', 'L-DB2E81BA'],
    ['u7in-16tb.224xlarge', 'L-43DA4232'],
  ])('has a quota: %s', async (type, code) => {
    const test = await provider({}, { 'instance-type': type });
    expect((await needOf(test))[code]).toBeGreaterThan(0);
  });

  it('of an unknown family counts as a standard type, by the vCPUs that EC2 describes', () => {
    const choice = { instanceType: 'qq9.large', market: 'on-demand', onHost: false } as const;
    expect(isKnownFamily('qq9.large')).toBe(false);
    expect(resourcesOf({ cores: 2, vcpus: 4, ram: 8192 }, choice)).toMatchObject({ [STANDARD]: 4, cores: 2 });
  });
});

describe('7. an import that fails', () => {
  it.each(['snapshot', 'image'])('ends the upload with the reason of AWS: %s', async (method) => {
    const file = join(folder, 'disk.raw');
    writeFileSync(file, Buffer.alloc(1000, 'disk'));
    const test = await provider({
      'object-storage': { 'bucket-name': BUCKET },
      diskimages: [{ name: 'built', 'import-method': method }],
    });
    const on = method === 'image' ? 'ec2.ImportImage' : 'ec2.ImportSnapshot';
    open.cloud.faults.add({ on, fault: { kind: 'task-failure', message: 'ClientError: unknown OS' } });
    expect((await failureOf(test.upload(file, { image: 'built' }))).message).toContain('ClientError: unknown OS');
  });

  it('is not one that EC2 does not know yet', async () => {
    open.cloud.configure({ importMs: 60_000, readLagMs: 5000 });
    const file = join(folder, 'disk.raw');
    writeFileSync(file, Buffer.alloc(1000, 'disk'));
    const test = await provider({ 'object-storage': { 'bucket-name': BUCKET }, diskimages: [{ name: 'built' }] });
    const id = await test.upload(file, { image: 'built' });
    expect(open.cloud.inspect.images().map((image) => image.id)).toEqual([id]);
  });
});

describe('8. without the right to list quotas', () => {
  it('serves without their limits', async () => {
    open.cloud.permissions.deny('servicequotas:ListServiceQuotas');
    const test = await provider();
    const limits = await test.end(test.provider.getQuotaLimits?.(test.call()) ?? Promise.resolve(undefined));
    expect(limits?.get(STANDARD)).toBe(Infinity);
    await test.launch();
  });
});

describe('9. images that AWS creates from imports at the same time', () => {
  it('have the tags of their own upload', async () => {
    open.cloud.configure({ importMs: 60_000 });
    const file = join(folder, 'disk.raw');
    writeFileSync(file, Buffer.alloc(1000, 'disk'));
    const names = ['one', 'two', 'three'];
    const test = await provider({
      'object-storage': { 'bucket-name': BUCKET },
      diskimages: names.map((name) => ({ name, 'import-method': 'image', tags: { image: name } })),
    });
    const { images: uploads } = test.provider;
    if (uploads === undefined) throw new Error('the provider has no images');
    const uploaded = await test.end(
      Promise.all(
        names.map((name, index) =>
          uploads.uploadImage({
            ...test.call(),
            ...{ file, format: 'raw', md5: null, sha256: null, progress: () => undefined },
            ...{ image: name, externalName: name, metadata: { image: name } },
            tags: { ...test.imageTags, nodepool_image_name: name, nodepool_upload_id: `000000000${index}` },
          }),
        ),
      ),
    );
    const images = new Map(open.cloud.inspect.images().map(({ id, tags }) => [id, tags]));
    for (const [index, name] of names.entries()) {
      const tags = images.get(idOf(uploaded[index]));
      expect(tags).toMatchObject({ image: name, nodepool_image_name: name, nodepool_upload_id: `000000000${index}` });
    }
    expect(new Set(open.cloud.inspect.snapshots().map(({ tags }) => tags['image']))).toEqual(new Set(names));
  });
});

describe('10. a spot instance that AWS takes away', () => {
  const failedOf = async (test: TestProvider, id: unknown): Promise<string | undefined> => {
    const listed = await test.end(test.provider.listNodes(test.call()));
    return listed.find(({ externalId }) => externalId === id)?.failed;
  };

  it('is failed from the notice on, two minutes before its end', async () => {
    const test = await provider({ 'interruption-queue': open.cloud.queueUrl }, { 'use-spot': true });
    const { externalId } = await test.launch();
    open.cloud.interruptSpot(idOf(externalId));
    await open.time.until(() => open.cloud.inspect.messages() === 0, 30_000);
    expect(await failedOf(test, externalId)).toContain('Server.SpotInstanceTermination');
    expect(existing()).toHaveLength(1);
  });

  it('is failed in the next list without a queue', async () => {
    open.cloud.configure({ shuttingDownMs: 30_000 });
    const test = await provider({}, { 'use-spot': true });
    const { externalId } = await test.launch();
    open.cloud.interruptSpot(idOf(externalId));
    await open.time.until(() => existing()[0]?.state === 'shutting-down', 180_000);
    expect(await failedOf(test, externalId)).toContain('Server.SpotInstanceTermination');
  });

  it('can be followed by one on demand', async () => {
    open.cloud.capacity.limit({ market: 'spot' }, 0);
    const test = await provider({}, { 'use-spot': 'prefer' });
    const [spot, onDemand] = test.config.pools.get('main')?.labels.get('small')?.machineTypes ?? [];
    const error = await test.failedLaunch('0000000001', { machineType: spot ?? '' });
    expect(error).toMatchObject({ code: 'capacity' });
    await test.launch('0000000002', { machineType: onDemand ?? '' });
    expect(existing()).toMatchObject([{ market: 'on-demand' }]);
  });
});

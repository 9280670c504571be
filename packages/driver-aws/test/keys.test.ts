/** Every key of the configuration, in the requests that reach AWS. */

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { TaskSupervisor, type JsonObject, type LaunchedInstance, type Logger, type NodeLaunch } from '@nodepool/core';
import { seededRandom } from '@nodepool/core/testing';
import { failureOf } from '@nodepool/driver-kit';
import { INSTANCE_PROFILE, KMS_KEY_ARN, ROLE_ARN, STRANGER } from '@nodepool/simulated-aws';
import { awsDriver } from '../src/index.js';
import { openCloud, section, type OpenCloud } from './cloud.js';
import { TestProvider } from './provider.js';

const PROFILE_ARN = `arn:aws:iam::123456789012:instance-profile/${INSTANCE_PROFILE}`;
const TYPES = ['m5.large', 'm6i.large'];

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

/** Returns the parameters of the last call of an operation, by the names of EC2's protocol. */
function sent(operation: string): Readonly<Record<string, string>> {
  const call = open.cloud.calls.last().findLast((each) => each.operation === `ec2.${operation}`);
  return Object.fromEntries(call?.parameters ?? []);
}

/** Launches a node with an id of its own. */
function launchNext(test: TestProvider, launch: Partial<NodeLaunch> = {}): Promise<LaunchedInstance> {
  return test.launch(`${started.length}`.padStart(10, '0'), launch);
}

/** Returns the parameters of the RunInstances call of a launch. */
async function launchWith(change: Change, launch: Partial<NodeLaunch> = {}): Promise<Readonly<Record<string, string>>> {
  await launchNext(await provider(...change), launch);
  return sent('RunInstances');
}

/** Returns the tags of a launch for one type of resource. */
function tagsIn(parameters: Readonly<Record<string, string>>, type: string): Readonly<Record<string, string>> {
  const prefix = Object.entries(parameters)
    .find(([name, value]) => /^TagSpecification\.\d+\.ResourceType$/.test(name) && value === type)?.[0]
    .replace('ResourceType', 'Tag');
  const tags: Record<string, string> = {};
  for (let index = 1; `${prefix}.${index}.Key` in parameters; index += 1) {
    tags[parameters[`${prefix}.${index}.Key`] ?? ''] = parameters[`${prefix}.${index}.Value`] ?? '';
  }
  return tags;
}

describe('a key of a label', () => {
  it.each<[string, JsonObject, Readonly<Record<string, string>>]>([
    ['key-name', {}, { KeyName: 'nodepool' }],
    ['instance-type', { 'instance-type': 'c5.large' }, { InstanceType: 'c5.large' }],
    ['instance-types', { 'instance-types': ['c5.large', 'm5.large'] }, { InstanceType: 'c5.large' }],
    ['ebs-optimized', { 'ebs-optimized': true }, { EbsOptimized: 'true' }],
    ['volume-type', { 'volume-type': 'gp2' }, { 'BlockDeviceMapping.1.Ebs.VolumeType': 'gp2' }],
    ['volume-size', { 'volume-size': 41 }, { 'BlockDeviceMapping.1.Ebs.VolumeSize': '41' }],
    ['iops', { 'volume-type': 'gp3', iops: 3900 }, { 'BlockDeviceMapping.1.Ebs.Iops': '3900' }],
    ['throughput', { 'volume-type': 'gp3', throughput: 210 }, { 'BlockDeviceMapping.1.Ebs.Throughput': '210' }],
    [
      'kms-key-id',
      { 'kms-key-id': KMS_KEY_ARN },
      { 'BlockDeviceMapping.1.Ebs.KmsKeyId': KMS_KEY_ARN, 'BlockDeviceMapping.1.Ebs.Encrypted': 'true' },
    ],
    ['userdata', { userdata: '#!/bin/sh' }, { UserData: Buffer.from('#!/bin/sh').toString('base64') }],
    [
      'iam-instance-profile by name',
      { 'iam-instance-profile': { name: INSTANCE_PROFILE } },
      { 'IamInstanceProfile.Name': INSTANCE_PROFILE },
    ],
    [
      'iam-instance-profile by ARN',
      { 'iam-instance-profile': { arn: PROFILE_ARN } },
      { 'IamInstanceProfile.Arn': PROFILE_ARN },
    ],
    ['imdsv2: required', { imdsv2: 'required' }, { 'MetadataOptions.HttpTokens': 'required' }],
    ['imdsv2: optional', { imdsv2: 'optional' }, { 'MetadataOptions.HttpTokens': 'optional' }],
    ['use-spot', { 'use-spot': true }, { 'InstanceMarketOptions.MarketType': 'spot' }],
  ])('%s', async (_key, label, expected) => {
    expect(await launchWith([{}, label])).toMatchObject(expected);
  });

  it('use-spot: prefer, and instance-types, are the machine types of the launcher', async () => {
    const test = await provider({}, { 'use-spot': 'prefer', 'instance-types': TYPES });
    const types = test.config.pools.get('main')?.labels.get('small')?.machineTypes ?? [];
    expect(types).toEqual(['m5.large (spot)', 'm6i.large (spot)', 'm5.large', 'm6i.large']);
    for (const [index, machineType] of types.entries()) {
      await test.launch(`000000000${index}`, { machineType });
      const { InstanceType, 'InstanceMarketOptions.MarketType': market } = sent('RunInstances');
      expect([InstanceType, market]).toEqual([TYPES[index % 2], index < 2 ? 'spot' : undefined]);
    }
  });

  it('without its optional keys leaves the settings of the image and the account', async () => {
    const parameters = await launchWith([]);
    const optional =
      /^(UserData|IamInstanceProfile|MetadataOptions|InstanceMarketOptions|Placement)|Ebs\.(?!Delete|Snapshot)/;
    expect(Object.keys(parameters).filter((name) => optional.test(name))).toEqual([]);
  });

  it.each(['instance', 'volume', 'network-interface'])('tags and dynamic-tags, of the %s', async (type) => {
    const parameters = await launchWith([
      {},
      { tags: { team: 'ci' }, 'dynamic-tags': { tenant: 'of {request.tenant_name}' } },
    ]);
    expect(tagsIn(parameters, type)).toMatchObject({ team: 'ci', tenant: 'of acme', nodepool_node_id: '0000000001' });
  });

  it('dedicated-host', async () => {
    const [zone = ''] = Object.keys(open.cloud.subnets);
    const parameters = await launchWith([{}, { 'dedicated-host': true }, { 'availability-zone': zone }]);
    const [host] = open.cloud.inspect.hosts();
    expect(parameters).toMatchObject({ 'Placement.Tenancy': 'host', 'Placement.HostId': host?.id });
    expect(sent('AllocateHosts')).toMatchObject({ InstanceType: 'm5.large', AvailabilityZone: zone });
    expect(host?.tags['nodepool_node_id']).toBe('0000000001');
  });

  it('host-key-checking, else that of the pool, else that of the provider', async () => {
    const off: JsonObject = { 'host-key-checking': false };
    const on: JsonObject = { 'host-key-checking': true };
    for (const [expected, ...change] of [
      [true],
      [false, off],
      [true, off, {}, on],
      [false, on, {}, off],
      [false, on, off, on],
    ] as const) {
      const { config } = new TestProvider(open, section(open, ...(change as Change)));
      expect(config.pools.get('main')?.labels.get('small')?.hostKeyChecking).toBe(expected);
    }
  });
});

describe('a fleet', () => {
  it.each([
    ['prioritized', 'capacity-optimized-prioritized'],
    ['price-capacity-optimized', 'price-capacity-optimized'],
    ['capacity-optimized', 'capacity-optimized'],
    ['diversified', 'diversified'],
    ['lowest-price', 'lowest-price'],
  ])('of spot instances has the allocation-strategy %s', async (strategy, expected) => {
    const fleet = { 'instance-types': TYPES, 'allocation-strategy': strategy };
    await (await provider({}, { fleet, 'use-spot': true })).launch();
    expect(sent('CreateFleet')).toMatchObject({
      'SpotOptions.AllocationStrategy': expected,
      'TargetCapacitySpecification.DefaultTargetCapacityType': 'spot',
      'LaunchTemplateConfigs.1.Overrides.1.InstanceType': 'm5.large',
      'LaunchTemplateConfigs.1.Overrides.2.InstanceType': 'm6i.large',
    });
  });

  it.each(['prioritized', 'lowest-price'])('on demand has the allocation-strategy %s', async (strategy) => {
    const fleet = { 'instance-types': TYPES, 'allocation-strategy': strategy };
    await (await provider({}, { fleet })).launch();
    expect(sent('CreateFleet')).toMatchObject({
      'OnDemandOptions.AllocationStrategy': strategy,
      'TargetCapacitySpecification.DefaultTargetCapacityType': 'on-demand',
    });
    const priority = sent('CreateFleet')['LaunchTemplateConfigs.1.Overrides.2.Priority'];
    expect(priority).toBe(strategy === 'prioritized' ? '1' : undefined);
  });

  it('has the settings of its label and pool', async () => {
    const { subnets, securityGroups } = open.cloud;
    const label = {
      fleet: { 'instance-types': TYPES, 'allocation-strategy': 'lowest-price' },
      'ebs-optimized': true,
      'volume-size': 41,
      'kms-key-id': KMS_KEY_ARN,
      userdata: '#!/bin/sh',
      'iam-instance-profile': { name: INSTANCE_PROFILE },
      imdsv2: 'required',
      tags: { team: 'ci' },
    };
    const pool = {
      'subnet-ids': Object.values(subnets).slice(1, 3),
      'security-group-ids': [...securityGroups],
      'public-ipv4': false,
      'public-ipv6': true,
    };
    await (await provider({}, label, pool)).launch();
    expect(sent('CreateLaunchTemplate')).toMatchObject({
      'LaunchTemplateData.EbsOptimized': 'true',
      'LaunchTemplateData.BlockDeviceMapping.1.DeviceName': '/dev/xvda',
      'LaunchTemplateData.BlockDeviceMapping.1.Ebs.VolumeSize': '41',
      'LaunchTemplateData.BlockDeviceMapping.1.Ebs.KmsKeyId': KMS_KEY_ARN,
      'LaunchTemplateData.UserData': Buffer.from('#!/bin/sh').toString('base64'),
      'LaunchTemplateData.IamInstanceProfile.Name': INSTANCE_PROFILE,
      'LaunchTemplateData.MetadataOptions.HttpTokens': 'required',
      'LaunchTemplateData.KeyName': 'nodepool',
    });
    const [instance] = open.cloud.inspect.instances();
    expect(instance).toMatchObject({ publicIp: undefined, securityGroupIds: [...securityGroups], ebsOptimized: true });
    expect(instance?.ipv6).toHaveLength(1);
    expect(pool['subnet-ids']).toContain(instance?.subnetId);
    expect(instance?.tags).toMatchObject({ team: 'ci' });
  });
});

describe('a key of a pool', () => {
  const network = (name: string): string => `NetworkInterface.1.${name}`;

  it('availability-zone', async () => {
    const zone = Object.keys(open.cloud.subnets)[2] ?? '';
    expect(await launchWith([{}, {}, { 'availability-zone': zone }])).toMatchObject({
      'Placement.AvailabilityZone': zone,
    });
  });

  it('subnet-id', async () => {
    const subnet = Object.values(open.cloud.subnets)[2] ?? '';
    expect(await launchWith([{}, {}, { 'subnet-id': subnet }])).toMatchObject({ [network('SubnetId')]: subnet });
  });

  it('subnet-ids, of the pool or the provider: the first one, or that of the zone of the launch', async () => {
    const [first = ['', ''], second = ['', '']] = Object.entries(open.cloud.subnets);
    const keys = { 'subnet-ids': [first[1], second[1]] };
    for (const change of [[{}, {}, keys], [keys]] satisfies Change[]) {
      expect(await launchWith(change)).toMatchObject({ [network('SubnetId')]: first[1] });
      const elsewhere = await launchWith(change, { availabilityZone: second[0] });
      expect(elsewhere).toMatchObject({ [network('SubnetId')]: second[1] });
    }
    const test = await provider({}, {}, keys);
    const zones = await test.end(
      test.provider.getAvailabilityZones?.('main', test.call()) ?? Promise.resolve(undefined),
    );
    expect(zones).toEqual([first[0], second[0]]);
  });

  it('security-group-id, or several security-group-ids', async () => {
    const [one, two] = open.cloud.securityGroups;
    const single = await launchWith([{}, {}, { 'security-group-id': two }]);
    expect(single).toMatchObject({ [network('SecurityGroupId.1')]: two });
    const several = await launchWith([{}, {}, { 'security-group-ids': [two, one] }]);
    expect(several).toMatchObject({ [network('SecurityGroupId.1')]: two, [network('SecurityGroupId.2')]: one });
  });

  it.each<[string, string, ...Change]>([
    ['the default', 'true'],
    ['of the provider', 'false', { 'public-ipv4': false }],
    ['of the pool', 'false', { 'public-ipv4': true }, {}, { 'public-ipv4': false }],
    ['of the old name', 'false', {}, {}, { 'public-ipv4': true, 'public-ip-address': false }],
  ])('public-ipv4: %s', async (_from, expected, ...change) => {
    expect(await launchWith(change)).toMatchObject({ [network('AssociatePublicIpAddress')]: expected });
  });

  it.each<[string, string | undefined, ...Change]>([
    ['the default', undefined],
    ['of the provider', '1', { 'public-ipv6': true }],
    ['of the pool', undefined, { 'public-ipv6': true }, {}, { 'public-ipv6': false }],
  ])('public-ipv6: %s', async (_from, expected, ...change) => {
    expect((await launchWith(change))[network('Ipv6AddressCount')]).toBe(expected);
  });

  it('the addresses are tried in the order public IPv4, IPv6, private IPv4', async () => {
    const addressOf = async (...change: Change): Promise<readonly unknown[]> => {
      const { interfaceIp, publicIpv4, publicIpv6, privateIpv4 } = await launchNext(await provider(...change));
      return [publicIpv4, publicIpv6, privateIpv4].map((address) => address !== undefined && address === interfaceIp);
    };
    expect(await addressOf({ 'public-ipv6': true })).toEqual([true, false, false]);
    expect(await addressOf({ 'public-ipv4': false, 'public-ipv6': true })).toEqual([false, true, false]);
    expect(await addressOf({ 'public-ipv4': false })).toEqual([false, false, true]);
    expect(await addressOf({ 'use-internal-ip': true })).toEqual([false, false, true]);
    expect(await addressOf({ 'use-internal-ip': true }, {}, { 'use-internal-ip': false })).toEqual([
      true,
      false,
      false,
    ]);
  });

  it('max-servers, max-cores, max-ram and max-resources, else those of the provider', async () => {
    const ofProvider = { 'max-servers': 5, 'max-cores': 10, 'max-ram': 9000, 'max-resources': { 'L-1216C47A': 64 } };
    const limitsOf = (...change: Change): unknown => {
      const pool = new TestProvider(open, section(open, ...change)).config.pools.get('main');
      return [pool?.maxServers, pool?.limits];
    };
    const without = { 'max-servers': null };
    expect(limitsOf(ofProvider, {}, without)).toEqual([5, { cores: 10, ram: 9000, 'L-1216C47A': 64 }]);
    expect(
      limitsOf(ofProvider, {}, { 'max-servers': 4, 'max-cores': 8, 'max-resources': { 'L-1216C47A': 2 } }),
    ).toEqual([4, { cores: 8, ram: 9000, 'L-1216C47A': 2 }]);
  });
});

describe('a cloud image', () => {
  const filters = [{ name: 'name', values: ['acme-*'] }];
  const image = (change: JsonObject): JsonObject => ({ name: 'amazon', username: 'admin', ...change });

  it('image-id', async () => {
    const id = open.cloud.addImage({ name: 'acme-1' });
    expect(await launchWith([{ 'cloud-images': [image({ 'image-id': id })] }])).toMatchObject({ ImageId: id });
  });

  it('image-filters: the newest image', async () => {
    const newest = open.cloud.addImage({ name: 'acme-2', createdAt: open.time.clock.now() });
    open.cloud.addImage({ name: 'acme-1', createdAt: 0 });
    open.cloud.addImage({ name: 'fedora', createdAt: open.time.clock.now() });
    const change = [{ 'cloud-images': [image({ 'image-filters': filters })] }] satisfies Change;
    expect(await launchWith(change)).toMatchObject({ ImageId: newest });
  });

  it('owners: an image of a stranger is not used', async () => {
    const ours = open.cloud.addImage({ name: 'acme-1', createdAt: 0 });
    open.cloud.addImage({ name: 'acme-2', ownerId: STRANGER, isPublic: true });
    const change = [{ 'cloud-images': [image({ 'image-filters': filters, owners: ['self'] })] }] satisfies Change;
    expect(await launchWith(change)).toMatchObject({ ImageId: ours });
  });

  it.each([
    ['logs a warning without owners', {}, 1],
    ['logs none with owners', { owners: ['self'] }, 0],
  ])('%s', async (_what, owners, expected) => {
    const warnings: string[] = [];
    const warn = (message: string): void => {
      warnings.push(message);
    };
    const none = (): void => undefined;
    const log: Logger = { debug: none, info: none, warn, error: none, with: () => log, named: () => log };
    const used = section(open, { 'cloud-images': [image({ 'image-filters': filters, ...owners })] });
    const { clock } = open.time;
    const test = new TestProvider(open, used);
    const own = awsDriver(open.env).getProvider(test.config);
    await test.end(
      own.start({
        ...{ clock, random: seededRandom(1), log, tasks: new TaskSupervisor(clock, none) },
        ...{ nodeSupply: { apply: none }, loginScan: undefined, onApiCall: none },
      }),
    );
    own.stop();
    expect(warnings.filter((message) => message.includes('"owners"'))).toHaveLength(expected);
  });

  it('username, connection-type, connection-port, python-path and shell-type are those of the nodes', () => {
    const keys = {
      'image-id': 'ami-1',
      'connection-type': 'winrm',
      'connection-port': 5999,
      'python-path': '/bin/python',
      'shell-type': 'cmd',
    };
    const { config } = new TestProvider(open, section(open, { 'cloud-images': [image(keys)] }));
    expect(config.pools.get('main')?.labels.get('small')?.connection).toMatchObject({
      username: 'admin',
      type: 'winrm',
      port: 5999,
      pythonPath: '/bin/python',
      shellType: 'cmd',
    });
  });
});

describe('a key of a disk image', () => {
  it.each<[string, JsonObject, Readonly<Record<string, string>>]>([
    ['architecture', { architecture: 'arm64' }, { Architecture: 'arm64' }],
    ['ena-support', { 'ena-support': false }, { EnaSupport: 'false' }],
    ['imds-support', { 'imds-support': 'v2.0' }, { ImdsSupport: 'v2.0' }],
    ['volume-type', { 'volume-type': 'gp2' }, { 'BlockDeviceMapping.1.Ebs.VolumeType': 'gp2' }],
    ['the default volume-type', {}, { 'BlockDeviceMapping.1.Ebs.VolumeType': 'gp3', EnaSupport: 'true' }],
    ['volume-size', { 'volume-size': 21 }, { 'BlockDeviceMapping.1.Ebs.VolumeSize': '21' }],
    ['iops', { iops: 4100, 'volume-size': 10 }, { 'BlockDeviceMapping.1.Ebs.Iops': '4100' }],
    ['throughput', { throughput: 210 }, { 'BlockDeviceMapping.1.Ebs.Throughput': '210' }],
  ])('%s', async (_key, keys, expected) => {
    const file = join(folder, 'disk.raw');
    writeFileSync(file, Buffer.alloc(1000, 'disk'));
    const test = await provider({ diskimages: [{ name: 'built', 'import-method': 'ebs-direct', ...keys }] });
    await test.upload(file, { image: 'built' });
    expect(sent('RegisterImage')).toMatchObject(expected);
  });
});

describe('a key of the provider', () => {
  it('region-name', async () => {
    const cloudImage = { name: 'amazon', username: 'u', 'image-filters': [{ name: 'name', values: ['al2023-*'] }] };
    const test = await provider({ 'region-name': 'us-west-2', 'cloud-images': [cloudImage] });
    await test.end(test.provider.listNodes(test.call()));
    expect(new Set(open.cloud.calls.last().map(({ region }) => region))).toEqual(new Set(['us-west-2']));
  });

  it('endpoint-url: all services have its address', async () => {
    await provider({ 'endpoint-url': `${open.cloud.url}/`, 'role-arn': ROLE_ARN });
    expect(open.cloud.calls.count('sts.AssumeRole')).toBe(1);
    expect(open.cloud.calls.count('ec2')).toBeGreaterThan(0);
  });

  it('profile-name: the credentials of that profile', async () => {
    const { accessKeyId, secretAccessKey } = open.cloud.credentials;
    const file = join(folder, 'credentials');
    const wrong = '[default]\naws_access_key_id = AKIAWRONG\naws_secret_access_key = wrong\n';
    writeFileSync(
      file,
      `${wrong}[ci]\naws_access_key_id = ${accessKeyId}\naws_secret_access_key = ${secretAccessKey}\n`,
    );
    const as = (change: JsonObject): TestProvider =>
      new TestProvider({ ...open, env: { AWS_SHARED_CREDENTIALS_FILE: file } }, section(open, change));
    const used = as({ 'profile-name': 'ci' });
    started.push(used);
    await used.start();
    await used.launch();
    const other = as({});
    started.push(other);
    await other.end(other.provider.listNodes(other.call()).catch(() => []));
    expect(await failureOf(other.start())).toMatchObject({ code: 'auth' });
  });

  it('role-arn: calls are those of the role', async () => {
    const test = await provider({ 'role-arn': ROLE_ARN });
    open.cloud.revokeCredentials(true);
    await test.launch();
    expect(open.cloud.calls.count('sts.AssumeRole')).toBe(1);
  });

  it('web-identity-token-file: the file is read again for each login', async () => {
    const file = join(folder, 'token');
    writeFileSync(file, open.cloud.webIdentityToken());
    const test = await provider({ 'role-arn': ROLE_ARN, 'web-identity-token-file': file });
    expect(open.cloud.calls.count('sts.AssumeRoleWithWebIdentity')).toBe(1);
    const renewed = open.cloud.webIdentityToken();
    writeFileSync(file, renewed);
    await open.time.until(() => false, 3_700_000);
    await test.launch();
    const login = open.cloud.calls.last().findLast(({ operation }) => operation === 'sts.AssumeRoleWithWebIdentity');
    expect(login?.parameters.get('WebIdentityToken')).toBe(renewed);
  });

  it('rate: calls that change something take their turns', async () => {
    const test = await provider({ rate: 2 });
    await test.launch('0000000001');
    const begun = open.time.clock.now();
    for (const id of ['0000000002', '0000000003', '0000000004']) await test.launch(id);
    expect(open.time.clock.now() - begun).toBeGreaterThanOrEqual(1000);
  });

  it('boot-timeout, launch-timeout, launch-retries and their defaults', () => {
    const keys = { 'boot-timeout': 30, 'launch-timeout': 600, 'launch-retries': 2 };
    const of = (change: JsonObject): unknown => {
      const { config } = new TestProvider(open, section(open, change));
      return [config.bootTimeoutMs, config.launchTimeoutMs, config.launchRetries];
    };
    expect(of(keys)).toEqual([30_000, 600_000, 2]);
    expect(of({})).toEqual([180_000, 3_600_000, 3]);
  });
});

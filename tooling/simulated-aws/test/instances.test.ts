/** The life of instances: launches, states, lists, deletion. */

import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import {
  CreateTagsCommand,
  CreateVolumeCommand,
  DescribeInstancesCommand,
  DescribeNetworkInterfacesCommand,
  DescribeTagsCommand,
  DescribeVolumesCommand,
  DeleteVolumeCommand,
  AllocateAddressCommand,
  AssociateAddressCommand,
  ReleaseAddressCommand,
  TerminateInstancesCommand,
  type RunInstancesCommandInput,
  type Tag,
} from '@aws-sdk/client-ec2';
import { KMS_KEY_ARN } from '../src/index.js';
import { codeOf, Fixture, messageOf } from './support/fixture.js';

const UNKNOWN = 'i-0123456789abcdef0';
let aws: Fixture;

beforeEach(async () => {
  aws = await Fixture.start({ pendingMs: 20_000, addressMs: 5000, shuttingDownMs: 30_000 });
});

afterEach(() => aws.close());

function tagsOf(count: number): Tag[] {
  return Array.from({ length: count }, (_, index) => ({ Key: `key-${index}`, Value: 'v' }));
}

describe('an instance', () => {
  it('is pending, running, shows its address later, is shutting down, and terminated for an hour', async () => {
    const id = await aws.runOne();
    const look = async (): Promise<unknown> => (await aws.list()).map((one) => [one.State?.Name, one.PublicIpAddress]);
    expect(await look()).toEqual([['pending', undefined]]);
    await aws.clock.advance(20_000);
    expect(await look()).toEqual([['running', undefined]]);
    await aws.clock.advance(5000);
    expect(await look()).toEqual([['running', '198.18.0.0']]);
    await aws.ec2.send(new TerminateInstancesCommand({ InstanceIds: [id] }));
    expect(await look()).toEqual([['shutting-down', undefined]]);
    expect(aws.cloud.inspect.volumes()).toHaveLength(1);
    await aws.clock.advance(30_000);
    expect(await look()).toEqual([['terminated', undefined]]);
    expect(aws.cloud.inspect.volumes()).toEqual([]);
    await aws.clock.advance(3_599_000);
    expect(await aws.list()).toHaveLength(1);
    await aws.clock.advance(1000);
    expect(await aws.list()).toEqual([]);
  });

  it('is unknown at first, and its states are old, if reads lag', async () => {
    aws.cloud.configure({ readLagMs: 3000 });
    const id = await aws.runOne({ ClientToken: 'a' });
    const describeIt = (): Promise<unknown> => aws.ec2.send(new DescribeInstancesCommand({ InstanceIds: [id] }));
    expect(await codeOf(describeIt())).toBe('InvalidInstanceID.NotFound');
    const tag = new CreateTagsCommand({ Resources: [id], Tags: [{ Key: 'a', Value: 'b' }] });
    expect(await codeOf(aws.ec2.send(tag))).toBe('InvalidInstanceID.NotFound');
    expect(await aws.list()).toEqual([]);
    expect(await aws.runOne({ ClientToken: 'a' })).toBe(id);
    await aws.clock.advance(3000);
    expect(await codeOf(describeIt())).toBe('accepted');
    await aws.clock.advance(17_000);
    expect((await aws.list()).map(({ State }) => State?.Name)).toEqual(['pending']);
    expect(aws.cloud.inspect.instances()).toMatchObject([{ id, state: 'running' }]);
  });

  it('sees a lag of single calls', async () => {
    await aws.runOne();
    aws.cloud.faults.add({ on: 'ec2.DescribeInstances', fault: { kind: 'lag', ms: 1000 } });
    expect(await aws.list()).toEqual([]);
    expect(await aws.list()).toHaveLength(1);
  });

  it('keeps volumes and interfaces without DeleteOnTermination', async () => {
    const subnet = aws.cloud.subnets['us-east-1a'];
    const id = await aws.runOne({
      NetworkInterfaces: [{ DeviceIndex: 0, SubnetId: subnet, DeleteOnTermination: false }],
      BlockDeviceMappings: [
        { DeviceName: '/dev/xvda', Ebs: { DeleteOnTermination: false } },
        { DeviceName: '/dev/sdf', Ebs: { VolumeSize: 10, DeleteOnTermination: true } },
      ],
    });
    expect(aws.cloud.inspect.volumes()).toHaveLength(2);
    await aws.ec2.send(new TerminateInstancesCommand({ InstanceIds: [id] }));
    await aws.clock.advance(30_000);
    const [volume] = aws.cloud.inspect.volumes();
    expect(volume).toMatchObject({ state: 'available', sizeGib: 8, instanceId: undefined });
    expect(aws.cloud.inspect.networkInterfaces()).toMatchObject([{ instanceId: undefined }]);
    await aws.ec2.send(new DeleteVolumeCommand({ VolumeId: volume?.id }));
    const { Volumes } = await aws.ec2.send(new DescribeVolumesCommand({}));
    expect(Volumes).toEqual([]);
  });

  it('has an address of the account, which its end leaves', async () => {
    const id = await aws.runOne();
    const address = await aws.ec2.send(new AllocateAddressCommand({ Domain: 'vpc' }));
    const { AllocationId } = address;
    await aws.ec2.send(new AssociateAddressCommand({ AllocationId, InstanceId: id }));
    expect(await codeOf(aws.ec2.send(new ReleaseAddressCommand({ AllocationId })))).toBe('InvalidIPAddress.InUse');
    await aws.ec2.send(new TerminateInstancesCommand({ InstanceIds: [id] }));
    await aws.clock.advance(30_000);
    expect(aws.cloud.inspect.addresses()).toMatchObject([{ id: AllocationId, instanceId: undefined }]);
    await aws.ec2.send(new ReleaseAddressCommand({ AllocationId }));
    expect(aws.cloud.inspect.addresses()).toEqual([]);
  });

  it('ends instead of running, with a reason, if its launch fails later', async () => {
    const fault = {
      kind: 'launch-failure',
      code: 'Server.InternalError',
      message: 'Internal error on launch',
    } as const;
    aws.cloud.faults.add({ on: 'ec2.RunInstances', fault });
    await aws.runOne();
    await aws.runOne({
      BlockDeviceMappings: [{ DeviceName: '/dev/xvda', Ebs: { Encrypted: true, KmsKeyId: `${KMS_KEY_ARN}0` } }],
    });
    await aws.clock.advance(50_000);
    const ends = (await aws.list()).map((one) => [one.State?.Name, one.StateReason?.Code]);
    expect(ends).toEqual([
      ['terminated', 'Server.InternalError'],
      ['terminated', 'Client.InvalidKMSKey.InvalidState'],
    ]);
  });

  it('can be copied and forgotten', async () => {
    const tags = [{ Key: 'owner', Value: 'ci' }];
    const TagSpecifications = [{ ResourceType: 'instance', Tags: tags }] as const;
    const id = await aws.runOne({ ClientToken: 'a', TagSpecifications: [...TagSpecifications] });
    const copy = aws.cloud.duplicate(id, { owner: undefined, other: 'x' });
    expect((await aws.list()).map((one) => [one.InstanceId, one.ClientToken, one.Tags])).toEqual([
      [id, 'a', tags],
      [copy, '', [{ Key: 'other', Value: 'x' }]],
    ]);
    expect(aws.cloud.inspect.volumes().map(({ instanceId }) => instanceId)).toEqual([id, copy]);
    aws.cloud.forgetInstance(id);
    expect((await aws.list()).map((one) => one.InstanceId)).toEqual([copy]);
  });
});

describe('a launch', () => {
  it('is idempotent by its client token, unless parameters change', async () => {
    const first = await aws.run({ ClientToken: 'a', MaxCount: 3 });
    const again = await aws.run({ ClientToken: 'a', MaxCount: 3 });
    expect(again.map((one) => one.InstanceId)).toEqual(first.map((one) => one.InstanceId));
    expect(first.map((one) => one.AmiLaunchIndex)).toEqual([0, 1, 2]);
    expect(await codeOf(aws.run({ ClientToken: 'a', MaxCount: 2 }))).toBe('IdempotentParameterMismatch');
    expect(await codeOf(aws.run({ ClientToken: 'x'.repeat(65) }))).toBe('InvalidParameterValue');
    expect(aws.cloud.inspect.instances()).toHaveLength(3);
  });

  it('cannot be repeated after the end of all its instances', async () => {
    const [one, two] = await aws.run({ ClientToken: 'a', MaxCount: 2 });
    const terminate = (id = ''): Promise<unknown> => aws.ec2.send(new TerminateInstancesCommand({ InstanceIds: [id] }));
    await terminate(one?.InstanceId);
    await aws.clock.advance(30_000);
    const again = await aws.run({ ClientToken: 'a', MaxCount: 2 });
    expect(again.map(({ State }) => State?.Name)).toEqual(['terminated', 'running']);
    await terminate(two?.InstanceId);
    await aws.clock.advance(30_000);
    expect(await codeOf(aws.run({ ClientToken: 'a', MaxCount: 2 }))).toBe('IdempotentInstanceTerminated');
  });

  it('does not use up its token if it fails', async () => {
    const limit = aws.cloud.capacity.limit({}, 0);
    expect(await codeOf(aws.run({ ClientToken: 'a' }))).toBe('InsufficientInstanceCapacity');
    limit.remove();
    expect(await aws.run({ ClientToken: 'a' })).toHaveLength(1);
  });

  const subnet = (): string => aws.cloud.subnets['us-east-1a'] ?? '';
  const ebs = (Ebs: object): Partial<RunInstancesCommandInput> => ({
    BlockDeviceMappings: [{ DeviceName: '/dev/xvda', Ebs }],
  });
  const wrong: readonly (readonly [what: string, code: string, () => Partial<RunInstancesCommandInput>])[] = [
    ['a count of 0', 'InvalidParameterValue', () => ({ MinCount: 0 })],
    ['a minimum above the maximum', 'InvalidParameterValue', () => ({ MinCount: 2 })],
    ['an unknown type', 'InvalidParameterValue', () => ({ InstanceType: 'm5.tiny' as 'm5.large' })],
    ['an image of another architecture', 'InvalidParameterValue', () => ({ InstanceType: 'm7g.large' })],
    ['a malformed image', 'InvalidAMIID.Malformed', () => ({ ImageId: 'ami-1' })],
    ['an unknown image', 'InvalidAMIID.NotFound', () => ({ ImageId: 'ami-0123456789abcdef0' })],
    ['an unknown key pair', 'InvalidKeyPair.NotFound', () => ({ KeyName: 'other' })],
    ['an unknown subnet', 'InvalidSubnetID.NotFound', () => ({ SubnetId: 'subnet-0123456789abcdef0' })],
    ['an unknown group', 'InvalidGroup.NotFound', () => ({ SecurityGroupIds: ['sg-0123456789abcdef0'] })],
    ['an unknown zone', 'InvalidParameterValue', () => ({ Placement: { AvailabilityZone: 'us-east-1x' } })],
    [
      ...(['a subnet of another zone', 'InvalidParameterValue'] as const),
      () => ({ SubnetId: subnet(), Placement: { AvailabilityZone: 'us-east-1b' } }),
    ],
    [
      ...(['a subnet beside interfaces', 'InvalidParameterCombination'] as const),
      () => ({ SubnetId: subnet(), NetworkInterfaces: [{ DeviceIndex: 0, SubnetId: subnet() }] }),
    ],
    ['an interface without index', 'InvalidParameterValue', () => ({ NetworkInterfaces: [{ SubnetId: subnet() }] })],
    ['an unknown profile', 'InvalidParameterValue', () => ({ IamInstanceProfile: { Name: 'other' } })],
    [
      ...(['a profile with name and ARN', 'InvalidParameterCombination'] as const),
      () => ({ IamInstanceProfile: { Name: 'a', Arn: 'b' } }),
    ],
    ['user data that is not base64', 'InvalidUserData.Malformed', () => ({ UserData: '#!/bin/sh' })],
    [
      ...(['too long user data', 'InvalidParameterValue'] as const),
      () => ({ UserData: Buffer.alloc(16_385).toString('base64') }),
    ],
    ['a volume below its snapshot', 'InvalidBlockDeviceMapping', () => ebs({ VolumeSize: 7 })],
    ['a hard disk to boot from', 'BootForVolumeTypeUnsupported', () => ebs({ VolumeSize: 200, VolumeType: 'st1' })],
    ['IOPS of gp2', 'InvalidParameterCombination', () => ebs({ VolumeType: 'gp2', Iops: 3000 })],
    ['io2 without IOPS', 'MissingParameter', () => ebs({ VolumeType: 'io2' })],
    ['throughput above that of the IOPS', 'InvalidParameterCombination', () => ebs({ Throughput: 900 })],
    ['no encryption of a snapshot', 'InvalidBlockDeviceMapping', () => ebs({ Encrypted: false })],
    ['an unknown type of volume', 'InvalidParameterValue', () => ebs({ VolumeType: 'gp9' })],
    ['too many hops', 'InvalidParameterValue', () => ({ MetadataOptions: { HttpPutResponseHopLimit: 65 } })],
    ['51 tags', 'TagLimitExceeded', () => ({ TagSpecifications: [{ ResourceType: 'instance', Tags: tagsOf(51) }] })],
    [
      ...(['tags of a subnet', 'InvalidParameterValue'] as const),
      () => ({ TagSpecifications: [{ ResourceType: 'subnet', Tags: tagsOf(1) }] }),
    ],
    [
      ...(['a Mac without a host', 'Unsupported'] as const),
      () => ({ InstanceType: 'mac2.metal', ImageId: macImage() }),
    ],
    [
      ...(['a spot instance of a type without spot', 'InvalidParameterCombination'] as const),
      () => ({ InstanceType: 'u7i-12tb.224xlarge', InstanceMarketOptions: { MarketType: 'spot' } }),
    ],
    [
      'a type that the zone does not have',
      'Unsupported',
      () => ({ InstanceType: 'hpc6a.48xlarge', SubnetId: aws.cloud.subnets['us-east-1f'] }),
    ],
    ['a placement group', 'UnsupportedOperation', () => ({ Placement: { GroupName: 'group' } })],
    ['too many cores', 'InvalidParameterValue', () => ({ CpuOptions: { CoreCount: 2, ThreadsPerCore: 1 } })],
    [
      ...(['credits of a type without them', 'InvalidParameterCombination'] as const),
      () => ({ CreditSpecification: { CpuCredits: 'unlimited' } }),
    ],
    ['parameters of other features', 'UnsupportedOperation', () => ({ HibernationOptions: { Configured: true } })],
  ];

  function macImage(): string {
    return aws.cloud.addImage({ name: 'mac', architecture: 'arm64_mac' });
  }

  it.each(wrong)('with %s is refused with %s', async (_what, code, changes) => {
    expect(await codeOf(aws.run(changes()))).toBe(code);
    expect(aws.cloud.inspect.instances()).toEqual([]);
    expect(aws.cloud.inspect.volumes()).toEqual([]);
  });

  it('on the hypervisor Nitro needs an image with ENA', async () => {
    const old = aws.cloud.addImage({ name: 'old', enaSupport: false });
    expect(await codeOf(aws.run({ ImageId: old }))).toBe('InvalidParameterCombination');
    expect(await aws.run({ ImageId: old, InstanceType: 't2.micro' })).toHaveLength(1);
  });

  it('can only use images that the account sees', async () => {
    const ownerId = '999988887777';
    const hidden = aws.cloud.addImage({ name: 'hidden', ownerId });
    const open = aws.cloud.addImage({ name: 'open', ownerId, isPublic: true });
    expect(await codeOf(aws.run({ ImageId: hidden }))).toBe('InvalidAMIID.NotFound');
    expect(await codeOf(aws.run({ ImageId: open }))).toBe('accepted');
  });
});

describe('a list', () => {
  it('has pages that neither repeat nor omit instances', async () => {
    await aws.run({ MinCount: 12, MaxCount: 12 });
    const seen: unknown[] = [];
    let NextToken: string | undefined;
    do {
      const page = await aws.ec2.send(new DescribeInstancesCommand({ MaxResults: 5, NextToken }));
      seen.push(
        ...(page.Reservations ?? []).flatMap(({ Instances = [] }) => Instances.map((one) => one.AmiLaunchIndex)),
      );
      ({ NextToken } = page);
      // A deletion between two pages shifts no other entry.
      const [first] = aws.cloud.inspect.instances();
      aws.cloud.forgetInstance(first?.id ?? '');
    } while (NextToken !== undefined);
    expect(seen).toEqual(Array.from({ length: 12 }, (_, index) => index));
  });

  it('refuses wrong filters and pages', async () => {
    const ask = (input: object): Promise<string> => codeOf(aws.ec2.send(new DescribeInstancesCommand(input)));
    const id = await aws.runOne();
    expect(await ask({ MaxResults: 4 })).toBe('InvalidParameterValue');
    expect(await ask({ MaxResults: 5, InstanceIds: [id] })).toBe('InvalidParameterCombination');
    expect(await ask({ NextToken: 'x' })).toBe('InvalidNextToken');
    expect(await ask({ Filters: [{ Name: 'colour', Values: ['red'] }] })).toBe('InvalidParameterValue');
    const Values = Array.from({ length: 201 }, (_, index) => `a${index}`);
    expect(await ask({ Filters: [{ Name: 'instance-id', Values }] })).toBe('FilterLimitExceeded');
  });

  it('filters by tags, states and wildcards', async () => {
    const TagSpecifications = [{ ResourceType: 'instance' as const, Tags: [{ Key: 'pool', Value: 'a*b' }] }];
    const id = await aws.runOne({ TagSpecifications });
    await aws.runOne();
    const find = async (Name: string, ...Values: string[]): Promise<unknown> => {
      const { Reservations = [] } = await aws.ec2.send(new DescribeInstancesCommand({ Filters: [{ Name, Values }] }));
      return Reservations.flatMap(({ Instances = [] }) => Instances.map((one) => one.InstanceId));
    };
    expect(await find('tag:pool', String.raw`a\*b`)).toEqual([id]);
    expect(await find('tag:pool', 'a?b', 'c')).toEqual([id]);
    expect(await find('tag:pool', 'ab')).toEqual([]);
    expect(await find('tag-key', 'pool')).toEqual([id]);
    expect(await find('instance-state-name', 'pending')).toHaveLength(2);
    expect(await find('instance-state-name', 'running')).toEqual([]);
  });
});

describe('tags', () => {
  it('keep the limits of EC2', async () => {
    const id = await aws.runOne();
    const tag = (...Tags: Tag[]): Promise<string> =>
      codeOf(aws.ec2.send(new CreateTagsCommand({ Resources: [id], Tags })));
    expect(await tag({ Key: 'aws:x', Value: '' })).toBe('InvalidParameterValue');
    expect(await tag({ Key: 'x'.repeat(129), Value: '' })).toBe('InvalidParameterValue');
    expect(await tag({ Key: 'x', Value: 'v'.repeat(257) })).toBe('InvalidParameterValue');
    expect(await tag({ Key: 'x', Value: '1' }, { Key: 'x', Value: '2' })).toBe('InvalidParameterValue');
    expect(await tag(...tagsOf(50))).toBe('accepted');
    expect(await tag({ Key: 'key-1', Value: 'changed' })).toBe('accepted');
    expect(await tag({ Key: 'one more', Value: '' })).toBe('TagLimitExceeded');
    const Filters = [{ Name: 'value', Values: ['changed'] }];
    const { Tags } = await aws.ec2.send(new DescribeTagsCommand({ Filters }));
    expect(Tags).toEqual([{ Key: 'key-1', ResourceId: id, ResourceType: 'instance', Value: 'changed' }]);
  });

  it('are on volumes and interfaces from the launch on', async () => {
    const Tags = [{ Key: 'a', Value: 'b' }];
    const types = ['instance', 'volume', 'network-interface'] as const;
    await aws.runOne({ TagSpecifications: types.map((ResourceType) => ({ ResourceType, Tags })) });
    const { Volumes } = await aws.ec2.send(new DescribeVolumesCommand({}));
    const { NetworkInterfaces } = await aws.ec2.send(new DescribeNetworkInterfacesCommand({}));
    expect([Volumes?.[0]?.Tags, NetworkInterfaces?.[0]?.TagSet]).toEqual([Tags, Tags]);
  });
});

describe('a deletion', () => {
  it('terminates none if one instance is unknown', async () => {
    const id = await aws.runOne();
    const call = aws.ec2.send(new TerminateInstancesCommand({ InstanceIds: [id, UNKNOWN] }));
    expect(await messageOf(call)).toBe(`The instance ID '${UNKNOWN}' does not exist`);
    expect(aws.cloud.inspect.instances()).toMatchObject([{ id, state: 'pending' }]);
  });

  it('respects the protection of instances, and attached volumes', async () => {
    const id = await aws.runOne({ DisableApiTermination: true });
    const terminate = aws.ec2.send(new TerminateInstancesCommand({ InstanceIds: [id] }));
    expect(await codeOf(terminate)).toBe('OperationNotPermitted');
    const [volume] = aws.cloud.inspect.volumes();
    expect(await codeOf(aws.ec2.send(new DeleteVolumeCommand({ VolumeId: volume?.id })))).toBe('VolumeInUse');
  });

  it('of a volume or an instance frees its quota', async () => {
    aws.cloud.setQuota('L-7A658B76', 1);
    const create = (): Promise<string> =>
      codeOf(aws.ec2.send(new CreateVolumeCommand({ AvailabilityZone: 'us-east-1a', Size: 1024, VolumeType: 'gp3' })));
    expect(await create()).toBe('accepted');
    expect(await create()).toBe('VolumeLimitExceeded');
    const [volume] = aws.cloud.inspect.volumes();
    await aws.ec2.send(new DeleteVolumeCommand({ VolumeId: volume?.id }));
    expect(await create()).toBe('accepted');
    await aws.runOne();
    await aws.clock.advance(50_000);
    expect((await aws.list()).map((one) => one.StateReason?.Code)).toEqual(['Client.VolumeLimitExceeded']);
  });
});

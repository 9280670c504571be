/** Operations that drivers need rarely: networks, keys, volumes, attributes, prices. */

import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import {
  AllocateAddressCommand,
  AssociateAddressCommand,
  AttachVolumeCommand,
  CancelSpotInstanceRequestsCommand,
  CopySnapshotCommand,
  CreateFleetCommand,
  CreateLaunchTemplateCommand,
  CreateLaunchTemplateVersionCommand,
  CreateNetworkInterfaceCommand,
  CreateSecurityGroupCommand,
  CreateSnapshotCommand,
  CreateVolumeCommand,
  DeleteFleetsCommand,
  DeleteKeyPairCommand,
  DeleteLaunchTemplateCommand,
  DeleteNetworkInterfaceCommand,
  DeleteSecurityGroupCommand,
  DeleteTagsCommand,
  DescribeAddressesCommand,
  DescribeAvailabilityZonesCommand,
  DescribeImageAttributeCommand,
  DescribeInstanceAttributeCommand,
  DescribeKeyPairsCommand,
  DescribeLaunchTemplatesCommand,
  DescribeLaunchTemplateVersionsCommand,
  DescribeRegionsCommand,
  DescribeSecurityGroupsCommand,
  DescribeSpotPriceHistoryCommand,
  DescribeSubnetsCommand,
  DescribeVpcsCommand,
  DetachVolumeCommand,
  DisassociateAddressCommand,
  EC2Client,
  GetConsoleOutputCommand,
  ImportKeyPairCommand,
  ModifyImageAttributeCommand,
  ModifyInstanceAttributeCommand,
  RebootInstancesCommand,
  StartInstancesCommand,
  StopInstancesCommand,
} from '@aws-sdk/client-ec2';
import { AssumeRoleCommand } from '@aws-sdk/client-sts';
import { ListServicesCommand } from '@aws-sdk/client-service-quotas';
import { KEY_NAME, ROLE_ARN, STRANGER } from '../src/index.js';
import { codeOf, Fixture } from './support/fixture.js';

let aws: Fixture;

beforeEach(async () => {
  aws = await Fixture.start({ resourceMs: 1000 });
});

afterEach(() => aws.close());

describe('a network', () => {
  it('has zones, subnets and groups in each region', async () => {
    const west = new EC2Client(aws.config('us-west-2'));
    const { Regions } = await west.send(new DescribeRegionsCommand({ RegionNames: ['us-west-2'] }));
    expect(Regions).toMatchObject([{ RegionName: 'us-west-2' }]);
    const { AvailabilityZones } = await west.send(new DescribeAvailabilityZonesCommand({}));
    expect(AvailabilityZones?.map(({ ZoneId }) => ZoneId)).toEqual(['usw2-az1', 'usw2-az2', 'usw2-az3', 'usw2-az4']);
    const { Vpcs: [vpc] = [] } = await west.send(new DescribeVpcsCommand({}));
    const Filters = [{ Name: 'vpc-id', Values: [vpc?.VpcId ?? ''] }];
    expect((await west.send(new DescribeSubnetsCommand({ Filters }))).Subnets).toHaveLength(4);
    const { SecurityGroups } = await west.send(new DescribeSecurityGroupsCommand({ Filters }));
    expect(SecurityGroups?.map(({ GroupName }) => GroupName)).toEqual(['default', 'nodepool']);
    west.destroy();
  });

  it('has groups that are deleted unless they are in use', async () => {
    const create = new CreateSecurityGroupCommand({ GroupName: 'ci', Description: 'CI' });
    const { GroupId = '' } = await aws.ec2.send(create);
    expect(await codeOf(aws.ec2.send(create))).toBe('InvalidGroup.Duplicate');
    const SubnetId = aws.cloud.subnets['us-east-1a'];
    const nic = new CreateNetworkInterfaceCommand({ SubnetId, Groups: [GroupId], ClientToken: 'n' });
    const { NetworkInterface } = await aws.ec2.send(nic);
    const { NetworkInterfaceId } = NetworkInterface ?? {};
    expect((await aws.ec2.send(nic)).NetworkInterface?.NetworkInterfaceId).toBe(NetworkInterfaceId);
    const remove = new DeleteSecurityGroupCommand({ GroupId });
    expect(await codeOf(aws.ec2.send(remove))).toBe('DependencyViolation');
    const NetworkInterfaces = [{ DeviceIndex: 0, NetworkInterfaceId }];
    await aws.runOne({ NetworkInterfaces });
    expect(await codeOf(aws.run({ NetworkInterfaces }))).toBe('InvalidNetworkInterface.InUse');
    expect(await codeOf(aws.ec2.send(new DeleteNetworkInterfaceCommand({ NetworkInterfaceId })))).toBe(
      'InvalidParameterValue',
    );
    aws.cloud.endInstance(aws.cloud.inspect.instances()[0]?.id ?? '', 'terminated', 'Client.UserInitiatedShutdown');
    await aws.ec2.send(new DeleteNetworkInterfaceCommand({ NetworkInterfaceId }));
    expect(await codeOf(aws.ec2.send(remove))).toBe('accepted');
  });

  it('has addresses up to their quota', async () => {
    const allocate = (): Promise<string> => codeOf(aws.ec2.send(new AllocateAddressCommand({ Domain: 'vpc' })));
    for (let count = 0; count < 5; count++) expect(await allocate()).toBe('accepted');
    expect(await allocate()).toBe('AddressLimitExceeded');
    const [address] = aws.cloud.inspect.addresses();
    const InstanceId = await aws.runOne();
    const associate = new AssociateAddressCommand({ AllocationId: address?.id, InstanceId });
    const { AssociationId } = await aws.ec2.send(associate);
    const Filters = [{ Name: 'instance-id', Values: [InstanceId] }];
    const { Addresses } = await aws.ec2.send(new DescribeAddressesCommand({ Filters }));
    expect(Addresses).toMatchObject([{ AllocationId: address?.id, AssociationId, PublicIp: address?.publicIp }]);
    expect(aws.cloud.inspect.instances()).toMatchObject([{ publicIp: address?.publicIp }]);
    await aws.ec2.send(new DisassociateAddressCommand({ AssociationId }));
    expect(aws.cloud.inspect.addresses()[0]?.instanceId).toBeUndefined();
  });
});

describe('a key pair', () => {
  it('is imported, listed and deleted', async () => {
    const PublicKeyMaterial = Buffer.from('ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBA= ci');
    const create = new ImportKeyPairCommand({ KeyName: 'ci', PublicKeyMaterial });
    await aws.ec2.send(create);
    expect(await codeOf(aws.ec2.send(create))).toBe('InvalidKeyPair.Duplicate');
    const wrong = new ImportKeyPairCommand({ KeyName: 'x', PublicKeyMaterial: Buffer.from('none') });
    expect(await codeOf(aws.ec2.send(wrong))).toBe('InvalidKey.Format');
    const { KeyPairs } = await aws.ec2.send(new DescribeKeyPairsCommand({}));
    expect(KeyPairs?.map(({ KeyName }) => KeyName)).toEqual([KEY_NAME, 'ci']);
    await aws.ec2.send(new DeleteKeyPairCommand({ KeyName: 'ci' }));
    const ask = new DescribeKeyPairsCommand({ KeyNames: ['ci'] });
    expect(await codeOf(aws.ec2.send(ask))).toBe('InvalidKeyPair.NotFound');
  });
});

describe('a volume', () => {
  it('is created, attached, detached and copied to a snapshot', async () => {
    const create = { AvailabilityZone: 'us-east-1a', Size: 5, VolumeType: 'gp3', ClientToken: 'v' } as const;
    const { VolumeId = '', State } = await aws.ec2.send(new CreateVolumeCommand(create));
    expect(State).toBe('creating');
    const Placement = { AvailabilityZone: 'us-east-1a' };
    const InstanceId = await aws.runOne({ Placement });
    const attach = new AttachVolumeCommand({ VolumeId, InstanceId, Device: '/dev/sdf' });
    expect(await codeOf(aws.ec2.send(attach))).toBe('IncorrectState');
    await aws.clock.advance(1000);
    await aws.ec2.send(attach);
    expect(await codeOf(aws.ec2.send(attach))).toBe('VolumeInUse');
    expect((await aws.list())[0]?.BlockDeviceMappings?.map(({ DeviceName }) => DeviceName)).toEqual([
      '/dev/xvda',
      '/dev/sdf',
    ]);
    await aws.ec2.send(new DetachVolumeCommand({ VolumeId }));
    const root = aws.cloud.inspect.instances()[0]?.volumeIds[0];
    expect(await codeOf(aws.ec2.send(new DetachVolumeCommand({ VolumeId: root })))).toBe('OperationNotPermitted');
    const { SnapshotId } = await aws.ec2.send(new CreateSnapshotCommand({ VolumeId, Description: 'backup' }));
    const west = new EC2Client(aws.config('us-west-2'));
    const copy = new CopySnapshotCommand({ SourceRegion: 'us-east-1', SourceSnapshotId: SnapshotId });
    expect(await codeOf(west.send(copy))).toBe('IncorrectState');
    await aws.clock.advance(1000);
    const copied = await west.send(copy);
    expect(aws.cloud.inspect.snapshots().map(({ region, id }) => [region, id])).toEqual([
      ['us-east-1', SnapshotId],
      ['us-west-2', copied.SnapshotId],
    ]);
    west.destroy();
  });
});

describe('an instance', () => {
  it('stops, starts, reboots, and has attributes and a console', async () => {
    const InstanceId = await aws.runOne();
    const InstanceIds = [InstanceId];
    await aws.ec2.send(new RebootInstancesCommand({ InstanceIds }));
    await aws.ec2.send(new StopInstancesCommand({ InstanceIds }));
    expect(aws.cloud.inspect.instances()).toMatchObject([{ state: 'stopped', publicIp: undefined }]);
    const { StartingInstances } = await aws.ec2.send(new StartInstancesCommand({ InstanceIds }));
    expect(StartingInstances).toMatchObject([{ PreviousState: { Name: 'stopped' } }]);
    expect(aws.cloud.inspect.instances()).toMatchObject([{ state: 'running' }]);
    const protect = { InstanceId, DisableApiTermination: { Value: true } };
    await aws.ec2.send(new ModifyInstanceAttributeCommand(protect));
    const ask = new DescribeInstanceAttributeCommand({ InstanceId, Attribute: 'disableApiTermination' });
    expect((await aws.ec2.send(ask)).DisableApiTermination?.Value).toBe(true);
    const { Output = '' } = await aws.ec2.send(new GetConsoleOutputCommand({ InstanceId }));
    expect(Buffer.from(Output, 'base64').toString()).toContain(aws.cloud.publicImageId);
  });

  it('of the spot market has a price and a request', async () => {
    const ask = { InstanceTypes: ['m5.large' as const], AvailabilityZone: 'us-east-1a' };
    const { SpotPriceHistory } = await aws.ec2.send(new DescribeSpotPriceHistoryCommand(ask));
    expect(SpotPriceHistory).toMatchObject([{ SpotPrice: '0.028800', AvailabilityZone: 'us-east-1a' }]);
    const [instance] = await aws.run({ InstanceMarketOptions: { MarketType: 'spot' } });
    const ids = { SpotInstanceRequestIds: [instance?.SpotInstanceRequestId ?? ''] };
    const { CancelledSpotInstanceRequests } = await aws.ec2.send(new CancelSpotInstanceRequestsCommand(ids));
    expect(CancelledSpotInstanceRequests).toMatchObject([{ State: 'cancelled' }]);
    expect(aws.cloud.inspect.instances()).toMatchObject([{ state: 'running', market: 'spot' }]);
  });

  it('loses tags, all or those with a value', async () => {
    const Tags = ['a', 'b', 'c'].map((Key) => ({ Key, Value: '1' }));
    const id = await aws.runOne({ TagSpecifications: [{ ResourceType: 'instance', Tags }] });
    const remove = (tags?: { Key: string; Value?: string }[]): Promise<unknown> =>
      aws.ec2.send(new DeleteTagsCommand({ Resources: [id], Tags: tags }));
    await remove([{ Key: 'a' }, { Key: 'b', Value: '2' }]);
    expect(Object.keys(aws.cloud.inspect.instances()[0]?.tags ?? {})).toEqual(['b', 'c']);
    await remove();
    expect(aws.cloud.inspect.instances()[0]?.tags).toEqual({});
  });
});

describe('a launch template', () => {
  it('has versions, and is deleted', async () => {
    const LaunchTemplateName = 'template';
    const LaunchTemplateData = { ImageId: aws.cloud.publicImageId, InstanceType: 'm5.large' as const };
    await aws.ec2.send(new CreateLaunchTemplateCommand({ LaunchTemplateName, LaunchTemplateData }));
    const changed = { LaunchTemplateName, SourceVersion: '1', LaunchTemplateData: { KeyName: KEY_NAME } };
    await aws.ec2.send(new CreateLaunchTemplateVersionCommand(changed));
    const versions = new DescribeLaunchTemplateVersionsCommand({
      LaunchTemplateName,
      Versions: ['$Default', '$Latest'],
    });
    const { LaunchTemplateVersions } = await aws.ec2.send(versions);
    expect(LaunchTemplateVersions).toMatchObject([
      { VersionNumber: 1, DefaultVersion: true, LaunchTemplateData },
      { VersionNumber: 2, DefaultVersion: false, LaunchTemplateData: { ...LaunchTemplateData, KeyName: KEY_NAME } },
    ]);
    const launch = { LaunchTemplate: { LaunchTemplateName, Version: '2' }, ImageId: undefined };
    const [instance] = await aws.run(launch);
    expect(instance?.KeyName).toBe(KEY_NAME);
    const specification = { LaunchTemplateName, Version: '1' };
    const { FleetId = '' } = await aws.ec2.send(
      new CreateFleetCommand({
        ...{ Type: 'instant', LaunchTemplateConfigs: [{ LaunchTemplateSpecification: specification }] },
        TargetCapacitySpecification: { TotalTargetCapacity: 1, DefaultTargetCapacityType: 'on-demand' },
      }),
    );
    await aws.ec2.send(new DeleteFleetsCommand({ FleetIds: [FleetId], TerminateInstances: true }));
    expect(aws.cloud.inspect.instances().map(({ state }) => state)).toEqual(['running', 'terminated']);
    await aws.ec2.send(new DeleteLaunchTemplateCommand({ LaunchTemplateName }));
    const { LaunchTemplates } = await aws.ec2.send(new DescribeLaunchTemplatesCommand({}));
    expect(LaunchTemplates).toEqual([]);
  });
});

describe('an image', () => {
  it('is shared with other accounts', async () => {
    const ImageId = aws.cloud.addImage({ name: 'mine' });
    const share = { Add: [{ UserId: STRANGER }, { Group: 'all' as const }] };
    await aws.ec2.send(new ModifyImageAttributeCommand({ ImageId, LaunchPermission: share }));
    const ask = new DescribeImageAttributeCommand({ ImageId, Attribute: 'launchPermission' });
    expect((await aws.ec2.send(ask)).LaunchPermissions).toEqual([{ Group: 'all' }, { UserId: STRANGER }]);
    expect(aws.cloud.inspect.images()).toMatchObject([{ isPublic: true }]);
  });
});

describe('other services', () => {
  it('assume roles and list services', async () => {
    const assume = { RoleArn: ROLE_ARN, RoleSessionName: 'ci', DurationSeconds: 900 };
    const { Credentials } = await aws.sts.send(new AssumeRoleCommand(assume));
    expect(Credentials?.Expiration?.getTime()).toBe(aws.clock.now() + 900_000);
    const { Services } = await aws.quotas.send(new ListServicesCommand({}));
    expect(Services?.map(({ ServiceCode }) => ServiceCode)).toEqual(['ec2', 'ebs']);
  });

  it('have calls that fail by their parameters', async () => {
    aws.cloud.faults.add({
      on: ({ operation, parameters }) =>
        operation === 'ec2.RunInstances' && parameters.get('InstanceType') === 'c5.large',
      fault: { kind: 'status', status: 500, code: 'InternalError' },
    });
    expect(await codeOf(aws.run())).toBe('accepted');
    expect(await codeOf(aws.run({ InstanceType: 'c5.large' }))).toBe('InternalError');
    expect(aws.cloud.calls.last(1)).toMatchObject([{ operation: 'ec2.RunInstances', region: 'us-east-1' }]);
  });
});

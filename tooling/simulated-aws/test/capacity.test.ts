/** Capacity, quotas, prices, fleets, hosts and limits of calls. */

import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import {
  AllocateHostsCommand,
  CreateFleetCommand,
  CreateLaunchTemplateCommand,
  DescribeFleetsCommand,
  DescribeHostsCommand,
  DescribeInstanceTypeOfferingsCommand,
  DescribeInstanceTypesCommand,
  DescribeInstancesCommand,
  DescribeSubnetsCommand,
  ReleaseHostsCommand,
  TerminateInstancesCommand,
  type CreateFleetCommandInput,
  type CreateFleetCommandOutput,
  type FleetLaunchTemplateOverridesRequest,
  type RequestLaunchTemplateData,
} from '@aws-sdk/client-ec2';
import { GetServiceQuotaCommand, ListServiceQuotasCommand } from '@aws-sdk/client-service-quotas';
import { codeOf, Fixture } from './support/fixture.js';

const SPOT = { InstanceMarketOptions: { MarketType: 'spot' } } as const;
const STANDARD = 'L-1216C47A';
const STANDARD_SPOT = 'L-34B43A08';
let aws: Fixture;

beforeEach(async () => {
  aws = await Fixture.start();
});

afterEach(() => aws.close());

async function terminateAll(): Promise<void> {
  const InstanceIds = aws.cloud.inspect.instances().map(({ id }) => id);
  await aws.ec2.send(new TerminateInstancesCommand({ InstanceIds }));
}

describe('capacity', () => {
  it('is limited by type, market and zone, and freed by terminations', async () => {
    aws.cloud.capacity.limit({ instanceType: 'm5.large', market: 'spot', zone: 'us-east-1b' }, 2);
    const SubnetId = aws.cloud.subnets['us-east-1b'];
    expect(await aws.run({ ...SPOT, SubnetId, MinCount: 1, MaxCount: 5 })).toHaveLength(2);
    expect(await codeOf(aws.run({ ...SPOT, SubnetId }))).toBe('InsufficientInstanceCapacity');
    expect(await aws.run({ SubnetId })).toHaveLength(1);
    expect(await aws.run({ ...SPOT, SubnetId: aws.cloud.subnets['us-east-1a'] })).toHaveLength(1);
    expect(await aws.run({ ...SPOT, SubnetId, InstanceType: 'c5.large' })).toHaveLength(1);
    await terminateAll();
    expect(await aws.run({ ...SPOT, SubnetId })).toHaveLength(1);
  });

  it('below the minimum count launches nothing', async () => {
    aws.cloud.capacity.limit({}, 2);
    expect(await codeOf(aws.run({ MinCount: 3, MaxCount: 5 }))).toBe('InsufficientInstanceCapacity');
    expect(aws.cloud.inspect.instances()).toEqual([]);
  });

  it('is searched in all zones if a launch names none', async () => {
    aws.cloud.capacity.limit({ zone: 'us-east-1a' }, 0);
    const [instance] = await aws.run();
    expect(instance?.Placement?.AvailabilityZone).toBe('us-east-1b');
  });

  it('of addresses is that of the subnet', async () => {
    const SubnetId = aws.cloud.subnets['us-east-1c'] ?? '';
    aws.cloud.capacity.setFreeAddresses(SubnetId, 2);
    expect(await aws.run({ SubnetId, MaxCount: 3 })).toHaveLength(2);
    expect(await codeOf(aws.run({ SubnetId }))).toBe('InsufficientFreeAddressesInSubnet');
    const { Subnets } = await aws.ec2.send(new DescribeSubnetsCommand({ SubnetIds: [SubnetId] }));
    expect(Subnets?.[0]?.AvailableIpAddressCount).toBe(0);
    await terminateAll();
    expect(await aws.run({ SubnetId })).toHaveLength(1);
  });

  it('costs what the spot market asks for', async () => {
    aws.cloud.capacity.setSpotPrice('m5.large', 'us-east-1a', 0.05);
    const launch = (MaxPrice: string): Promise<string> =>
      codeOf(
        aws.run({
          SubnetId: aws.cloud.subnets['us-east-1a'],
          InstanceMarketOptions: { MarketType: 'spot', SpotOptions: { MaxPrice } },
        }),
      );
    expect(await launch('0.04')).toBe('SpotMaxPriceTooLow');
    expect(await launch('0.05')).toBe('accepted');
  });

  it('may be short for a time', async () => {
    const from = aws.clock.now() + 1000;
    aws.cloud.capacity.limit({ zone: 'us-east-1a' }, 0, { from, until: from + 1000 });
    const SubnetId = aws.cloud.subnets['us-east-1a'];
    expect(await codeOf(aws.run({ SubnetId }))).toBe('accepted');
    await aws.clock.advance(1000);
    expect(await codeOf(aws.run({ SubnetId }))).toBe('InsufficientInstanceCapacity');
    await aws.clock.advance(1000);
    expect(await codeOf(aws.run({ SubnetId }))).toBe('accepted');
  });

  it('of a withdrawn type does not exist', async () => {
    aws.cloud.capacity.withdraw('m5.large', 'us-east-1a');
    const SubnetId = aws.cloud.subnets['us-east-1a'];
    expect(await codeOf(aws.run({ SubnetId }))).toBe('Unsupported');
    const { InstanceTypeOfferings = [] } = await aws.ec2.send(
      new DescribeInstanceTypeOfferingsCommand({
        LocationType: 'availability-zone',
        Filters: [{ Name: 'instance-type', Values: ['m5.large'] }],
      }),
    );
    expect(InstanceTypeOfferings.map(({ Location }) => Location)).not.toContain('us-east-1a');
    expect(InstanceTypeOfferings).toHaveLength(5);
  });
});

describe('quotas', () => {
  it('count vCPUs per group of families and market', async () => {
    aws.cloud.setQuota(STANDARD, 9);
    aws.cloud.setQuota(STANDARD_SPOT, 2);
    expect(await aws.run({ MaxCount: 10 })).toHaveLength(4);
    expect(await codeOf(aws.run({ InstanceType: 'c5.large' }))).toBe('VcpuLimitExceeded');
    // Types of other quotas.
    expect(await aws.run({ InstanceType: 'g5.xlarge' })).toHaveLength(1);
    expect(await aws.run(SPOT)).toHaveLength(1);
    expect(await codeOf(aws.run(SPOT))).toBe('MaxSpotInstanceCountExceeded');
    await terminateAll();
    expect(await aws.run({ MaxCount: 10 })).toHaveLength(4);
  });

  it('refuse a launch as a whole if a test says so', async () => {
    aws.cloud.configure({ partialAtQuota: false });
    aws.cloud.setQuota(STANDARD, 4);
    expect(await codeOf(aws.run({ MaxCount: 3 }))).toBe('VcpuLimitExceeded');
    expect(await aws.run({ MaxCount: 2 })).toHaveLength(2);
  });

  it('are listed in pages, and one by one', async () => {
    aws.cloud.setQuota(STANDARD, 64);
    const codes: unknown[] = [];
    let NextToken: string | undefined;
    do {
      const ask = new ListServiceQuotasCommand({ ServiceCode: 'ec2', MaxResults: 7, NextToken });
      const page = await aws.quotas.send(ask);
      codes.push(...(page.Quotas ?? []).map(({ QuotaCode }) => QuotaCode));
      ({ NextToken } = page);
    } while (NextToken !== undefined);
    expect(new Set(codes).size).toBe(codes.length);
    expect(codes).toContain('L-6B0D517C');
    const one = new GetServiceQuotaCommand({ ServiceCode: 'ec2', QuotaCode: STANDARD });
    expect((await aws.quotas.send(one)).Quota).toMatchObject({ Value: 64 });
    const unknown = new ListServiceQuotasCommand({ ServiceCode: 'other' });
    expect(await codeOf(aws.quotas.send(unknown))).toBe('NoSuchResourceException');
  });

  it('of types with unknown letters follow the descriptions of the types', async () => {
    const names = ['im4gn.large', 'gr6.4xlarge', 'u7in-16tb.224xlarge'] as const;
    const { InstanceTypes = [] } = await aws.ec2.send(new DescribeInstanceTypesCommand({ InstanceTypes: [...names] }));
    expect(InstanceTypes.map(({ VCpuInfo }) => [VCpuInfo?.DefaultVCpus, VCpuInfo?.DefaultCores])).toEqual([
      [2, 2],
      [16, 8],
      [896, 448],
    ]);
    aws.cloud.setQuota(STANDARD, 1);
    const ImageId = aws.cloud.addImage({ name: 'arm', architecture: 'arm64' });
    expect(await codeOf(aws.run({ ImageId, InstanceType: 'im4gn.large' }))).toBe('VcpuLimitExceeded');
  });
});

describe('a fleet', () => {
  const template = async (data: RequestLaunchTemplateData = {}): Promise<void> => {
    const LaunchTemplateData = { ImageId: aws.cloud.publicImageId, InstanceType: 'm5.large' as const, ...data };
    await aws.ec2.send(new CreateLaunchTemplateCommand({ LaunchTemplateName: 'template', LaunchTemplateData }));
  };
  const launch = (
    Overrides: FleetLaunchTemplateOverridesRequest[],
    changes: Partial<CreateFleetCommandInput> = {},
    count = 1,
  ): Promise<CreateFleetCommandOutput> => {
    const LaunchTemplateSpecification = { LaunchTemplateName: 'template', Version: '$Latest' };
    return aws.ec2.send(
      new CreateFleetCommand({
        Type: 'instant',
        TargetCapacitySpecification: { TotalTargetCapacity: count, DefaultTargetCapacityType: 'on-demand' },
        LaunchTemplateConfigs: [{ LaunchTemplateSpecification, Overrides }],
        ...changes,
      }),
    );
  };

  it('reports its errors within the answer', async () => {
    await template();
    aws.cloud.setQuota('L-DB2E81BA', 0);
    aws.cloud.capacity.limit({ instanceType: 'c5.large' }, 0);
    aws.cloud.capacity.withdraw('r5.large', 'us-east-1a');
    const SubnetId = aws.cloud.subnets['us-east-1a'];
    const types = ['c5.large', 'g5.xlarge', 'r5.large', 'm7g.large'] as const;
    const answer = await launch(types.map((InstanceType) => ({ InstanceType, SubnetId })));
    expect(answer.Instances).toEqual([]);
    const errors = (answer.Errors ?? []).map((error) => [
      error.LaunchTemplateAndOverrides?.Overrides?.InstanceType,
      error.ErrorCode,
    ]);
    expect(Object.fromEntries(errors)).toEqual({
      'c5.large': 'InsufficientInstanceCapacity',
      'g5.xlarge': 'VcpuLimitExceeded',
      'r5.large': 'InvalidFleetConfiguration',
      'm7g.large': 'InvalidParameterValue',
    });
  });

  it('reports any error that a test plans', async () => {
    await template();
    const fault = { kind: 'fleet-error', code: 'UnfulfillableCapacity', message: 'no room' } as const;
    aws.cloud.faults.add({ on: 'ec2.CreateFleet', fault });
    expect(await launch([])).toMatchObject({ Instances: [], Errors: [{ ErrorCode: 'UnfulfillableCapacity' }] });
    expect((await launch([])).Instances).toHaveLength(1);
  });

  it('is idempotent, and its instances show where they come from', async () => {
    await template({ TagSpecifications: [{ ResourceType: 'volume', Tags: [{ Key: 'a', Value: 'b' }] }] });
    const Tags = [{ Key: 'Name', Value: 'x' }];
    const changes = { ClientToken: 'f', TagSpecifications: [{ ResourceType: 'instance' as const, Tags }] };
    const first = await launch([], changes, 2);
    const again = await launch([], changes, 2);
    expect(again.Instances).toEqual(first.Instances);
    expect(await codeOf(launch([], changes, 3))).toBe('IdempotentParameterMismatch');
    const instances = aws.cloud.inspect.instances();
    expect(instances).toHaveLength(2);
    expect(instances[0]?.tags).toMatchObject({ Name: 'x', 'aws:ec2:fleet-id': first.FleetId });
    expect(instances[0]?.tags['aws:ec2launchtemplate:version']).toBe('1');
    expect(aws.cloud.inspect.volumes().map(({ tags }) => tags)).toEqual([{ a: 'b' }, { a: 'b' }]);
    const { Fleets } = await aws.ec2.send(new DescribeFleetsCommand({ FleetIds: [first.FleetId ?? ''] }));
    expect(Fleets).toMatchObject([{ FulfilledCapacity: 2 }]);
    expect((await aws.ec2.send(new DescribeFleetsCommand({}))).Fleets).toEqual([]);
  });

  it('follows the allocation strategies', async () => {
    await template();
    const { subnets, capacity } = aws.cloud;
    const pools = [
      { InstanceType: 'm5.large' as const, SubnetId: subnets['us-east-1a'], Priority: 2 },
      { InstanceType: 'c5.large' as const, SubnetId: subnets['us-east-1a'], Priority: 3 },
      { InstanceType: 'r5.large' as const, SubnetId: subnets['us-east-1b'], Priority: 1 },
    ];
    const typesOf = async (changes: Partial<CreateFleetCommandInput>, count = 1): Promise<unknown> => {
      const { Instances: instances = [] } = await launch(pools, changes, count);
      return instances.map(({ InstanceType: type, InstanceIds: ids }) => [type, ids?.length]);
    };
    const spot = (
      AllocationStrategy: 'diversified' | 'price-capacity-optimized',
    ): Partial<CreateFleetCommandInput> => ({
      TargetCapacitySpecification: { TotalTargetCapacity: 3, DefaultTargetCapacityType: 'spot' },
      SpotOptions: { AllocationStrategy },
    });
    expect(await typesOf({ OnDemandOptions: { AllocationStrategy: 'prioritized' } })).toEqual([['r5.large', 1]]);
    expect(await typesOf({ OnDemandOptions: { AllocationStrategy: 'lowest-price' } })).toEqual([['c5.large', 1]]);
    expect(await typesOf(spot('diversified'))).toEqual([
      ['m5.large', 1],
      ['c5.large', 1],
      ['r5.large', 1],
    ]);
    capacity.limit({ instanceType: 'c5.large', market: 'spot' }, 2);
    capacity.limit({ instanceType: 'r5.large', market: 'spot' }, 2);
    expect(await typesOf(spot('price-capacity-optimized'))).toEqual([['m5.large', 3]]);
  });

  it('applies overrides of subnets to the interfaces of the template', async () => {
    await template({ NetworkInterfaces: [{ DeviceIndex: 0, AssociatePublicIpAddress: false, Ipv6AddressCount: 1 }] });
    await launch([{ SubnetId: aws.cloud.subnets['us-east-1d'] }]);
    expect(aws.cloud.inspect.instances()).toMatchObject([{ zone: 'us-east-1d', publicIp: undefined }]);
    expect(aws.cloud.inspect.instances()[0]?.ipv6).toHaveLength(1);
  });

  it('needs a version of an existing template', async () => {
    expect(await codeOf(launch([]))).toBe('InvalidLaunchTemplateName.NotFoundException');
    await template();
    const wrong = { LaunchTemplateName: 'template', Version: '9' };
    const configs = { LaunchTemplateConfigs: [{ LaunchTemplateSpecification: wrong }] };
    expect(await codeOf(launch([], configs))).toBe('InvalidLaunchTemplateId.VersionNotFound');
    expect(await codeOf(template())).toBe('InvalidLaunchTemplateName.AlreadyExistsException');
  });
});

describe('a dedicated host', () => {
  it('is allocated within its quota, holds instances, and is released empty', async () => {
    aws.cloud.configure({ resourceMs: 1000 });
    const allocate = new AllocateHostsCommand({
      ...{ InstanceType: 'm5.large', AvailabilityZone: 'us-east-1a', Quantity: 1, ClientToken: 'h' },
      TagSpecifications: [{ ResourceType: 'dedicated-host', Tags: [{ Key: 'a', Value: 'b' }] }],
    });
    const { HostIds = [] } = await aws.ec2.send(allocate);
    expect((await aws.ec2.send(allocate)).HostIds).toEqual(HostIds);
    const more = new AllocateHostsCommand({ InstanceType: 'm5.xlarge', AvailabilityZone: 'us-east-1a', Quantity: 2 });
    expect(await codeOf(aws.ec2.send(more))).toBe('HostLimitExceeded');
    const Placement = { Tenancy: 'host' as const, HostId: HostIds[0] };
    const SubnetId = aws.cloud.subnets['us-east-1a'];
    expect(await codeOf(aws.run({ Placement, SubnetId }))).toBe('InvalidHostState');
    await aws.clock.advance(1000);
    const { Hosts } = await aws.ec2.send(new DescribeHostsCommand({ HostIds }));
    expect(Hosts).toMatchObject([{ State: 'available', Tags: [{ Key: 'a', Value: 'b' }] }]);
    aws.cloud.setQuota(STANDARD, 0);
    expect(await aws.run({ Placement, SubnetId })).toHaveLength(1);
    const release = new ReleaseHostsCommand({ HostIds });
    expect((await aws.ec2.send(release)).Unsuccessful).toHaveLength(1);
    await terminateAll();
    expect((await aws.ec2.send(release)).Successful).toEqual(HostIds);
    expect(aws.cloud.inspect.hosts()).toMatchObject([{ state: 'released' }]);
  });

  it('of Macs is needed, and kept for a day', async () => {
    const ImageId = aws.cloud.addImage({ name: 'mac', architecture: 'arm64_mac' });
    const Placement = { Tenancy: 'host' as const, AvailabilityZone: 'us-east-1a' };
    const launch = (): Promise<string> => codeOf(aws.run({ ImageId, InstanceType: 'mac2.metal', Placement }));
    expect(await launch()).toBe('IncompatibleHostRequirements');
    const allocate = { InstanceType: 'mac2.metal', AvailabilityZone: 'us-east-1a', Quantity: 1 } as const;
    const { HostIds } = await aws.ec2.send(new AllocateHostsCommand({ ...allocate, AutoPlacement: 'on' }));
    expect(await launch()).toBe('accepted');
    expect(await launch()).toBe('InsufficientCapacityOnHost');
    await terminateAll();
    const { Unsuccessful = [] } = await aws.ec2.send(new ReleaseHostsCommand({ HostIds }));
    expect(Unsuccessful[0]?.Error?.Code).toBe('Client.HostMinAllocationPeriodUnexpired');
  });
});

describe('limits of calls', () => {
  beforeEach(() => aws.cloud.configure({ throttles: true }));

  it('let five launches pass at once, and then two per second', async () => {
    const launches = await Promise.all(Array.from({ length: 7 }, () => codeOf(aws.run())));
    expect(launches.filter((code) => code === 'accepted')).toHaveLength(5);
    expect(launches.filter((code) => code === 'RequestLimitExceeded')).toHaveLength(2);
    await aws.clock.advance(500);
    expect(await codeOf(aws.run())).toBe('accepted');
    expect(await codeOf(aws.run())).toBe('RequestLimitExceeded');
  });

  it('let a thousand instances pass at once, in one call', async () => {
    const SubnetId = aws.cloud.subnets['us-east-1a'];
    aws.cloud.setQuota(STANDARD, 5000);
    expect(await aws.run({ SubnetId, MinCount: 1000, MaxCount: 1000 })).toHaveLength(1000);
    expect(await codeOf(aws.run({ SubnetId }))).toBe('RequestLimitExceeded');
    await aws.clock.advance(1000);
    expect(await codeOf(aws.run({ SubnetId, MinCount: 3, MaxCount: 3 }))).toBe('RequestLimitExceeded');
    expect(await codeOf(aws.run({ SubnetId, MinCount: 2, MaxCount: 2 }))).toBe('accepted');
  });

  it('are lower for lists without filter and pages', async () => {
    const ask = async (input: object): Promise<number> => {
      const calls = Array.from({ length: 101 }, () => codeOf(aws.ec2.send(new DescribeInstancesCommand(input))));
      return (await Promise.all(calls)).filter((code) => code === 'accepted').length;
    };
    expect(await ask({})).toBe(50);
    expect(await ask({ MaxResults: 10 })).toBe(100);
  });
});

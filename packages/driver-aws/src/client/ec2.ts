/** The calls to EC2 for nodes and their resources. */

import { isDriverError, sleep, type Call } from '@nodepool/core';
import type {
  Address,
  AllocateHostsCommandInput,
  CreateFleetCommandInput,
  CreateFleetCommandOutput,
  CreateLaunchTemplateCommandInput,
  Filter,
  Host,
  Image,
  Instance,
  InstanceStateChange,
  InstanceTypeInfo,
  LaunchTemplate,
  NetworkInterface,
  RunInstancesCommandInput,
  Snapshot,
  Subnet,
  Tag,
  Volume,
  _InstanceType,
} from '@aws-sdk/client-ec2';
import type { Connection } from './connection.js';
import { loadEc2 } from './libraries.js';
import { allPages } from './pages.js';

/** Maximum number of entries of a page (EC2). */
const PAGE = 1000;
/** Maximum number of instance types per call (EC2). */
const TYPES_PER_CALL = 100;
/** Maximum number of calls that tag new resources, which EC2 may not know for seconds. */
const TAG_ATTEMPTS = 6;
/** Interval between these calls (ms). */
const TAG_INTERVAL_MS = 3000;

export class Ec2 {
  constructor(readonly connection: Connection) {}

  /**
   * Launches between one and `MaxCount` instances. `input` is called when the call is sent. Resolves with the instances
   * in the order of their launch index.
   */
  async runInstances(input: () => RunInstancesCommandInput, call: Call): Promise<readonly Instance[]> {
    const { Instances = [] } = await this.connection.send(
      { service: 'ec2', action: 'RunInstances' },
      call,
      (sdk, options) => sdk.ec2().send(new (loadEc2().RunInstancesCommand)(input()), options),
    );
    return [...Instances].sort((a, b) => (a.AmiLaunchIndex ?? 0) - (b.AmiLaunchIndex ?? 0));
  }

  createFleet(input: CreateFleetCommandInput, call: Call): Promise<CreateFleetCommandOutput> {
    return this.connection.send({ service: 'ec2', action: 'CreateFleet' }, call, (sdk, options) =>
      sdk.ec2().send(new (loadEc2().CreateFleetCommand)(input), options),
    );
  }

  /** `ids` is called when the call is sent. */
  async terminate(ids: () => readonly string[], call: Call): Promise<readonly InstanceStateChange[]> {
    const { TerminatingInstances = [] } = await this.connection.send(
      { service: 'ec2', action: 'TerminateInstances' },
      call,
      (sdk, options) => sdk.ec2().send(new (loadEc2().TerminateInstancesCommand)({ InstanceIds: [...ids()] }), options),
    );
    return TerminatingInstances;
  }

  /** Lists all instances of the region, those of others included. */
  async listInstances(call: Call): Promise<readonly Instance[]> {
    const reservations = await allPages(async (NextToken) => {
      const page = await this.connection.send({ service: 'ec2', action: 'DescribeInstances' }, call, (sdk, options) =>
        sdk.ec2().send(new (loadEc2().DescribeInstancesCommand)({ MaxResults: PAGE, NextToken }), options),
      );
      return { items: page.Reservations ?? [], next: page.NextToken };
    });
    return reservations.flatMap(({ Instances = [] }) => Instances);
  }

  async describeTypes(types: readonly string[], call: Call): Promise<readonly InstanceTypeInfo[]> {
    const found: InstanceTypeInfo[] = [];
    for (let from = 0; from < types.length; from += TYPES_PER_CALL) {
      const Filters = [{ Name: 'instance-type', Values: types.slice(from, from + TYPES_PER_CALL) }];
      found.push(
        ...(await allPages(async (NextToken) => {
          const page = await this.connection.send(
            { service: 'ec2', action: 'DescribeInstanceTypes' },
            call,
            (sdk, options) =>
              sdk.ec2().send(new (loadEc2().DescribeInstanceTypesCommand)({ Filters, NextToken }), options),
          );
          return { items: page.InstanceTypes ?? [], next: page.NextToken };
        })),
      );
    }
    return found;
  }

  /** Lists the types of the current generation with these sizes, e.g. `large`, and processors of Intel or AMD. */
  commonTypes(sizes: readonly string[], call: Call): Promise<readonly InstanceTypeInfo[]> {
    const Filters = [
      { Name: 'current-generation', Values: ['true'] },
      { Name: 'instance-type', Values: sizes.map((size) => `*.${size}`) },
      { Name: 'processor-info.supported-architecture', Values: [COMMON_ARCHITECTURE] },
    ];
    return allPages(async (NextToken) => {
      const page = await this.connection.send(
        { service: 'ec2', action: 'DescribeInstanceTypes' },
        call,
        (sdk, options) => sdk.ec2().send(new (loadEc2().DescribeInstanceTypesCommand)({ Filters, NextToken }), options),
      );
      return { items: page.InstanceTypes ?? [], next: page.NextToken };
    });
  }

  /** Lists these subnets; by default all of the region. */
  subnets(SubnetIds: readonly string[] | undefined, call: Call): Promise<readonly Subnet[]> {
    const ids = SubnetIds === undefined ? {} : { SubnetIds: [...SubnetIds] };
    return allPages(async (NextToken) => {
      const page = await this.connection.send({ service: 'ec2', action: 'DescribeSubnets' }, call, (sdk, options) =>
        sdk.ec2().send(new (loadEc2().DescribeSubnetsCommand)({ ...ids, NextToken }), options),
      );
      return { items: page.Subnets ?? [], next: page.NextToken };
    });
  }

  images(
    query: { readonly ids?: readonly string[]; readonly owners?: readonly string[]; readonly filters?: Filter[] },
    call: Call,
    region?: string,
  ): Promise<readonly Image[]> {
    const { ids, owners, filters } = query;
    return allPages(async (NextToken) => {
      const page = await this.connection.send({ service: 'ec2', action: 'DescribeImages' }, call, (sdk, options) =>
        sdk.ec2(region).send(
          new (loadEc2().DescribeImagesCommand)({
            ImageIds: ids === undefined ? undefined : [...ids],
            Owners: owners === undefined || owners.length === 0 ? undefined : [...owners],
            Filters: filters,
            NextToken,
            // A page size excludes ids.
            MaxResults: ids === undefined ? PAGE : undefined,
          }),
          options,
        ),
      );
      return { items: page.Images ?? [], next: page.NextToken };
    });
  }

  async consoleOutput(InstanceId: string, call: Call): Promise<string> {
    const { Output = '' } = await this.connection.send(
      { service: 'ec2', action: 'GetConsoleOutput' },
      call,
      (sdk, options) => sdk.ec2().send(new (loadEc2().GetConsoleOutputCommand)({ InstanceId }), options),
    );
    return Buffer.from(Output, 'base64').toString('utf8');
  }

  /** Resolves with the id of the new host. */
  async allocateHost(input: AllocateHostsCommandInput, call: Call): Promise<string | undefined> {
    const { HostIds = [] } = await this.connection.send(
      { service: 'ec2', action: 'AllocateHosts' },
      call,
      (sdk, options) => sdk.ec2().send(new (loadEc2().AllocateHostsCommand)(input), options),
    );
    return HostIds[0];
  }

  /** Resolves with the reason if the host cannot be released. */
  async releaseHost(id: string, call: Call): Promise<{ readonly code: string; readonly text: string } | undefined> {
    const { Unsuccessful = [] } = await this.connection.send(
      { service: 'ec2', action: 'ReleaseHosts' },
      call,
      (sdk, options) => sdk.ec2().send(new (loadEc2().ReleaseHostsCommand)({ HostIds: [id] }), options),
    );
    const error = Unsuccessful[0]?.Error;
    return error === undefined ? undefined : { code: error.Code ?? '', text: error.Message ?? '' };
  }

  hosts(call: Call): Promise<readonly Host[]> {
    return allPages(async (NextToken) => {
      const page = await this.connection.send({ service: 'ec2', action: 'DescribeHosts' }, call, (sdk, options) =>
        sdk.ec2().send(new (loadEc2().DescribeHostsCommand)({ NextToken }), options),
      );
      return { items: page.Hosts ?? [], next: page.NextToken };
    });
  }

  async createTemplate(input: CreateLaunchTemplateCommandInput, call: Call): Promise<void> {
    await this.connection.send({ service: 'ec2', action: 'CreateLaunchTemplate' }, call, (sdk, options) =>
      sdk.ec2().send(new (loadEc2().CreateLaunchTemplateCommand)(input), options),
    );
  }

  templates(call: Call): Promise<readonly LaunchTemplate[]> {
    const Filters = [{ Name: 'tag-key', Values: ['nodepool_provider_name'] }];
    return allPages(async (NextToken) => {
      const page = await this.connection.send(
        { service: 'ec2', action: 'DescribeLaunchTemplates' },
        call,
        (sdk, options) =>
          sdk.ec2().send(new (loadEc2().DescribeLaunchTemplatesCommand)({ Filters, NextToken }), options),
      );
      return { items: page.LaunchTemplates ?? [], next: page.NextToken };
    });
  }

  async deleteTemplate(LaunchTemplateId: string, call: Call): Promise<void> {
    await this.connection.send({ service: 'ec2', action: 'DeleteLaunchTemplate' }, call, (sdk, options) =>
      sdk.ec2().send(new (loadEc2().DeleteLaunchTemplateCommand)({ LaunchTemplateId }), options),
    );
  }

  /** Lists the volumes of the region, or those with a tag of Nodepool. */
  volumes(call: Call, onlyTagged: boolean): Promise<readonly Volume[]> {
    const Filters = onlyTagged ? [TAGGED] : undefined;
    return allPages(async (NextToken) => {
      const page = await this.connection.send({ service: 'ec2', action: 'DescribeVolumes' }, call, (sdk, options) =>
        sdk.ec2().send(new (loadEc2().DescribeVolumesCommand)({ Filters, NextToken, MaxResults: PAGE / 2 }), options),
      );
      return { items: page.Volumes ?? [], next: page.NextToken };
    });
  }

  async deleteVolume(VolumeId: string, call: Call): Promise<void> {
    await this.connection.send({ service: 'ec2', action: 'DeleteVolume' }, call, (sdk, options) =>
      sdk.ec2().send(new (loadEc2().DeleteVolumeCommand)({ VolumeId }), options),
    );
  }

  interfaces(call: Call): Promise<readonly NetworkInterface[]> {
    return allPages(async (NextToken) => {
      const page = await this.connection.send(
        { service: 'ec2', action: 'DescribeNetworkInterfaces' },
        call,
        (sdk, options) =>
          sdk
            .ec2()
            .send(
              new (loadEc2().DescribeNetworkInterfacesCommand)({ Filters: [TAGGED], NextToken, MaxResults: PAGE }),
              options,
            ),
      );
      return { items: page.NetworkInterfaces ?? [], next: page.NextToken };
    });
  }

  async deleteInterface(NetworkInterfaceId: string, call: Call): Promise<void> {
    await this.connection.send({ service: 'ec2', action: 'DeleteNetworkInterface' }, call, (sdk, options) =>
      sdk.ec2().send(new (loadEc2().DeleteNetworkInterfaceCommand)({ NetworkInterfaceId }), options),
    );
  }

  async addresses(call: Call): Promise<readonly Address[]> {
    const { Addresses = [] } = await this.connection.send(
      { service: 'ec2', action: 'DescribeAddresses' },
      call,
      (sdk, options) => sdk.ec2().send(new (loadEc2().DescribeAddressesCommand)({ Filters: [TAGGED] }), options),
    );
    return Addresses;
  }

  async releaseAddress(AllocationId: string, call: Call): Promise<void> {
    await this.connection.send({ service: 'ec2', action: 'ReleaseAddress' }, call, (sdk, options) =>
      sdk.ec2().send(new (loadEc2().ReleaseAddressCommand)({ AllocationId }), options),
    );
  }

  snapshots(call: Call, filters: Filter[] = [TAGGED]): Promise<readonly Snapshot[]> {
    return allPages(async (NextToken) => {
      const page = await this.connection.send({ service: 'ec2', action: 'DescribeSnapshots' }, call, (sdk, options) =>
        sdk.ec2().send(
          new (loadEc2().DescribeSnapshotsCommand)({
            OwnerIds: ['self'],
            Filters: filters,
            NextToken,
            MaxResults: PAGE,
          }),
          options,
        ),
      );
      return { items: page.Snapshots ?? [], next: page.NextToken };
    });
  }

  async deleteSnapshot(SnapshotId: string, call: Call): Promise<void> {
    await this.connection.send({ service: 'ec2', action: 'DeleteSnapshot' }, call, (sdk, options) =>
      sdk.ec2().send(new (loadEc2().DeleteSnapshotCommand)({ SnapshotId }), options),
    );
  }

  async deregisterImage(ImageId: string, call: Call): Promise<void> {
    await this.connection.send({ service: 'ec2', action: 'DeregisterImage' }, call, (sdk, options) =>
      sdk.ec2().send(new (loadEc2().DeregisterImageCommand)({ ImageId }), options),
    );
  }

  /** Tags resources. One that EC2 does not know counts as new: the call is repeated, `attempts` times in all. */
  async createTags(
    ids: readonly string[],
    tags: Readonly<Record<string, string>>,
    call: Call,
    attempts = TAG_ATTEMPTS,
  ): Promise<void> {
    const { connection } = this;
    for (let attempt = 1; ; attempt += 1) {
      try {
        await connection.send({ service: 'ec2', action: 'CreateTags' }, call, (sdk, options) =>
          sdk.ec2().send(new (loadEc2().CreateTagsCommand)({ Resources: [...ids], Tags: toTags(tags) }), options),
        );
        return;
      } catch (error) {
        if (attempt >= attempts || !isDriverError(error) || error.code !== 'not-found') throw error;
        await sleep(connection.clock, TAG_INTERVAL_MS, call.signal);
      }
    }
  }
}

/** Architecture of the types and images that a first configuration offers. */
export const COMMON_ARCHITECTURE = 'x86_64';

const TAGGED: Filter = { Name: 'tag-key', Values: ['nodepool_provider_name'] };

export function toTags(tags: Readonly<Record<string, string>>): Tag[] {
  return Object.entries(tags).map(([Key, Value]) => ({ Key, Value }));
}

export function tagsIn(tags: readonly Tag[] | undefined): Readonly<Record<string, string>> {
  return Object.fromEntries((tags ?? []).map(({ Key = '', Value = '' }) => [Key, Value]));
}

/** Returns a type of instances as the library declares it. EC2 has types that the library does not know yet. */
export function asInstanceType(name: string): _InstanceType {
  return name as _InstanceType;
}

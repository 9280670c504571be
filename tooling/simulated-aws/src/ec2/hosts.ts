/** Dedicated hosts. */

import type {
  AllocateHostsRequest,
  AllocateHostsResult,
  AllocationState,
  AutoPlacement,
  DescribeHostsRequest,
  DescribeHostsResult,
  Host as ShownHost,
  ReleaseHostsRequest,
  ReleaseHostsResult,
} from '@aws-sdk/client-ec2';
import { operation, type AwsCall, type Handlers } from '../call.js';
import { AwsError, invalidCombination, invalidValue, missing, refuseUnsupported } from '../protocol/aws-error.js';
import type { Region } from '../region.js';
import { ACCOUNT } from '../settings.js';
import { INSTANCE_TYPES } from './instance-types.js';
import { hostUsage, roomOf } from './launch.js';
import { requireType } from './launch-plan.js';
import { filtered, pageOf, type Filterable } from './lists.js';
import type { Host } from './records.js';
import { stateAt } from './records.js';
import { KINDS } from './table.js';
import { shownTags, tagsByType } from './tags.js';

/** Minimum time that a Mac host stays allocated, by Apple's licence (ms). */
const MAC_MIN_MS = 24 * 3_600_000;

export function hostState({ availableAt, releasedAt = Infinity }: Host, asOf: number): AllocationState {
  if (asOf >= releasedAt) return 'released';
  return asOf >= availableAt ? 'available' : 'pending';
}

const FILTERS = (asOf: number): Filterable<Host> => ({
  'availability-zone': ({ zone }) => zone,
  'instance-type': ({ instanceType }) => instanceType.name,
  'auto-placement': ({ autoPlacement }) => autoPlacement,
  'client-token': ({ clientToken }) => clientToken,
  state: (host) => hostState(host, asOf),
});

export function hostHandlers(regionOf: (call: AwsCall) => Region): Handlers {
  return {
    AllocateHosts: operation<AllocateHostsRequest, AllocateHostsResult>((input, call) =>
      allocate(regionOf(call), input, call),
    ),
    DescribeHosts: operation<DescribeHostsRequest, DescribeHostsResult>((input, call) => {
      const region = regionOf(call);
      const { HostIds: ids } = input;
      if (ids !== undefined && input.MaxResults !== undefined) {
        throw invalidCombination('HostIds and MaxResults cannot be used together');
      }
      const seen = ids === undefined ? region.hosts.seen(call.asOf) : region.hosts.require(ids, call.asOf);
      const found = filtered(seen, input.Filter, FILTERS(call.asOf));
      const { items, NextToken } = pageOf(found, input, region.settings.pageSize);
      return { Hosts: items.map((host) => shown(region, host, call.asOf)), NextToken };
    }),
    ReleaseHosts: operation<ReleaseHostsRequest, ReleaseHostsResult>((input, call) =>
      release(regionOf(call), input, call),
    ),
  };
}

function allocate(region: Region, input: AllocateHostsRequest, call: AwsCall): AllocateHostsResult {
  return region.idempotency.run(call.operation, input, () => {
    const tags = tagsByType(input.TagSpecifications, ['dedicated-host']).get('dedicated-host');
    if (tags !== undefined) call.authorize('ec2:CreateTags');
    refuseUnsupported(input, ['InstanceFamily', 'OutpostArn', 'AssetIds', 'AvailabilityZoneId']);
    if (input.InstanceType === undefined) throw missing('instanceType');
    if (input.AvailabilityZone === undefined) throw missing('availabilityZone');
    const { InstanceType: name, AvailabilityZone: zone, Quantity: quantity = 1 } = input;
    if (quantity < 1) throw new AwsError('InvalidQuantity', `The quantity ${quantity} is invalid.`);
    if (!region.zones.includes(zone)) throw invalidValue(`Invalid availability zone: [${zone}]`);
    const type = requireType(name);
    if (!type.dedicatedHosts || !region.world.capacity.isOffered(name, zone)) {
      throw new AwsError('Unsupported', `The instance type ${name} does not support Dedicated Hosts in ${zone}`);
    }
    const { used, quota } = hostUsage(region, type.family);
    if (used + quantity > quota) {
      const message = `You have requested more ${type.family} hosts than your current limit of ${quota} allows`;
      throw new AwsError('HostLimitExceeded', message);
    }
    // A host has the capacity of the instances that it can hold.
    const room = region.world.capacity.available(name, 'on-demand', zone, region.instances.all());
    if (room < quantity) {
      throw new AwsError(
        'InsufficientHostCapacity',
        'There is not enough capacity to fulfill your Dedicated Host request',
        500,
      );
    }
    const hosts = Array.from({ length: quantity }, () =>
      region.hosts.add({
        ...region.newResource(KINDS.host, tags),
        ...{ instanceType: type, zone, autoPlacement: input.AutoPlacement ?? 'on', clientToken: input.ClientToken },
        ...{ availableAt: call.now + region.settings.resourceMs, releasedAt: undefined },
      }),
    );
    return () => ({ HostIds: hosts.map(({ id }) => id) });
  });
}

function release(region: Region, { HostIds: ids = [] }: ReleaseHostsRequest, call: AwsCall): ReleaseHostsResult {
  const Successful: string[] = [];
  const Unsuccessful: NonNullable<ReleaseHostsResult['Unsuccessful']> = [];
  const refuse = (ResourceId: string, Code: string, Message: string): number =>
    Unsuccessful.push({ ResourceId, Error: { Code, Message } });
  for (const id of ids) {
    const host = region.hosts.find(id, call.asOf);
    if (host === undefined || host.releasedAt !== undefined)
      refuse(id, 'Client.InvalidHostID.NotFound', `The host '${id}' does not exist`);
    else if (roomOf(region, host) < host.instanceType.perHost) {
      refuse(id, 'Client.InvalidHost.Occupied', 'Dedicated host is occupied and cannot be released.');
    } else if (host.instanceType.name.startsWith('mac') && call.now < host.createdAt + MAC_MIN_MS) {
      refuse(id, 'Client.HostMinAllocationPeriodUnexpired', 'The host has not been allocated for 24 hours.');
    } else {
      host.releasedAt = call.now;
      region.world.timeline.at(call.now + region.settings.terminatedListedMs, (at) => region.hosts.remove(host, at));
      Successful.push(id);
    }
  }
  return { Successful, Unsuccessful };
}

function shown(region: Region, host: Host, asOf: number): ShownHost {
  const { instanceType: type } = host;
  const instances = region.instances
    .seen(asOf)
    .filter((one) => one.hostId === host.id && stateAt(one, asOf) !== 'terminated');
  const room = roomOf(region, host);
  return {
    ...{ HostId: host.id, AvailabilityZone: host.zone, AutoPlacement: host.autoPlacement as AutoPlacement },
    ...{ State: hostState(host, asOf), OwnerId: ACCOUNT, ClientToken: host.clientToken, Tags: shownTags(host.tags) },
    AllocationTime: new Date(host.createdAt),
    ...(host.releasedAt === undefined ? {} : { ReleaseTime: new Date(host.releasedAt) }),
    ...{ AllowsMultipleInstanceTypes: 'off', HostRecovery: 'off', HostMaintenance: 'off' },
    HostProperties: {
      ...{
        InstanceType: type.name,
        TotalVCpus: type.vcpus * type.perHost,
        Cores: type.cores * type.perHost,
        Sockets: 2,
      },
    },
    AvailableCapacity: {
      AvailableInstanceCapacity: [{ InstanceType: type.name, AvailableCapacity: room, TotalCapacity: type.perHost }],
      AvailableVCpus: room * type.vcpus,
    },
    Instances: instances.map((one) => ({
      ...{ InstanceId: one.id, InstanceType: INSTANCE_TYPES.get(one.type.name)?.name, OwnerId: ACCOUNT },
    })),
  };
}

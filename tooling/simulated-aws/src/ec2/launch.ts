/** Launches of instances: as many as capacity, quotas and addresses allow. */

import type { Instance as ShownInstance, Reservation, RunInstancesRequest } from '@aws-sdk/client-ec2';
import { faultOf, type AwsCall } from '../call.js';
import { AwsError } from '../protocol/aws-error.js';
import { refusal } from '../protocol/service-errors.js';
import { hostQuota, vcpuQuota, volumeQuotas } from '../quotas.js';
import type { Region } from '../region.js';
import { ACCOUNT, KMS_KEY_ARN } from '../settings.js';
import { newInterface, takeAddresses } from './interfaces.js';
import { planLaunch, type LaunchPlan } from './launch-plan.js';
import { begin, currentState } from './lifecycle.js';
import { isActive, type Host, type Instance } from './records.js';
import { showInstance } from './show-instance.js';
import { KINDS } from './table.js';
import { newVolume, volumeUsage } from './volumes.js';

/** The facts of a launch beyond its plan. */
export interface LaunchOrigin {
  readonly clientToken: string;
  readonly fleetId?: string;
  readonly tags?: ReadonlyMap<string, string>;
  /** Tags of the volumes, beside those of the launch template. */
  readonly volumeTags?: ReadonlyMap<string, string> | undefined;
}

export function runInstances(region: Region, input: RunInstancesRequest, call: AwsCall): Reservation {
  return region.idempotency.run(call.operation, input, () => {
    const plan = planLaunch(region, input, call);
    takeTokens(region, plan.input.MaxCount ?? 1);
    const count = launchable(region, plan, plan.input.MinCount ?? 1, plan.input.MaxCount ?? 1);
    const instances = launch(region, plan, count, { clientToken: input.ClientToken ?? '' }, call);
    return () => {
      const isOver = (one: Instance): boolean =>
        currentState(one) === 'terminated' || region.instances.get(one.id) === undefined;
      if (instances.every(isOver)) throw terminated();
      return reservationOf(region, instances, region.now);
    };
  });
}

function terminated(): AwsError {
  const message = 'The instances of the launch with this client token have been terminated.';
  return new AwsError('IdempotentInstanceTerminated', message);
}

/** Takes the tokens of a launch. Throws if there are too few. */
export function takeTokens(region: Region, count: number): void {
  if (region.settings.throttles && !region.throttle.takeInstances('RunInstances', count)) {
    throw refusal('ec2', 'throttled');
  }
}

/** Returns how many instances can be launched. Throws the reason if there are less than `min`. */
export function launchable(region: Region, plan: LaunchPlan, min: number, max: number): number {
  const limits = [
    quotaLimit(region, plan),
    priceLimit(region, plan),
    addressLimit(plan),
    plan.tenancy === 'host' ? hostLimit(region, plan) : capacityLimit(region, plan),
  ];
  let count = max;
  for (const { room, code, message } of limits) {
    const wanted = region.settings.partialAtQuota || !QUOTA_CODES.has(code) ? min : count;
    if (room < wanted) throw new AwsError(code, message, code === 'InsufficientInstanceCapacity' ? 500 : 400);
    count = Math.min(count, room);
  }
  return count;
}

/** A limit, with the error of a launch that exceeds it. */
interface Limit {
  /** Number of instances that can be added. */
  readonly room: number;
  readonly code: string;
  readonly message: string;
}

const QUOTA_CODES: ReadonlySet<string> = new Set(['VcpuLimitExceeded', 'MaxSpotInstanceCountExceeded']);

function quotaLimit(region: Region, { type, market, tenancy }: LaunchPlan): Limit {
  const code = vcpuQuota(type.name, market);
  const quota = code === undefined || tenancy === 'host' ? Infinity : region.quotas.value(code);
  const used = region.instances
    .all()
    .filter((one) => isActive(one) && one.tenancy !== 'host' && vcpuQuota(one.type.name, one.market) === code)
    .reduce((sum, one) => sum + one.type.vcpus, 0);
  const room = Math.max(0, Math.floor((quota - used) / type.vcpus));
  if (market === 'spot') {
    return { room, code: 'MaxSpotInstanceCountExceeded', message: 'Max spot instance count exceeded' };
  }
  const message = `You have requested more vCPU capacity than your current vCPU limit of ${quota} allows \
for the instance bucket that the specified instance type belongs to.`;
  return { room, code: 'VcpuLimitExceeded', message };
}

function priceLimit(region: Region, { type, market, maxPrice, network }: LaunchPlan): Limit {
  const price = region.world.capacity.spotPrice(type.name, network.zone);
  const isTooLow = market === 'spot' && maxPrice !== undefined && Number(maxPrice) < price;
  const message = `Your Spot request price of ${maxPrice} is lower than the minimum required Spot request \
fulfillment price of ${price}.`;
  return { room: isTooLow ? 0 : Infinity, code: 'SpotMaxPriceTooLow', message };
}

function addressLimit({ network: { subnet, existing } }: LaunchPlan): Limit {
  const message = `There are not enough free addresses in subnet '${subnet.id}' to satisfy the requested \
number of instances.`;
  const room = existing === undefined ? Math.max(0, subnet.capacity - subnet.used.size) : 1;
  return { room, code: 'InsufficientFreeAddressesInSubnet', message };
}

function capacityLimit(region: Region, { type, market, network: { zone } }: LaunchPlan): Limit {
  const room = region.world.capacity.available(type.name, market, zone, region.instances.all());
  const message =
    market === 'spot'
      ? 'There is no Spot capacity available that matches your request.'
      : `We currently do not have sufficient ${type.name} capacity in the Availability Zone you requested (${zone}).`;
  return { room, code: 'InsufficientInstanceCapacity', message };
}

function hostLimit(region: Region, plan: LaunchPlan): Limit {
  const hosts = plan.host === undefined ? automaticHosts(region, plan) : [plan.host];
  const room = hosts.reduce((sum, host) => sum + roomOf(region, host), 0);
  if (hosts.length === 0) {
    return { room, code: 'IncompatibleHostRequirements', message: 'There are no available or compatible hosts.' };
  }
  return { room, code: 'InsufficientCapacityOnHost', message: 'There is not enough capacity on the Dedicated Host' };
}

/** Returns the available hosts that accept instances without naming them. */
function automaticHosts(region: Region, { type, network: { zone } }: LaunchPlan): readonly Host[] {
  return region.hosts
    .all()
    .filter(
      (host) =>
        host.autoPlacement === 'on' &&
        host.instanceType.name === type.name &&
        host.zone === zone &&
        host.releasedAt === undefined &&
        host.availableAt <= region.now,
    );
}

/** Returns how many more instances fit on a host. */
export function roomOf(region: Region, host: Host): number {
  const used = region.instances
    .all()
    .filter((one) => one.hostId === host.id && one.history.at(-1)?.state !== 'terminated');
  return Math.max(0, host.instanceType.perHost - used.length);
}

/** Launches instances that `launchable` has counted. */
export function launch(
  region: Region,
  plan: LaunchPlan,
  count: number,
  origin: LaunchOrigin,
  call: AwsCall,
): readonly Instance[] {
  const reservationId = region.newId('r');
  const failure = failureOf(region, plan, count, call);
  return Array.from({ length: count }, (_, index) => {
    const shown =
      plan.market === 'spot' && !region.settings.spotShowsCall
        ? { clientToken: region.newId('r'), index: 0 }
        : { clientToken: origin.clientToken, index };
    const instance = newInstance(region, plan, { ...origin, reservationId, ...shown });
    region.instances.add(instance);
    begin(region, instance, failure);
    return instance;
  });
}

/** Returns why the instances end right after their launch; undefined if they do not. */
function failureOf(region: Region, plan: LaunchPlan, count: number, call: AwsCall): Instance['stateReason'] {
  const fault = faultOf(call, 'launch-failure');
  if (fault !== undefined) return { code: fault.code, message: `${fault.code}: ${fault.message}` };
  const foreignKey = plan.volumes.find(({ kmsKeyId }) => kmsKeyId !== undefined && kmsKeyId !== KMS_KEY_ARN);
  if (foreignKey !== undefined) {
    const code = 'Client.InvalidKMSKey.InvalidState';
    return { code, message: `${code}: The KMS key provided is in an incorrect state` };
  }
  const exceeded = plan.volumes.some(({ volumeType, sizeGib, iops = 0 }) => {
    const codes = volumeQuotas(volumeType);
    const used = volumeUsage(region, volumeType);
    const isTooLarge = used.gib + count * sizeGib > region.quotas.value(codes.storage) * 1024;
    return isTooLarge || (codes.iops !== undefined && used.iops + count * iops > region.quotas.value(codes.iops));
  });
  const code = 'Client.VolumeLimitExceeded';
  return exceeded ? { code, message: `${code}: Volume limit exceeded` } : undefined;
}

function newInstance(
  region: Region,
  plan: LaunchPlan,
  {
    clientToken,
    fleetId,
    tags,
    volumeTags,
    reservationId,
    index,
  }: LaunchOrigin & { readonly reservationId: string; readonly index: number },
): Instance {
  const { input, image, type, network, tenancy } = plan;
  const own = plan.tags.get('instance') ?? new Map<string, string>();
  const resource = region.newResource(KINDS.instance, new Map([...own, ...(tags ?? []), ...plan.systemTags]));
  const host =
    tenancy === 'host' ? (plan.host ?? automaticHosts(region, plan).find((one) => roomOf(region, one) > 0)) : undefined;
  const attachment = {
    instanceId: resource.id,
    index: 0,
    deleteOnTermination: network.deleteOnTermination,
    at: region.now,
  };
  const nic =
    network.existing ??
    region.interfaces.add(
      newInterface(region, {
        ...takeAddresses(network.subnet, network.ipv6Count),
        subnetId: network.subnet.id,
        groupIds: network.groupIds,
        description: network.description,
        publicIp: network.publicIp ? region.newPublicIp() : undefined,
        tags: plan.tags.get('network-interface'),
      }),
    );
  nic.attachment = attachment;
  const volumes = plan.volumes.map(({ device, deleteOnTermination, ...volume }) => {
    const ownTags = new Map([...(plan.tags.get('volume') ?? []), ...(volumeTags ?? [])]);
    const created = newVolume(region, { ...volume, zone: network.zone, tags: ownTags });
    created.attachment = { instanceId: resource.id, device, deleteOnTermination, at: region.now };
    return region.volumes.add(created);
  });
  return {
    ...resource,
    ...{ reservationId, type, tenancy, clientToken, fleetId, launchIndex: index },
    imageId: image.id,
    market: plan.market,
    maxPrice: plan.maxPrice,
    zone: network.zone,
    subnetId: network.subnet.id,
    vpcId: network.subnet.vpcId,
    groupIds: nic.groupIds,
    keyName: plan.keyName,
    hostId: host?.id,
    spotRequestId: plan.market === 'spot' ? newSpotRequest(region, plan, resource.id) : undefined,
    userData: plan.userData,
    profileArn: plan.profileArn,
    metadata: metadataOf(plan),
    cpuOptions: { CoreCount: type.cores, ThreadsPerCore: type.vcpus / type.cores, ...input.CpuOptions },
    ebsOptimized: input.EbsOptimized ?? false,
    monitored: input.Monitoring?.Enabled ?? false,
    protectedFromTermination: input.DisableApiTermination ?? false,
    shutdownBehavior: input.InstanceInitiatedShutdownBehavior ?? 'stop',
    architecture: image.architecture,
    platform: image.platform,
    rootDeviceName: image.rootDeviceName,
    interfaceIds: [nic.id],
    volumeIds: volumes.map(({ id }) => id),
    history: [],
    addressAt: Infinity,
    stateReason: undefined,
    transition: '',
    interruptedAt: undefined,
  };
}

/** An image may require tokens of IMDSv2. */
function metadataOf({ input: { MetadataOptions: options = {} }, image }: LaunchPlan): Instance['metadata'] {
  return {
    ...{ State: 'applied', HttpTokens: image.imdsSupport === 'v2.0' ? 'required' : 'optional' },
    ...{ HttpPutResponseHopLimit: image.imdsSupport === 'v2.0' ? 2 : 1, HttpEndpoint: 'enabled' },
    ...{ HttpProtocolIpv6: 'disabled', InstanceMetadataTags: 'disabled' },
    ...Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)),
  };
}

function newSpotRequest(region: Region, plan: LaunchPlan, instanceId: string): string {
  const request = region.spotRequests.add({
    ...region.newResource(KINDS.spotRequest, plan.tags.get('spot-instances-request')),
    ...{ instanceId, instanceType: plan.type.name, zone: plan.network.zone, maxPrice: plan.maxPrice },
    ...{ state: 'active', status: 'fulfilled' },
  });
  return request.id;
}

export function reservationOf(region: Region, instances: readonly Instance[], asOf: number): Reservation {
  const [first] = instances;
  return {
    ReservationId: first?.reservationId,
    OwnerId: ACCOUNT,
    Groups: [],
    Instances: instances.map((instance): ShownInstance => showInstance(region, instance, asOf)),
  };
}

/** Returns the number of hosts of a family that count against its quota, with the quota. */
export function hostUsage(region: Region, family: string): { readonly used: number; readonly quota: number } {
  const code = hostQuota(family);
  const hosts = region.hosts
    .all()
    .filter((host) => host.instanceType.family === family && host.releasedAt === undefined);
  return { used: hosts.length, quota: code === undefined ? 0 : region.quotas.value(code) };
}

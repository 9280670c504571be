/** Operations on instances. */

import type {
  DescribeInstanceAttributeRequest,
  DescribeInstancesRequest,
  DescribeInstancesResult,
  DescribeInstanceStatusRequest,
  DescribeInstanceStatusResult,
  DescribeSpotInstanceRequestsRequest,
  DescribeSpotInstanceRequestsResult,
  DescribeSpotPriceHistoryRequest,
  DescribeSpotPriceHistoryResult,
  CancelSpotInstanceRequestsRequest,
  CancelSpotInstanceRequestsResult,
  GetConsoleOutputRequest,
  GetConsoleOutputResult,
  InstanceAttribute,
  InstanceStateChange,
  ModifyInstanceAttributeRequest,
  Reservation,
  RunInstancesRequest,
  StartInstancesRequest,
  StartInstancesResult,
  StopInstancesRequest,
  StopInstancesResult,
  TerminateInstancesRequest,
  TerminateInstancesResult,
  _InstanceType,
} from '@aws-sdk/client-ec2';
import { operation, type AwsCall, type Handlers } from '../call.js';
import { AwsError, invalidValue } from '../protocol/aws-error.js';
import { refusal } from '../protocol/service-errors.js';
import type { Region } from '../region.js';
import { INSTANCE_TYPES } from './instance-types.js';
import { reservationOf, runInstances } from './launch.js';
import { currentState, start, stop, terminate, TERMINATED_BY_USER } from './lifecycle.js';
import { filtered, filteredBy, pageOf, pageOfConstant, refusePaging, type Filterable } from './lists.js';
import { stateAt, type Instance, type SpotRequest } from './records.js';
import { publicIpOf, shownState, STATE_CODES } from './show-instance.js';
import { shownTags } from './tags.js';

/** Maximum number of instances that one call can name. */
const MAX_NAMED = 1000;

export function instanceHandlers(regionOf: (call: AwsCall) => Region): Handlers {
  return {
    RunInstances: operation<RunInstancesRequest, Reservation>((input, call) =>
      runInstances(regionOf(call), input, call),
    ),
    DescribeInstances: operation<DescribeInstancesRequest, DescribeInstancesResult>((input, call) =>
      describeInstances(regionOf(call), input, call),
    ),
    DescribeInstanceStatus: operation<DescribeInstanceStatusRequest, DescribeInstanceStatusResult>((input, call) =>
      describeStatus(regionOf(call), input, call),
    ),
    TerminateInstances: operation<TerminateInstancesRequest, TerminateInstancesResult>((input, call) => ({
      TerminatingInstances: terminateInstances(regionOf(call), input.InstanceIds ?? [], call),
    })),
    StopInstances: operation<StopInstancesRequest, StopInstancesResult>((input, call) => {
      const region = regionOf(call);
      const instances = named(region, input.InstanceIds ?? [], call);
      takeTokens(region, 'StopInstances', instances.length);
      const spot = instances.find(({ market }) => market === 'spot');
      if (spot !== undefined) {
        const message = `You can't stop the Spot Instance '${spot.id}': its Spot Instance request is a one-time one.`;
        throw new AwsError('UnsupportedOperation', message);
      }
      const StoppingInstances = changes(instances, (each) => stop(region, each, call.now, TERMINATED_BY_USER));
      return { StoppingInstances };
    }),
    StartInstances: operation<StartInstancesRequest, StartInstancesResult>((input, call) => {
      const region = regionOf(call);
      const instances = named(region, input.InstanceIds ?? [], call);
      takeTokens(region, 'StartInstances', instances.length);
      const other = instances.find((each) => currentState(each) !== 'stopped' && currentState(each) !== 'running');
      if (other !== undefined) {
        const message = `The instance '${other.id}' is not in a state from which it can be started.`;
        throw new AwsError('IncorrectInstanceState', message);
      }
      const stopped = instances.filter((each) => currentState(each) === 'stopped');
      return { StartingInstances: changes(stopped, (each) => start(region, each)) };
    }),
    RebootInstances: operation<TerminateInstancesRequest, object>((input, call) => {
      named(regionOf(call), input.InstanceIds ?? [], call);
      return {};
    }),
    GetConsoleOutput: operation<GetConsoleOutputRequest, GetConsoleOutputResult>((input, call) => {
      const instance = regionOf(call).instances.one(input.InstanceId ?? '', call.asOf);
      const Output = Buffer.from(`Booting ${instance.imageId}\n`).toString('base64');
      return { InstanceId: instance.id, Output, Timestamp: new Date(call.now) };
    }),
    DescribeInstanceAttribute: operation<DescribeInstanceAttributeRequest, InstanceAttribute>((input, call) => {
      const instance = regionOf(call).instances.one(input.InstanceId ?? '', call.asOf);
      return { InstanceId: instance.id, ...attributeOf(instance, input.Attribute ?? '') };
    }),
    ModifyInstanceAttribute: operation<ModifyInstanceAttributeRequest, object>((input, call) => {
      const instance = regionOf(call).instances.one(input.InstanceId ?? '', call.asOf);
      const isProtected = input.DisableApiTermination?.Value;
      if (isProtected === undefined) {
        throw new AwsError('UnsupportedOperation', 'The simulation changes DisableApiTermination only');
      }
      instance.protectedFromTermination = isProtected;
      return {};
    }),
    DescribeSpotInstanceRequests: operation<DescribeSpotInstanceRequestsRequest, DescribeSpotInstanceRequestsResult>(
      (input, call) => {
        const region = regionOf(call);
        const { SpotInstanceRequestIds: ids } = input;
        const seen =
          ids === undefined ? region.spotRequests.seen(call.asOf) : region.spotRequests.require(ids, call.asOf);
        const found = filtered(seen, input.Filters, SPOT_FILTERS);
        const { items, NextToken } = pageOf(found, input, region.settings.pageSize);
        return { SpotInstanceRequests: items.map((request) => shownSpotRequest(region, request)), NextToken };
      },
    ),
    CancelSpotInstanceRequests: operation<CancelSpotInstanceRequestsRequest, CancelSpotInstanceRequestsResult>(
      (input, call) => {
        const region = regionOf(call);
        const requests = region.spotRequests.require(input.SpotInstanceRequestIds ?? [], call.asOf);
        for (const request of requests) {
          request.state = 'cancelled';
          request.status = 'request-canceled-and-instance-running';
        }
        const CancelledSpotInstanceRequests = requests.map(({ id }) => ({
          ...{ SpotInstanceRequestId: id, State: 'cancelled' as const },
        }));
        return { CancelledSpotInstanceRequests };
      },
    ),
    DescribeSpotPriceHistory: operation<DescribeSpotPriceHistoryRequest, DescribeSpotPriceHistoryResult>(
      (input, call) => spotPrices(regionOf(call), input, call),
    ),
  };
}

const INSTANCE_FILTERS = (region: Region, asOf: number): Filterable<Instance> => ({
  'instance-id': ({ id }) => id,
  'instance-state-name': (instance) => stateAt(instance, asOf),
  'instance-state-code': (instance) => String(STATE_CODES[stateAt(instance, asOf)]),
  'instance-type': ({ type }) => type.name,
  'instance-lifecycle': ({ market }) => (market === 'spot' ? 'spot' : undefined),
  'client-token': ({ clientToken }) => clientToken,
  'launch-index': ({ launchIndex }) => String(launchIndex),
  'reservation-id': ({ reservationId }) => reservationId,
  'image-id': ({ imageId }) => imageId,
  'key-name': ({ keyName }) => keyName,
  'availability-zone': ({ zone }) => zone,
  'subnet-id': (instance) => (stateAt(instance, asOf) === 'terminated' ? undefined : instance.subnetId),
  'vpc-id': (instance) => (stateAt(instance, asOf) === 'terminated' ? undefined : instance.vpcId),
  'group-id': ({ groupIds }) => groupIds,
  'instance.group-id': ({ groupIds }) => groupIds,
  'host-id': ({ hostId }) => hostId,
  tenancy: ({ tenancy }) => tenancy,
  architecture: ({ architecture }) => architecture,
  platform: ({ platform }) => platform,
  'spot-instance-request-id': ({ spotRequestId }) => spotRequestId,
  'ip-address': (instance) => publicIpOf(region, instance, asOf),
  'private-ip-address': ({ interfaceIds }) => interfaceIds.map((id) => region.interfaces.get(id)?.privateIp),
  'network-interface.network-interface-id': ({ interfaceIds }) => interfaceIds,
  'block-device-mapping.volume-id': ({ volumeIds }) => volumeIds,
  'state-reason-code': ({ stateReason }) => stateReason?.code,
  'iam-instance-profile.arn': ({ profileArn }) => profileArn,
});

const SPOT_FILTERS: Filterable<SpotRequest> = {
  'spot-instance-request-id': ({ id }) => id,
  state: ({ state }) => state,
  'status-code': ({ status }) => status,
  'instance-id': ({ instanceId }) => instanceId,
  'launch.instance-type': ({ instanceType }) => instanceType,
};

function describeInstances(region: Region, input: DescribeInstancesRequest, call: AwsCall): DescribeInstancesResult {
  const { InstanceIds: ids, Filters: filters } = input;
  refusePaging(ids, input, 'instancesSet');
  const seen = ids === undefined ? region.instances.seen(call.asOf) : region.instances.require(ids, call.asOf);
  const found = filtered(seen, filters, INSTANCE_FILTERS(region, call.asOf));
  // Named instances come in one answer.
  const { items, NextToken } =
    ids === undefined ? pageOf(found, input, region.settings.pageSize) : { items: found, NextToken: undefined };
  const reservations = new Map<string, Instance[]>();
  for (const instance of items) {
    const together = reservations.get(instance.reservationId) ?? [];
    together.push(instance);
    reservations.set(instance.reservationId, together);
  }
  return {
    Reservations: [...reservations.values()].map((instances) => reservationOf(region, instances, call.asOf)),
    NextToken,
  };
}

function describeStatus(
  region: Region,
  input: DescribeInstanceStatusRequest,
  call: AwsCall,
): DescribeInstanceStatusResult {
  const { InstanceIds: ids, IncludeAllInstances: all = false } = input;
  refusePaging(ids, input, 'instancesSet');
  const seen = ids === undefined ? region.instances.seen(call.asOf) : region.instances.require(ids, call.asOf);
  const found = filtered(seen, input.Filters, INSTANCE_FILTERS(region, call.asOf));
  const shown = found.filter((instance) => all || stateAt(instance, call.asOf) === 'running');
  const { items, NextToken } = pageOf(shown, input, region.settings.pageSize);
  const InstanceStatuses = items.map((instance) => {
    const state = stateAt(instance, call.asOf);
    const status = { Status: state === 'running' ? ('ok' as const) : ('not-applicable' as const) };
    return {
      ...{ InstanceId: instance.id, AvailabilityZone: instance.zone, InstanceState: shownState(state) },
      ...{ InstanceStatus: status, SystemStatus: status },
    };
  });
  return { InstanceStatuses, NextToken };
}

/** Returns the named instances. Throws if one of them is unknown. */
function named(region: Region, ids: readonly string[], { asOf }: AwsCall): readonly Instance[] {
  if (ids.length > MAX_NAMED) throw invalidValue(`At most ${MAX_NAMED} instances can be named`);
  return region.instances.require([...new Set(ids)], asOf);
}

function terminateInstances(region: Region, ids: readonly string[], call: AwsCall): InstanceStateChange[] {
  const instances = named(region, ids, call);
  const guarded = instances.find(({ protectedFromTermination }) => protectedFromTermination);
  if (guarded !== undefined) {
    const hint = `Modify its 'disableApiTermination' instance attribute and try again.`;
    const message = `The instance '${guarded.id}' may not be terminated. ${hint}`;
    throw new AwsError('OperationNotPermitted', message);
  }
  takeTokens(region, 'TerminateInstances', instances.length);
  return changes(instances, (instance) => terminate(region, instance, call.now, TERMINATED_BY_USER));
}

function takeTokens(region: Region, operationName: string, count: number): void {
  if (region.settings.throttles && !region.throttle.takeInstances(operationName, count))
    throw refusal('ec2', 'throttled');
}

function changes(instances: readonly Instance[], change: (instance: Instance) => void): InstanceStateChange[] {
  return instances.map((instance) => {
    const PreviousState = shownState(currentState(instance));
    change(instance);
    return { InstanceId: instance.id, PreviousState, CurrentState: shownState(currentState(instance)) };
  });
}

function attributeOf(instance: Instance, attribute: string): InstanceAttribute {
  switch (attribute) {
    case 'userData': {
      return { UserData: { Value: instance.userData } };
    }
    case 'instanceType': {
      return { InstanceType: { Value: instance.type.name } };
    }
    case 'disableApiTermination': {
      return { DisableApiTermination: { Value: instance.protectedFromTermination } };
    }
    case 'instanceInitiatedShutdownBehavior': {
      return { InstanceInitiatedShutdownBehavior: { Value: instance.shutdownBehavior } };
    }
    case 'ebsOptimized': {
      return { EbsOptimized: { Value: instance.ebsOptimized } };
    }
    default: {
      throw new AwsError('UnsupportedOperation', `The simulation does not have the attribute ${attribute}`);
    }
  }
}

function shownSpotRequest(
  region: Region,
  request: SpotRequest,
): NonNullable<DescribeSpotInstanceRequestsResult['SpotInstanceRequests']>[number] {
  return {
    ...{ SpotInstanceRequestId: request.id, InstanceId: request.instanceId, State: request.state, Type: 'one-time' },
    Status: { Code: request.status, Message: request.status, UpdateTime: new Date(region.now) },
    ...{
      CreateTime: new Date(request.createdAt),
      LaunchedAvailabilityZone: request.zone,
      Tags: shownTags(request.tags),
    },
    SpotPrice: request.maxPrice ?? String(INSTANCE_TYPES.get(request.instanceType)?.price ?? 0),
  };
}

function spotPrices(
  region: Region,
  input: DescribeSpotPriceHistoryRequest,
  { now }: AwsCall,
): DescribeSpotPriceHistoryResult {
  const { capacity } = region.world;
  const zones = region.zones.filter((zone) => (input.AvailabilityZone ?? zone) === zone);
  const types = (input.InstanceTypes ?? [...INSTANCE_TYPES.keys()]).map((name) => INSTANCE_TYPES.get(name));
  const spot = types.filter((type) => type !== undefined).filter((type) => type.spot);
  const prices = zones.flatMap((zone) =>
    spot
      .filter(({ name }) => capacity.isOffered(name, zone))
      .map(({ name }) => ({
        ...{ AvailabilityZone: zone, InstanceType: name as _InstanceType, ProductDescription: 'Linux/UNIX' as const },
        ...{ SpotPrice: capacity.spotPrice(name, zone).toFixed(6), Timestamp: new Date(now) },
      })),
  );
  const found = filteredBy(prices, input.Filters, {
    'availability-zone': ({ AvailabilityZone: zone }) => zone,
    'instance-type': ({ InstanceType: type }) => type,
    'product-description': ({ ProductDescription: product }) => product,
  });
  const { items, NextToken } = pageOfConstant(found, input, region.settings.pageSize);
  return { SpotPriceHistory: [...items], NextToken };
}

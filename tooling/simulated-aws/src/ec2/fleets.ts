/** Fleets of the type `instant`: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/instant-fleet.html. */

import type {
  _InstanceType,
  CreateFleetError,
  CreateFleetInstance,
  CreateFleetRequest,
  CreateFleetResult,
  DeleteFleetsRequest,
  DeleteFleetsResult,
  DescribeFleetsRequest,
  DescribeFleetsResult,
  FleetLaunchTemplateOverridesRequest,
  LaunchTemplateAndOverridesResponse,
  RunInstancesRequest,
} from '@aws-sdk/client-ec2';
import type { Market } from '../api.js';
import { faultOf, operation, type AwsCall, type Handlers } from '../call.js';
import { AwsError, invalidCombination, invalidValue, missing, refuseUnsupported } from '../protocol/aws-error.js';
import type { Region } from '../region.js';
import { INSTANCE_TYPES } from './instance-types.js';
import { launch, launchable, takeTokens } from './launch.js';
import { planLaunch, type LaunchPlan } from './launch-plan.js';
import { terminate, TERMINATED_BY_USER } from './lifecycle.js';
import { pageOf } from './lists.js';
import type { Fleet, Instance } from './records.js';
import { KINDS } from './table.js';
import { shownTags, tagsByType } from './tags.js';
import { templateVersion } from './templates.js';

/** A pool of instances: a launch template with an override. */
interface FleetPool {
  readonly description: LaunchTemplateAndOverridesResponse;
  readonly priority: number;
  readonly input: RunInstancesRequest;
}

/** A pool whose launch is possible but for capacity, quotas and addresses. */
interface PlannedPool extends FleetPool {
  readonly plan: LaunchPlan;
}

const MAX_POOLS = 300;

export function fleetHandlers(regionOf: (call: AwsCall) => Region): Handlers {
  return {
    CreateFleet: operation<CreateFleetRequest, CreateFleetResult>((input, call) =>
      createFleet(regionOf(call), input, call),
    ),
    DescribeFleets: operation<DescribeFleetsRequest, DescribeFleetsResult>((input, call) => {
      const region = regionOf(call);
      // Without ids, EC2 lists no fleets of this type.
      const found = region.fleets.require(input.FleetIds ?? [], call.asOf);
      const { items, NextToken } = pageOf(found, input, region.settings.pageSize);
      return { Fleets: items.map((fleet) => shown(region, fleet)), NextToken };
    }),
    DeleteFleets: operation<DeleteFleetsRequest, DeleteFleetsResult>((input, call) => {
      const region = regionOf(call);
      const fleets = region.fleets.require(input.FleetIds ?? [], call.asOf);
      if (input.TerminateInstances !== true) {
        throw invalidCombination('A fleet of the type instant can only be deleted together with its instances');
      }
      const SuccessfulFleetDeletions = fleets.map((fleet) => {
        for (const instance of instancesOf(region, fleet)) terminate(region, instance, call.now, TERMINATED_BY_USER);
        fleet.state = 'deleted';
        const states = { PreviousFleetState: 'active', CurrentFleetState: 'deleted_terminating' } as const;
        return { FleetId: fleet.id, ...states };
      });
      return { SuccessfulFleetDeletions, UnsuccessfulFleetDeletions: [] };
    }),
  };
}

function createFleet(region: Region, input: CreateFleetRequest, call: AwsCall): CreateFleetResult {
  if (input.Type !== 'instant') throw new AwsError('UnsupportedOperation', 'The simulation has instant fleets only');
  return region.idempotency.run(call.operation, input, () => {
    refuseUnsupported(input, [
      'ReservedCapacityOptions',
      'ValidFrom',
      'ValidUntil',
      'ReplaceUnhealthyInstances',
      'Context',
    ]);
    const byType = tagsByType(input.TagSpecifications, ['fleet', 'instance', 'volume']);
    if (byType.size > 0) call.authorize('ec2:CreateTags');
    call.authorize('ec2:RunInstances');
    const pools = poolsOf(region, input, call);
    const targets = targetsOf(input);
    takeTokens(region, targets.spot + targets['on-demand']);
    const resource = region.newResource(KINDS.fleet, byType.get('fleet'));
    const origin = {
      ...{ clientToken: `${resource.id}-${call.requestId.slice(0, 8)}`, fleetId: resource.id },
      tags: new Map([...(byType.get('instance') ?? []), ['aws:ec2:fleet-id', resource.id]]),
      volumeTags: byType.get('volume'),
    };
    const errors: CreateFleetError[] = [];
    const launched = (['on-demand', 'spot'] as const).flatMap((market) =>
      targets[market] > 0 ? fill(region, input, { market, target: targets[market], pools, errors, origin }, call) : [],
    );
    const instanceIds = launched.flatMap(({ InstanceIds: ids = [] }) => ids);
    const total = targets.spot + targets['on-demand'];
    region.fleets.add({ ...resource, clientToken: input.ClientToken, instanceIds, total, state: 'active' });
    return () => ({ FleetId: resource.id, Errors: errors, Instances: launched });
  });
}

function targetsOf({ TargetCapacitySpecification: target }: CreateFleetRequest): Readonly<Record<Market, number>> {
  const { TotalTargetCapacity: total = 0, DefaultTargetCapacityType: kind = 'on-demand' } = target ?? {};
  if (total < 1) throw invalidValue(`Value (${total}) for parameter totalTargetCapacity is invalid.`);
  if (kind !== 'spot' && kind !== 'on-demand') {
    throw new AwsError('UnsupportedOperation', `The simulation has no target capacity of the type ${kind}`);
  }
  const { SpotTargetCapacity: spot, OnDemandTargetCapacity: onDemand } = target ?? {};
  const given = (spot ?? 0) + (onDemand ?? 0);
  if (given > total) throw invalidCombination('The target capacities exceed the total target capacity');
  const rest = total - given;
  return {
    spot: (spot ?? 0) + (kind === 'spot' ? rest : 0),
    'on-demand': (onDemand ?? 0) + (kind === 'on-demand' ? rest : 0),
  };
}

function poolsOf(region: Region, input: CreateFleetRequest, call: AwsCall): readonly FleetPool[] {
  const { LaunchTemplateConfigs: configs = [], SpotOptions: spot, OnDemandOptions: onDemand } = input;
  if (spot?.MinTargetCapacity !== undefined || onDemand?.MinTargetCapacity !== undefined) {
    throw new AwsError('UnsupportedOperation', 'The simulation has no minimum target capacity');
  }
  const pools = configs.flatMap(({ LaunchTemplateSpecification: specification, Overrides: overrides = [] }) => {
    if (specification === undefined) throw missing('LaunchTemplateSpecification');
    if (specification.Version === undefined) throw missing('LaunchTemplateSpecification.Version');
    const { template, version } = templateVersion(region, specification, call);
    const LaunchTemplateSpecification = { LaunchTemplateId: template.id, Version: String(version.version) };
    const all: readonly FleetLaunchTemplateOverridesRequest[] = overrides.length > 0 ? overrides : [{}];
    return all.map((override): FleetPool => {
      if (override.InstanceRequirements !== undefined || override.WeightedCapacity !== undefined) {
        throw new AwsError('UnsupportedOperation', 'The simulation has neither weights nor requirements of instances');
      }
      return {
        description: {
          LaunchTemplateSpecification,
          // An answer shows what the request describes.
          Overrides: override,
        },
        priority: override.Priority ?? Infinity,
        input: withOverride(LaunchTemplateSpecification, version.data.NetworkInterfaces, override),
      };
    });
  });
  if (pools.length === 0) throw missing('LaunchTemplateConfigs');
  if (pools.length > MAX_POOLS) throw new AwsError('InvalidFleetConfig', `At most ${MAX_POOLS} overrides are allowed`);
  return pools;
}

/** Returns the launch of an instance of a pool. */
function withOverride(
  LaunchTemplate: NonNullable<RunInstancesRequest['LaunchTemplate']>,
  interfaces: readonly object[] | undefined,
  override: FleetLaunchTemplateOverridesRequest,
): RunInstancesRequest {
  const {
    SubnetId: subnetId,
    AvailabilityZone: zone,
    InstanceType,
    ImageId,
    Placement,
    BlockDeviceMappings,
  } = override;
  const nics = interfaces?.map((nic, index) =>
    index === 0 && subnetId !== undefined ? { ...nic, SubnetId: subnetId } : nic,
  );
  return {
    ...{ MinCount: 1, MaxCount: 1, LaunchTemplate, InstanceType, ImageId },
    ...(nics === undefined ? { SubnetId: subnetId } : { NetworkInterfaces: nics }),
    ...(zone === undefined && Placement === undefined
      ? {}
      : { Placement: { ...Placement, AvailabilityZone: zone ?? Placement?.AvailabilityZone } }),
    ...(BlockDeviceMappings === undefined ? {} : { BlockDeviceMappings: BlockDeviceMappings }),
  };
}

interface Fill {
  readonly market: Market;
  readonly target: number;
  readonly pools: readonly FleetPool[];
  readonly errors: CreateFleetError[];
  readonly origin: Parameters<typeof launch>[3];
}

/** Launches instances of one market from the pools, in the order of the allocation strategy. */
function fill(
  region: Region,
  input: CreateFleetRequest,
  { market, target, pools, errors, origin }: Fill,
  call: AwsCall,
): CreateFleetInstance[] {
  const fault = faultOf(call, 'fleet-error');
  if (fault !== undefined) {
    const error = new AwsError(fault.code, fault.message);
    errors.push(...pools.map((pool) => shownError(pool, market, error)));
    return [];
  }
  const planned = pools.flatMap((pool): PlannedPool[] => {
    const maxPrice = pool.description.Overrides?.MaxPrice;
    const spot = { MarketType: 'spot' as const, SpotOptions: maxPrice === undefined ? {} : { MaxPrice: maxPrice } };
    const launchInput = market === 'spot' ? { ...pool.input, InstanceMarketOptions: spot } : pool.input;
    try {
      return [{ ...pool, plan: planLaunch(region, launchInput, call) }];
    } catch (error) {
      errors.push(shownError(pool, market, error));
      return [];
    }
  });
  const strategy =
    (market === 'spot' ? input.SpotOptions : input.OnDemandOptions)?.AllocationStrategy ?? 'lowest-price';
  const ordered = orderedBy(region, strategy, planned);
  const share = strategy === 'diversified' ? Math.ceil(target / Math.max(1, ordered.length)) : target;
  let left = target;
  return ordered.flatMap((pool): CreateFleetInstance[] => {
    if (left === 0) return [];
    try {
      const count = launchable(region, pool.plan, 1, Math.min(left, share));
      const instances = launch(region, pool.plan, count, origin, call);
      left -= count;
      return [shownInstances(pool, market, instances)];
    } catch (error) {
      errors.push(shownError(pool, market, error));
      return [];
    }
  });
}

function orderedBy(region: Region, strategy: string, pools: readonly PlannedPool[]): readonly PlannedPool[] {
  const { capacity } = region.world;
  const priceOf = ({ plan: { type, market, network } }: PlannedPool): number =>
    market === 'spot' ? capacity.spotPrice(type.name, network.zone) : type.price;
  const roomOf = ({ plan: { type, market, network } }: PlannedPool): number =>
    Math.min(1e9, capacity.available(type.name, market, network.zone, region.instances.all()));
  const byPrice = (a: PlannedPool, b: PlannedPool): number => priceOf(a) - priceOf(b);
  const byPriority = (a: PlannedPool, b: PlannedPool): number =>
    a.priority === b.priority ? 0 : a.priority - b.priority;
  const byRoom = (a: PlannedPool, b: PlannedPool): number => roomOf(b) - roomOf(a);
  const orders: Readonly<Record<string, (a: PlannedPool, b: PlannedPool) => number>> = {
    'lowest-price': byPrice,
    prioritized: byPriority,
    diversified: () => 0,
    'capacity-optimized': (a, b) => byRoom(a, b),
    'capacity-optimized-prioritized': (a, b) => byRoom(a, b) || byPriority(a, b),
    'price-capacity-optimized': (a, b) => byRoom(a, b) || byPrice(a, b),
  };
  return pools.toSorted(orders[strategy] ?? byPrice);
}

function shownError({ description }: FleetPool, market: Market, error: unknown): CreateFleetError {
  if (!(error instanceof AwsError)) throw error;
  // A throttled or forbidden call fails as a whole.
  if (error.code === 'UnauthorizedOperation' || error.code === 'RequestLimitExceeded') throw error;
  return {
    ...{ LaunchTemplateAndOverrides: description, Lifecycle: market },
    ErrorCode: error.code === 'Unsupported' ? 'InvalidFleetConfiguration' : error.code,
    ErrorMessage: error.message,
  };
}

function shownInstances(
  { description }: FleetPool,
  market: Market,
  instances: readonly Instance[],
): CreateFleetInstance {
  const [first] = instances;
  return {
    ...{ LaunchTemplateAndOverrides: description, Lifecycle: market, InstanceIds: instances.map(({ id }) => id) },
    InstanceType: INSTANCE_TYPES.get(first?.type.name ?? '')?.name as _InstanceType,
    ...(first?.platform === undefined ? {} : { Platform: 'Windows' }),
  };
}

function instancesOf(region: Region, { instanceIds }: Fleet): readonly Instance[] {
  return instanceIds.map((id) => region.instances.get(id)).filter((instance) => instance !== undefined);
}

function shown(region: Region, fleet: Fleet): NonNullable<DescribeFleetsResult['Fleets']>[number] {
  const instances = instancesOf(region, fleet);
  return {
    ...{ FleetId: fleet.id, Type: 'instant', ClientToken: fleet.clientToken, Tags: shownTags(fleet.tags) },
    FleetState: fleet.state === 'active' ? 'active' : 'deleted_terminating',
    CreateTime: new Date(fleet.createdAt),
    FulfilledCapacity: instances.length,
    TargetCapacitySpecification: { TotalTargetCapacity: fleet.total },
    Instances: instances.map((instance) => ({
      ...{ InstanceIds: [instance.id], InstanceType: instance.type.name as _InstanceType, Lifecycle: instance.market },
    })),
    Errors: [],
  };
}

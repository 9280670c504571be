/** Instance types and where they are offered. */

import type {
  _InstanceType,
  DescribeInstanceTypeOfferingsRequest,
  DescribeInstanceTypeOfferingsResult,
  DescribeInstanceTypesRequest,
  DescribeInstanceTypesResult,
} from '@aws-sdk/client-ec2';
import { operation, type AwsCall, type Handlers } from '../call.js';
import { AwsError, invalidCombination } from '../protocol/aws-error.js';
import type { Region } from '../region.js';
import { describeType, INSTANCE_TYPES, type InstanceType } from './instance-types.js';
import { filteredBy, pageOfConstant, type Filterable } from './lists.js';
import { zoneId } from './network.js';

/** DescribeInstanceTypes has smaller pages than other lists. */
const MAX_PAGE = 100;

const FILTERS: Filterable<InstanceType> = {
  'instance-type': ({ name }) => name,
  'processor-info.supported-architecture': ({ architecture }) => architecture,
  'supported-usage-class': ({ spot }) => (spot ? ['on-demand', 'spot'] : ['on-demand']),
  'bare-metal': ({ bareMetal }) => String(bareMetal),
  'current-generation': (type) => String(describeType(type).CurrentGeneration),
  'vcpu-info.default-vcpus': ({ vcpus }) => String(vcpus),
  'vcpu-info.default-cores': ({ cores }) => String(cores),
  'memory-info.size-in-mib': ({ memoryGib }) => String(memoryGib * 1024),
  'dedicated-hosts-supported': ({ dedicatedHosts }) => String(dedicatedHosts),
  'burstable-performance-supported': ({ burstable }) => String(burstable),
};

export function typeHandlers(regionOf: (call: AwsCall) => Region): Handlers {
  return {
    DescribeInstanceTypes: operation<DescribeInstanceTypesRequest, DescribeInstanceTypesResult>((input, call) => {
      const region = regionOf(call);
      const { InstanceTypes: names, MaxResults } = input;
      if (names !== undefined && MaxResults !== undefined) {
        throw invalidCombination('The parameter InstanceTypes cannot be used with the parameter MaxResults');
      }
      const inRegion = [...INSTANCE_TYPES.values()].filter(({ name }) => isIn(region, name));
      const absent = names?.filter((name) => !inRegion.some((type) => type.name === name)) ?? [];
      if (absent.length > 0) {
        const message = `The following supplied instance types do not exist: [${absent.join(', ')}]`;
        throw new AwsError('InvalidInstanceType', message);
      }
      const named = inRegion.filter(({ name }) => names?.includes(name as _InstanceType) ?? true);
      const size = Math.min(region.settings.pageSize, MAX_PAGE);
      const { items, NextToken } = pageOfConstant(filteredBy(named, input.Filters, FILTERS), input, size);
      return { InstanceTypes: items.map(describeType), NextToken };
    }),
    DescribeInstanceTypeOfferings: operation<DescribeInstanceTypeOfferingsRequest, DescribeInstanceTypeOfferingsResult>(
      (input, call) => {
        const region = regionOf(call);
        const { LocationType: locationType = 'region' } = input;
        const all = [...INSTANCE_TYPES.keys()].flatMap((name) =>
          locationsOf(region, name, locationType).map((location) => ({ name, location })),
        );
        const found = filteredBy(all, input.Filters, {
          ...{ 'instance-type': ({ name }) => name, location: ({ location }) => location },
        });
        const { items, NextToken } = pageOfConstant(found, input, region.settings.pageSize);
        const InstanceTypeOfferings = items.map(({ name, location }) => ({
          ...{ InstanceType: name as _InstanceType, Location: location, LocationType: locationType },
        }));
        return { InstanceTypeOfferings, NextToken };
      },
    ),
  };
}

function isIn(region: Region, name: string): boolean {
  return region.zones.some((zone) => region.world.capacity.isOffered(name, zone));
}

function locationsOf(region: Region, name: string, locationType: string): readonly string[] {
  if (locationType === 'region') return isIn(region, name) ? [region.name] : [];
  if (locationType === 'outpost') return [];
  const zones = region.zones.filter((zone) => region.world.capacity.isOffered(name, zone));
  return locationType === 'availability-zone' ? zones : zones.map(zoneId);
}

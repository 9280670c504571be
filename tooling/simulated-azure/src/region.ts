/** Resources of the subscription or location: resource groups, sizes, usages, and operation results. */

import type { JsonObject } from '@nodepool/core';
import type { Cloud } from './cloud.js';
import type { Answer } from '@nodepool/simulated-cloud';
import { published, type AzureContext, type AzureRoute } from './request-context.js';
import { textIn } from './fields.js';
import type { Machines } from './machines.js';
import { ArmError } from './api-error.js';
import { ACCOUNT, LOCATIONS, SAMPLE, SAMPLE_SIZES, type SampleSize } from './settings.js';

const LOCATION = '/subscriptions/:subscriptionId/providers/Microsoft.Compute/locations/:location';

export class Region {
  constructor(
    private readonly cloud: Cloud,
    private readonly machines: Machines,
  ) {}

  routes(): readonly AzureRoute[] {
    const { compute, resources } = this.cloud;
    return [
      published(resources, 'resourceGroups.get', 'resourceGroups.get', ({ params }) => ({
        status: 200,
        body: this.group(params[0] ?? ''),
      })),
      published(resources, 'resourceGroups.list', 'resourceGroups.list', (context) =>
        this.cloud.page(
          [...this.cloud.groups.keys()].map((name) => this.group(name)),
          context,
        ),
      ),
      published(resources, 'resourceGroups.put', 'resourceGroups.createOrUpdate', (context) => this.addGroup(context)),
      published(compute, 'skus.list', 'resourceSkus.list', (context) => this.skus(context)),
      published(compute, 'usages.list', 'usageOperations.list', (context) => this.usages(context)),
      {
        operation: 'operations.get',
        method: 'GET',
        path: `${LOCATION}/operations/:operation`,
        handle: ({ params }) => this.operation(params[1] ?? ''),
      },
      {
        operation: 'operations.result',
        method: 'GET',
        path: `${LOCATION}/results/:operation`,
        handle: ({ params }) => this.result(params[1] ?? ''),
      },
    ];
  }

  private group(name: string): JsonObject {
    this.cloud.requireGroup(name);
    const id = `/subscriptions/${ACCOUNT.subscriptionId}/resourceGroups/${name}`;
    const location = this.cloud.groups.get(name.toLowerCase()) ?? '';
    return { id, name, location, properties: { provisioningState: 'Succeeded' } };
  }

  private addGroup({ params, json }: AzureContext): Answer {
    const [name = ''] = params;
    const { groups } = this.cloud;
    const location = textIn(json(), 'location');
    const existing = groups.get(name.toLowerCase());
    if (!LOCATIONS.some((one) => one.name === location)) {
      throw new ArmError(400, 'LocationNotAvailableForResourceGroup', 'The provided location is not available.');
    }
    if (existing !== undefined && existing !== location) {
      throw new ArmError(409, 'InvalidResourceGroupLocation', `Invalid resource group location '${location}'.`);
    }
    groups.set(name.toLowerCase(), location);
    return { status: existing === undefined ? 201 : 200, body: this.group(name) };
  }

  private skus(context: AzureContext): Answer {
    const wanted = /^location eq '(.*)'$/.exec(context.query.get('$filter') ?? '')?.[1];
    // The published filter is by name, so this simulation does not accept a display name such as `Central US`.
    const isWanted = wanted === undefined || wanted.toLowerCase() === SAMPLE.location;
    const { missingSizes } = this.cloud.settings;
    const sizes = SAMPLE_SIZES.filter(({ name }) => isWanted && !missingSizes.includes(name));
    return this.cloud.page(sizes.map(skuOf), context);
  }

  private usages(context: AzureContext): Answer {
    const usages = [...this.cloud.limits].map(([value, limit]) => ({
      ...{ unit: 'Count', limit, currentValue: this.machines.used(value) },
      name: { value, localizedValue: value },
    }));
    return this.cloud.page(usages, context);
  }

  private operation(id: string): Answer {
    return { status: 200, body: this.cloud.operations.state(id), headers: this.retryAfter() };
  }

  private result(id: string): Answer {
    const result = this.cloud.operations.result(id);
    return result === undefined ? { status: 202, headers: this.retryAfter() } : { status: 200, body: result };
  }

  private retryAfter(): Record<string, string> {
    return { 'Retry-After': String(this.cloud.settings.retryAfterSeconds) };
  }
}

function skuOf({ name, family, cores, memoryGb, restricted, generations, cacheGb, spot }: SampleSize): JsonObject {
  const { location } = SAMPLE;
  const restriction = { type: 'Location', values: [location], reasonCode: 'NotAvailableForSubscription' };
  const capabilities = {
    vCPUs: cores,
    MemoryGB: memoryGb,
    HyperVGenerations: generations.join(),
    EphemeralOSDiskSupported: cacheGb > 0 ? 'True' : 'False',
    CachedDiskBytes: cacheGb * 2 ** 30,
    LowPriorityCapable: spot ? 'True' : 'False',
  };
  return {
    ...{ resourceType: 'virtualMachines', name, family, locations: [location] },
    locationInfo: [{ location, zones: ['1', '2', '3'] }],
    capabilities: Object.entries(capabilities).map(([key, value]) => ({ name: key, value: String(value) })),
    restrictions: restricted === true ? [restriction] : [],
  };
}

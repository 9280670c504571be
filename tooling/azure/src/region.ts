/** What belongs to the subscription or the location: resource groups, sizes, usages, and the ends of operations. */

import type { Cloud } from './cloud.js';
import { armPath, type Answer, type Exchange, type Route } from './exchange.js';
import type { Machines } from './machines.js';
import { Refusal } from './refusal.js';
import { ACCOUNT, SAMPLE, SAMPLE_SIZES, type SampleSize } from './settings.js';

const GROUP = armPath('resource[Gg]roups/([^/]+)');
const END = 'providers/Microsoft\\.Compute/locations/[^/]+';

export class Region {
  constructor(
    private readonly cloud: Cloud,
    private readonly machines: Machines,
  ) {}

  routes(): readonly Route[] {
    return [
      {
        operation: 'resourceGroups.get',
        method: 'GET',
        path: GROUP,
        handle: ({ params }) => this.group(params[0] ?? ''),
      },
      {
        operation: 'resourceGroups.put',
        method: 'PUT',
        path: GROUP,
        handle: ({ params }) => this.addGroup(params[0] ?? ''),
      },
      {
        operation: 'skus.list',
        method: 'GET',
        path: armPath('providers/Microsoft\\.Compute/skus'),
        handle: (exchange) => this.skus(exchange),
      },
      {
        operation: 'usages.list',
        method: 'GET',
        path: armPath(`${END}/usages`),
        handle: (exchange) => this.usages(exchange),
      },
      {
        operation: 'operations.get',
        method: 'GET',
        path: armPath(`${END}/operations/([^/]+)`),
        handle: ({ params }) => this.operation(params[0] ?? ''),
      },
      {
        operation: 'operations.result',
        method: 'GET',
        path: armPath(`${END}/results/([^/]+)`),
        handle: ({ params }) => this.result(params[0] ?? ''),
      },
    ];
  }

  private group(name: string): Answer {
    if (!this.cloud.groups.has(name.toLowerCase())) {
      throw new Refusal(404, 'ResourceGroupNotFound', `Resource group '${name}' could not be found.`);
    }
    const id = `/subscriptions/${ACCOUNT.subscriptionId}/resourceGroups/${name}`;
    return {
      status: 200,
      body: { id, name, location: SAMPLE.location, properties: { provisioningState: 'Succeeded' } },
    };
  }

  private addGroup(name: string): Answer {
    this.cloud.groups.add(name.toLowerCase());
    return { ...this.group(name), status: 201 };
  }

  private skus(exchange: Exchange): Answer {
    const skus = SAMPLE_SIZES.map((size) => {
      const sku = skuOf(size);
      this.cloud.checkAnswer('compute', 'ResourceSku', sku);
      return sku;
    });
    return this.cloud.page(skus, exchange);
  }

  private usages(exchange: Exchange): Answer {
    const usages = [...this.cloud.limits].map(([value, limit]) => {
      const usage = {
        unit: 'Count',
        currentValue: this.machines.used(value),
        limit,
        name: { value, localizedValue: value },
      };
      this.cloud.checkAnswer('compute', 'Usage', usage);
      return usage;
    });
    return this.cloud.page(usages, exchange);
  }

  private operation(id: string): Answer {
    return { status: 200, body: this.cloud.operations.state(id), headers: this.retryAfter() };
  }

  private result(id: string): Answer {
    const result = this.cloud.operations.result(id);
    return result === undefined ? { status: 202, headers: this.retryAfter() } : { status: 200, body: result };
  }

  private retryAfter(): Record<string, string> {
    return { 'Retry-After': String(this.cloud.settings().retryAfterSeconds) };
  }
}

function skuOf({ name, family, cores, memoryGb, restricted }: SampleSize) {
  const { location } = SAMPLE;
  const restriction = { type: 'Location', values: [location], reasonCode: 'NotAvailableForSubscription' };
  return {
    ...{ resourceType: 'virtualMachines', name, family, locations: [location] },
    capabilities: [
      { name: 'vCPUs', value: String(cores) },
      { name: 'MemoryGB', value: String(memoryGb) },
    ],
    restrictions: restricted === true ? [restriction] : [],
  };
}

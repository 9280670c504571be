/** What the services share: the store, operations, and answers as all of them give them. */

import { isJsonObject, type Clock, type JsonObject, type JsonValue, type RandomSource } from '@nodepool/core';
import type { Answer, Exchange } from './exchange.js';
import type { FaultPlan } from './faults.js';
import { Operations, type NewOperation } from './operations.js';
import { Refusal } from './refusal.js';
import { ACCOUNT, SAMPLE_LIMITS, type CloudSettings } from './settings.js';
import { Store, type Resource, type ResourceType } from './store.js';
import { Validator } from './validate.js';

/** With what each type is described, and by which package. */
const MAPPERS: Readonly<Record<ResourceType, readonly ['compute' | 'network', string]>> = {
  'Microsoft.Compute/virtualMachines': ['compute', 'VirtualMachine'],
  'Microsoft.Compute/disks': ['compute', 'Disk'],
  'Microsoft.Compute/images': ['compute', 'Image'],
  'Microsoft.Network/networkInterfaces': ['network', 'NetworkInterface'],
  'Microsoft.Network/publicIPAddresses': ['network', 'PublicIPAddress'],
};

/** Fields that name what uses a resource. */
const USERS = new Set(['managedBy', 'virtualMachine', 'ipConfiguration']);

export class Cloud {
  readonly store: Store;
  readonly operations: Operations;
  readonly groups = new Set<string>();
  readonly limits = new Map(Object.entries(SAMPLE_LIMITS));
  base = '';
  private readonly validators = {
    compute: Validator.of('@azure/arm-compute-models'),
    network: Validator.of('@azure/arm-network'),
  };

  constructor(
    readonly clock: Clock,
    readonly random: RandomSource,
    readonly faults: FaultPlan,
    readonly settings: () => CloudSettings,
  ) {
    this.store = new Store(clock);
    this.operations = new Operations(clock, random);
  }

  /** A body that Microsoft's description does not allow is refused, as the resource manager does. */
  checkRequest(kind: 'compute' | 'network', className: string, body: JsonValue): void {
    const [problem] = this.validators[kind].problems(className, body, 'request');
    if (problem !== undefined)
      throw new Refusal(400, 'InvalidRequestContent', `The request content was invalid: ${problem}.`);
  }

  /** An answer that it does not allow is a defect of the simulation. */
  checkAnswer(kind: 'compute' | 'network', className: string, body: JsonValue): void {
    const [problem] = this.validators[kind].problems(className, body, 'answer');
    if (problem !== undefined) throw new Error(`the simulation would answer what Azure does not: ${problem}`);
  }

  /** A resource as it is shown, held to its description. */
  shown(resource: Resource, more: JsonObject = {}): JsonObject {
    const body = this.store.show(resource);
    const properties = { ...(body['properties'] as JsonObject), ...more };
    const whole = this.withoutDangling({ ...body, properties: this.withoutDangling(properties) });
    this.checkAnswer(...MAPPERS[resource.type], whole);
    return whole;
  }

  /** What used a resource and is gone leaves no trace on it. */
  private withoutDangling(fields: JsonObject): JsonObject {
    const dangles = (key: string, value: JsonValue): boolean => {
      if (!USERS.has(key)) return false;
      const id = isJsonObject(value) ? value['id'] : value;
      return typeof id === 'string' && this.store.get(id.replace(/\/ipConfigurations\/.*/, '')) === undefined;
    };
    return Object.fromEntries(Object.entries(fields).filter(([key, value]) => !dangles(key, value)));
  }

  /** The end is asked for at an address of its own. */
  accepted(operation: NewOperation, status: 200 | 201 | 202, body?: JsonValue): Answer {
    const id = this.operations.start(operation);
    const address = `${this.base}/subscriptions/${ACCOUNT.subscriptionId}/providers/Microsoft.Compute/locations/here`;
    return {
      status,
      body,
      headers: {
        'Azure-AsyncOperation': `${address}/operations/${id}?api-version=2026-03-01`,
        Location: `${address}/results/${id}?api-version=2026-03-01`,
        'Retry-After': String(this.settings().retryAfterSeconds),
      },
    };
  }

  /** A page of a list, and where the next one is. */
  page(items: readonly JsonObject[], { query, url }: Exchange): Answer {
    const start = Number(query.get('$skiptoken') ?? 0);
    const end = start + this.settings().pageLimit;
    const next = new URL(url);
    next.searchParams.set('$skiptoken', String(end));
    return {
      status: 200,
      body: { value: items.slice(start, end), ...(end < items.length ? { nextLink: next.href } : {}) },
    };
  }

  requireGroup(group: string): void {
    if (this.groups.has(group.toLowerCase())) return;
    throw new Refusal(404, 'ResourceGroupNotFound', `Resource group '${group}' could not be found.`);
  }
}

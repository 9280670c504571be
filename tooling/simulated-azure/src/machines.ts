/** Virtual machines, which are created and deleted together with their interfaces, addresses and disks. */

import { isDeepStrictEqual } from 'node:util';
import type { JsonObject } from '@nodepool/core';
import type { Cloud } from './cloud.js';
import type { Answer } from '@nodepool/simulated-cloud';
import { published, type AzureContext, type AzureRoute } from './request-context.js';
import { objectIn } from './fields.js';
import { ArmError } from './api-error.js';
import { ACCOUNT, SAMPLE, type SampleSize } from './settings.js';
import { tagsIn, type Resource } from './store.js';
import { checkVm, sizeOf } from './vm-checks.js';
import { VmParts } from './vm-parts.js';

const VM = 'Microsoft.Compute/virtualMachines';

export class Machines {
  private readonly parts: VmParts;

  constructor(private readonly cloud: Cloud) {
    this.parts = new VmParts(cloud);
  }

  routes(): readonly AzureRoute[] {
    const route = (operation: string, name: string, handle: AzureRoute['handle']): AzureRoute =>
      published(this.cloud.compute, `virtualMachines.${operation}`, `virtualMachines.${name}`, handle);
    const list = (context: AzureContext): Answer => this.cloud.list(VM, context);
    return [
      route('put', 'createOrUpdate', (context) => this.put(context)),
      route('get', 'get', (context) => this.get(context)),
      route('patch', 'update', (context) => this.patch(context)),
      route('delete', 'delete', ({ params }) => this.delete(params)),
      route('instanceView', 'instanceView', ({ params }) => this.instanceView(params)),
      route('list', 'list', list),
      route('list', 'listAll', list),
    ];
  }

  /** Returns the current value of a usage. */
  used(usage: string): number {
    const vms = this.cloud.store.list(VM);
    if (usage === 'virtualMachines') return vms.length;
    return vms
      .map((vm) => ({ spot: isSpot(vm.properties), size: sizeOf(vm.properties) }))
      .filter(({ spot, size }) => (spot ? usage === 'lowPriorityCores' : usage === 'cores' || size?.family === usage))
      .reduce((sum, { size }) => sum + (size?.cores ?? 0), 0);
  }

  /** Adds a VM of another owner. */
  addForeign(name: string): void {
    const properties = { hardwareProfile: { vmSize: 'Standard_B1ls' }, osProfile: { computerName: name } };
    const { location } = SAMPLE;
    this.cloud.store.put({ ...{ type: VM, group: 'others', name, location, tags: {}, properties, workMs: 0 } });
  }

  /** Makes the VM fail, during its creation or later. */
  break(name: string, message: string): void {
    const vm = this.byName(name);
    if (vm !== undefined) vm.failure = { code: 'VMExtensionProvisioningError', message };
  }

  /** Removes the VM and its parts immediately. */
  destroy(name: string): void {
    const vm = this.byName(name);
    if (vm !== undefined) this.removeWithParts(vm, 0);
  }

  /** Deletes a VM as an eviction of a spot VM does. */
  evict(name: string): void {
    const vm = this.byName(name);
    if (vm !== undefined) this.removeWithParts(vm, this.cloud.settings.deleteMs);
  }

  private byName(name: string): Resource | undefined {
    return this.cloud.store.list(VM).find((vm) => vm.name === name);
  }

  private put({ params, json }: AzureContext): Answer {
    const [group = '', name = ''] = params;
    const { cloud } = this;
    const body = json();
    const location = cloud.checkResource(VM, params, body);
    const existing = cloud.store.find(VM, group, name);
    if (existing !== undefined) return this.repeated(existing, body);
    const size = checkVm(cloud, location, body);
    const properties = objectIn(body, 'properties');
    this.requireRoom(size, isSpot(properties));
    const failure = cloud.faults.nextFailure();
    const { bootMs } = cloud.settings;
    const { zones, identity } = body;
    const vm = cloud.store.put({
      ...{ type: VM, group, name, location, tags: tagsIn(body['tags']), request: body },
      extra: { ...(zones === undefined ? {} : { zones }), ...(identity === undefined ? {} : { identity }) },
      ...{ properties: {}, workMs: bootMs },
    });
    vm.failure = failure;
    vm.properties = {
      ...shownProperties(properties),
      ...this.parts.create(vm, properties),
      vmId: cloud.random.uuidHex(),
    };
    const error = (): JsonObject | undefined => (vm.failure === undefined ? undefined : { ...vm.failure });
    return cloud.accepted({ workMs: bootMs, error }, 201, cloud.shown(vm));
  }

  /** Accepts an identical request without effect. Refuses any other, because it would change immutable properties. */
  private repeated(vm: Resource, body: JsonObject): Answer {
    if (isDeepStrictEqual(vm.request, body)) {
      const workMs = Math.max(0, vm.readyAt - this.cloud.clock.monotonic());
      const error = (): JsonObject | undefined => (vm.failure === undefined ? undefined : { ...vm.failure });
      return this.cloud.accepted({ workMs, error }, 200, this.cloud.shown(vm));
    }
    throw new ArmError(409, 'PropertyChangeNotAllowed', `Changing the VM ${vm.name} is not allowed.`);
  }

  private get(context: AzureContext): Answer {
    const { params, query } = context;
    const vm = this.cloud.find(VM, params);
    const expand = query.get('$expand');
    if (expand === 'instanceView') return this.cloud.get(VM, context, { instanceView: this.viewOf(vm) });
    const { userData } = objectIn(vm.request ?? {}, 'properties');
    return this.cloud.get(VM, context, expand === 'userData' && userData !== undefined ? { userData } : {});
  }

  private instanceView(params: readonly string[]): Answer {
    return { status: 200, body: this.viewOf(this.cloud.find(VM, params)) };
  }

  /** Returns the instance view, which alone contains the reason of a failure. */
  private viewOf(vm: Resource): JsonObject {
    const { failure } = vm;
    const state = this.cloud.store.stateOf(vm);
    const provisioning =
      state === 'Failed' && failure !== undefined
        ? { code: `ProvisioningState/failed/${failure.code}`, level: 'Error', message: failure.message }
        : { code: `ProvisioningState/${state.toLowerCase()}`, level: 'Info', displayStatus: state };
    const power = { code: 'PowerState/running', level: 'Info', displayStatus: 'VM running' };
    return { statuses: state === 'Succeeded' ? [provisioning, power] : [provisioning] };
  }

  private patch(context: AzureContext): Answer {
    return { status: 200, body: this.cloud.shown(this.cloud.patch(VM, context)) };
  }

  private delete([group = '', name = '']: readonly string[]): Answer {
    const { cloud } = this;
    const vm = cloud.store.find(VM, group, name);
    if (vm === undefined) return { status: 204 };
    const { deleteMs } = cloud.settings;
    this.removeWithParts(vm, deleteMs);
    return cloud.accepted({ workMs: deleteMs }, 202);
  }

  private removeWithParts(vm: Resource, afterMs: number): void {
    this.cloud.store.remove(vm, afterMs);
    this.parts.delete(vm, afterMs);
  }

  private requireRoom(size: SampleSize, spot: boolean): void {
    const needs: readonly (readonly [string, number])[] = [
      ['virtualMachines', 1],
      ...(spot
        ? [['lowPriorityCores', size.cores] as const]
        : [['cores', size.cores] as const, [size.family, size.cores] as const]),
    ];
    for (const [usage, need] of needs) {
      const limit = this.cloud.limits.get(usage) ?? Infinity;
      if (this.used(usage) + need <= limit) continue;
      throw new ArmError(
        409,
        'OperationNotAllowed',
        `Operation could not be completed as it results in exceeding approved ${usage} quota. Current Limit: ${limit}, Current Usage: ${this.used(usage)}, Additional Required: ${need}.`,
      );
    }
  }
}

function isSpot(properties: JsonObject): boolean {
  return properties['priority'] === 'Spot' || properties['priority'] === 'Low';
}

/** Omits secrets. */
function shownProperties(properties: JsonObject): JsonObject {
  const { adminPassword: _secret, customData: _never, ...os } = objectIn(properties, 'osProfile');
  const { userData: _neither, networkProfile: _request, ...rest } = properties;
  return { ...rest, osProfile: os };
}

/** Id of the sample network's subnet. */
export const SAMPLE_SUBNET_ID = `/subscriptions/${ACCOUNT.subscriptionId}/resourceGroups/${SAMPLE.resourceGroup}/providers/Microsoft.Network/virtualNetworks/${SAMPLE.network}/subnets/${SAMPLE.subnet}`;

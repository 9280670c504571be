/** Virtual machines, made with their interfaces, addresses and disks in one call, and deleted with them. */

import { isJsonObject, type JsonObject, type JsonValue } from '@nodepool/core';
import type { Cloud } from './cloud.js';
import { groupPath, resourcePath, armPath, type Answer, type Exchange, type Route } from './exchange.js';
import { notFound, Refusal } from './refusal.js';
import { ACCOUNT, SAMPLE, SAMPLE_SIZES, type SampleSize } from './settings.js';
import { idOf, tagsIn, type Resource } from './store.js';

const VM = 'Microsoft.Compute/virtualMachines';
const NIC = 'Microsoft.Network/networkInterfaces';
const IP = 'Microsoft.Network/publicIPAddresses';
const DISK = 'Microsoft.Compute/disks';
const WRITE_ONLY = new Set(['networkInterfaceConfigurations', 'networkApiVersion']);

export class Machines {
  private addresses = 0;

  constructor(private readonly cloud: Cloud) {}

  routes(): readonly Route[] {
    const vm = resourcePath(VM);
    return [
      { operation: 'virtualMachines.put', method: 'PUT', path: vm, handle: (exchange) => this.put(exchange) },
      { operation: 'virtualMachines.get', method: 'GET', path: vm, handle: ({ params }) => this.get(params) },
      { operation: 'virtualMachines.delete', method: 'DELETE', path: vm, handle: ({ params }) => this.delete(params) },
      {
        operation: 'virtualMachines.list',
        method: 'GET',
        path: groupPath(VM),
        handle: (exchange) => this.list(exchange),
      },
      {
        operation: 'virtualMachines.list',
        method: 'GET',
        path: armPath(`providers/${VM}`),
        handle: (exchange) => this.list(exchange),
      },
    ];
  }

  /** Use of a resource that usages name. */
  used(usage: string): number {
    const vms = this.cloud.store.list(VM).map((vm) => sizeOf(vm.properties));
    if (usage === 'virtualMachines') return vms.length;
    const counted = vms.filter((size) => usage === 'cores' || size?.family === usage);
    return counted.reduce((sum, size) => sum + (size?.cores ?? 0), 0);
  }

  /** One that nobody of ours made. */
  addForeign(name: string): void {
    const properties = { hardwareProfile: { vmSize: 'Standard_B1ls' }, osProfile: { computerName: name } };
    this.cloud.store.put({
      type: VM,
      group: 'others',
      name,
      location: SAMPLE.location,
      tags: {},
      properties,
      workMs: 0,
    });
  }

  /** The VM fails, while it is made or later. */
  break(name: string, message: string): void {
    const vm = this.byName(name);
    if (vm !== undefined) vm.failure = { code: 'VMExtensionProvisioningError', message };
  }

  /** The VM is gone at once, with what belongs to it. */
  destroy(name: string): void {
    const vm = this.byName(name);
    if (vm !== undefined) this.removeWithParts(vm, 0);
  }

  private byName(name: string): Resource | undefined {
    return this.cloud.store.list(VM).find((vm) => vm.name === name);
  }

  private put({ params, json }: Exchange): Answer {
    const [group = '', name = ''] = params;
    const { cloud } = this;
    cloud.requireGroup(group);
    const body = json();
    cloud.checkRequest('compute', 'VirtualMachine', body);
    if (cloud.store.find(VM, group, name) !== undefined) {
      throw new Refusal(409, 'PropertyChangeNotAllowed', `Changing the VM ${name} is not allowed.`);
    }
    const properties = objectIn(body, 'properties');
    this.requireRoom(properties);
    this.requireLogin(properties);
    this.requireImage(properties);
    const fate = cloud.faults.nextFate();
    const { bootMs } = cloud.settings();
    const tags = tagsIn(body['tags']);
    const vm = cloud.store.put({
      ...{ type: VM, group, name, location: textIn(body, 'location'), tags },
      ...{ extra: zonesOf(body), properties: {}, workMs: bootMs },
    });
    vm.failure = fate;
    this.addDisk(vm, properties);
    const interfaces = this.addInterfaces(vm, objectIn(properties, 'networkProfile'));
    vm.properties = { ...shownProperties(properties), networkProfile: { networkInterfaces: interfaces } };
    const error = (): JsonObject | undefined => (vm.failure === undefined ? undefined : { ...vm.failure });
    return cloud.accepted({ workMs: bootMs, error }, 201, cloud.shown(vm));
  }

  private get([group = '', name = '']: readonly string[]): Answer {
    const vm = this.cloud.store.find(VM, group, name);
    if (vm === undefined) throw notFound(idOf(VM, group, name));
    const { failure } = vm;
    const statuses =
      failure === undefined
        ? []
        : [{ code: `ProvisioningState/failed/${failure.code}`, level: 'Error', message: failure.message }];
    return { status: 200, body: this.cloud.shown(vm, statuses.length === 0 ? {} : { instanceView: { statuses } }) };
  }

  private delete([group = '', name = '']: readonly string[]): Answer {
    const { cloud } = this;
    const vm = cloud.store.find(VM, group, name);
    if (vm === undefined) return { status: 204 };
    const { deleteMs } = cloud.settings();
    this.removeWithParts(vm, deleteMs);
    return cloud.accepted({ workMs: deleteMs }, 202);
  }

  private list(exchange: Exchange): Answer {
    const [group] = exchange.params;
    const { store } = this.cloud;
    const vms = store
      .list(VM, exchange.lagMs)
      .filter((vm) => group === undefined || vm.group.toLowerCase() === group.toLowerCase());
    return this.cloud.page(
      vms.map((vm) => this.cloud.shown(vm)),
      exchange,
    );
  }

  private removeWithParts(vm: Resource, afterMs: number): void {
    const { store } = this.cloud;
    store.remove(vm, afterMs);
    for (const type of [NIC, IP, DISK] as const) {
      for (const part of store.list(type)) if (ownerOf(part) === vm.id) store.remove(part, afterMs);
    }
  }

  private requireRoom(properties: JsonObject): void {
    const size = sizeOf(properties);
    if (size === undefined) throw new Refusal(400, 'InvalidParameter', `The value of parameter vmSize is invalid.`);
    if (size.restricted === true)
      throw new Refusal(409, 'SkuNotAvailable', `The requested VM size ${size.name} is not available.`);
    const needs: readonly (readonly [string, number])[] = [
      ['virtualMachines', 1],
      ['cores', size.cores],
      [size.family, size.cores],
    ];
    for (const [usage, need] of needs) {
      const limit = this.cloud.limits.get(usage) ?? Infinity;
      if (this.used(usage) + need <= limit) continue;
      throw new Refusal(
        409,
        'OperationNotAllowed',
        `Operation could not be completed as it results in exceeding approved ${usage} quota. Current Limit: ${limit}, Current Usage: ${this.used(usage)}, Additional Required: ${need}.`,
      );
    }
  }

  /** One can log in somehow, with a password of which Azure approves. */
  private requireLogin(properties: JsonObject): void {
    const os = objectIn(properties, 'osProfile');
    const password = os['adminPassword'];
    const ssh = objectIn(objectIn(os, 'linuxConfiguration'), 'ssh');
    if (typeof password !== 'string' && ssh['publicKeys'] === undefined) {
      throw new Refusal(400, 'InvalidParameter', `Required parameter 'adminPassword' is missing (null).`);
    }
    if (typeof password !== 'string') return;
    const kinds = [/[a-z]/, /[A-Z]/, /\d/, /[^A-Za-z0-9]/].filter((kind) => kind.test(password)).length;
    if (password.length >= 8 && password.length <= 123 && kinds >= 3) return;
    throw new Refusal(
      400,
      'InvalidParameter',
      'The supplied password must be between 8-123 characters long and must satisfy at least 3 of password complexity requirements.',
    );
  }

  private requireImage(properties: JsonObject): void {
    const reference = objectIn(objectIn(properties, 'storageProfile'), 'imageReference');
    const id = reference['id'];
    if (typeof id !== 'string' || !id.includes('/Microsoft.Compute/images/')) return;
    if (this.cloud.store.get(id) === undefined) throw notFound(id);
  }

  private addDisk(vm: Resource, properties: JsonObject): void {
    const disk = objectIn(objectIn(properties, 'storageProfile'), 'osDisk');
    const name = textIn(disk, 'name') === '' ? `${vm.name}_OsDisk_1` : textIn(disk, 'name');
    this.cloud.store.put({
      ...{ type: DISK, group: vm.group, name, location: vm.location, tags: vm.tags, workMs: 0 },
      extra: { managedBy: vm.id },
      properties: {
        diskState: 'Attached',
        diskSizeGB: disk['diskSizeGB'] ?? 30,
        creationData: { createOption: 'FromImage' },
      },
    });
  }

  private addInterfaces(vm: Resource, network: JsonObject): JsonValue[] {
    return listIn(network, 'networkInterfaceConfigurations').map((nic) => {
      const properties = objectIn(nic, 'properties');
      const configurations = listIn(properties, 'ipConfigurations').map((one) => this.addAddress(vm, one));
      const made = this.cloud.store.put({
        ...{
          type: NIC,
          group: vm.group,
          name: textIn(nic, 'name'),
          location: vm.location,
          tags: tagsIn(nic['tags']),
          workMs: 0,
        },
        properties: { virtualMachine: { id: vm.id }, primary: true, ipConfigurations: configurations },
      });
      this.attach(made);
      return {
        id: made.id,
        properties: { primary: properties['primary'] ?? true, deleteOption: properties['deleteOption'] ?? 'Detach' },
      };
    });
  }

  /** An address knows the interface that it leads to. */
  private attach(nic: Resource): void {
    for (const configuration of listIn(nic.properties, 'ipConfigurations')) {
      const address = this.cloud.store.get(
        textIn(objectIn(objectIn(configuration, 'properties'), 'publicIPAddress'), 'id'),
      );
      const id = `${nic.id}/ipConfigurations/${textIn(configuration, 'name')}`;
      if (address !== undefined) address.properties = { ...address.properties, ipConfiguration: { id } };
    }
  }

  private addAddress(vm: Resource, configuration: JsonObject): JsonObject {
    const properties = objectIn(configuration, 'properties');
    const subnet = textIn(objectIn(properties, 'subnet'), 'id');
    const known = `/virtualNetworks/${SAMPLE.network}/subnets/${SAMPLE.subnet}`.toLowerCase();
    if (!subnet.toLowerCase().endsWith(known)) {
      throw new Refusal(
        400,
        'InvalidResourceReference',
        `Resource ${subnet} referenced by resource ${vm.id} was not found.`,
      );
    }
    this.addresses += 1;
    const number = this.addresses;
    const version = textIn(properties, 'privateIPAddressVersion') === 'IPv6' ? 'IPv6' : 'IPv4';
    const wanted = properties['publicIPAddressConfiguration'];
    const address = isJsonObject(wanted) ? this.addPublicAddress(vm, wanted, version, number) : undefined;
    return {
      name: textIn(configuration, 'name'),
      properties: {
        privateIPAddress:
          version === 'IPv4'
            ? `10.${(number >> 16) & 255}.${(number >> 8) & 255}.${number & 255}`
            : `fd00::${number.toString(16)}`,
        privateIPAddressVersion: version,
        subnet: { id: subnet },
        ...(address === undefined ? {} : { publicIPAddress: { id: address.id } }),
      },
    };
  }

  private addPublicAddress(vm: Resource, wanted: JsonObject, version: string, number: number): Resource {
    return this.cloud.store.put({
      ...{
        type: IP,
        group: vm.group,
        name: textIn(wanted, 'name'),
        location: vm.location,
        tags: tagsIn(wanted['tags']),
        workMs: 0,
      },
      extra: { sku: wanted['sku'] ?? { name: 'Basic' } },
      properties: {
        publicIPAddressVersion: version,
        publicIPAllocationMethod: objectIn(wanted, 'properties')['publicIPAllocationMethod'] ?? 'Dynamic',
        ipAddress:
          version === 'IPv4'
            ? `203.${(number >> 16) & 255}.${(number >> 8) & 255}.${number & 255}`
            : `2001:db8::${number.toString(16)}`,
      },
    });
  }
}

/** Id of the VM that a part belongs to. */
function ownerOf({ extra, properties, id }: Resource): string | undefined {
  const direct = extra['managedBy'] ?? objectIn(properties, 'virtualMachine')['id'];
  if (typeof direct === 'string') return direct;
  const nic = textIn(objectIn(properties, 'ipConfiguration'), 'id');
  // Addresses are made with the VM whose name theirs begins with.
  const [, name = ''] = /\/networkInterfaces\/(.+)-nic\//.exec(nic) ?? [];
  const [, group = ''] = /\/resourceGroups\/([^/]+)\//.exec(id) ?? [];
  return name === '' ? undefined : idOf(VM, group, name);
}

function shownProperties(properties: JsonObject): JsonObject {
  const { adminPassword: _secret, ...os } = objectIn(properties, 'osProfile');
  const { customData: _never, ...shownOs } = os;
  const { userData: _neither, ...rest } = properties;
  const network = Object.entries(objectIn(properties, 'networkProfile')).filter(([key]) => !WRITE_ONLY.has(key));
  return { ...rest, osProfile: shownOs, networkProfile: Object.fromEntries(network) };
}

function zonesOf(body: JsonObject): JsonObject {
  return body['zones'] === undefined ? {} : { zones: body['zones'] };
}

function sizeOf(properties: JsonObject): SampleSize | undefined {
  const name = textIn(objectIn(properties, 'hardwareProfile'), 'vmSize').toLowerCase();
  return SAMPLE_SIZES.find((size) => size.name.toLowerCase() === name);
}

export function objectIn(body: JsonObject, key: string): JsonObject {
  const value = body[key];
  return isJsonObject(value) ? value : {};
}

export function textIn(body: JsonObject, key: string): string {
  const value = body[key];
  return typeof value === 'string' ? value : '';
}

export function listIn(body: JsonObject, key: string): readonly JsonObject[] {
  const value = body[key];
  return Array.isArray(value) ? (value as readonly JsonValue[]).filter(isJsonObject) : [];
}

/** Where a subnet of the sample network is. */
export const SAMPLE_SUBNET_ID = `/subscriptions/${ACCOUNT.subscriptionId}/resourceGroups/${SAMPLE.resourceGroup}/providers/Microsoft.Network/virtualNetworks/${SAMPLE.network}/subnets/${SAMPLE.subnet}`;

/** The Azure calls of this driver. All are in one resource group, except listings of the subscription. */

import { isDriverError, type Call } from '@nodepool/core';
import { locationName } from '../identity.js';
import type { Accepted, Arm, ArmRequest, Operation, Progress } from './arm.js';
import type {
  Disk,
  Image,
  NetworkInterface,
  PublicIpAddress,
  ResourceSku,
  Usage,
  VirtualMachine,
  VirtualNetwork,
} from './types.js';

/** API versions. `tooling/simulated-azure/definitions` describes their requests and answers. */
const VERSIONS = {
  virtualMachines: '2025-04-01',
  images: '2025-04-01',
  usages: '2025-04-01',
  disks: '2025-01-02',
  skus: '2021-07-01',
  network: '2025-05-01',
  resources: '2025-04-01',
} as const;
/** Validity of a disk's upload URL in seconds; Azure allows days. */
const ACCESS_SECONDS = 86_400;

export interface Place {
  readonly resourceGroup: string;
  readonly location: string;
}

type Compute = 'virtualMachines' | 'disks' | 'images';
type Network = 'networkInterfaces' | 'publicIPAddresses' | 'virtualNetworks';
type Method = Operation['method'];

export class Client {
  constructor(
    readonly arm: Arm,
    private readonly place: Place,
  ) {}

  async ensureResourceGroup(location: string, call: Call): Promise<void> {
    const request: ArmRequest = { path: this.group, version: VERSIONS.resources };
    const kind = (method: Method): Operation => ({ service: 'resources', method, operation: 'resourceGroups' });
    try {
      await this.arm.call(kind('GET'), call, request);
    } catch (error) {
      if (!isDriverError(error) || error.code !== 'not-found') throw error;
      await this.arm.call(kind('PUT'), call, { ...request, body: { location } });
    }
  }

  createVm(name: string, vm: VirtualMachine, call: Call): Promise<Accepted> {
    return this.begin('PUT', 'virtualMachines', name, call, vm);
  }

  /** Reads a VM. Azure includes the instance view, which contains the reason of a failure, only on request. */
  getVm(name: string, call: Call, expand?: 'instanceView', group?: string): Promise<VirtualMachine> {
    const kind: Operation = { service: 'compute', method: 'GET', operation: 'virtualMachines' };
    const query = expand === undefined ? {} : { $expand: expand };
    return this.arm.call(kind, call, { ...this.resource('virtualMachines', name, group), query });
  }

  /** Lists the VMs of the whole subscription, because all of them use the same quota. */
  listVms(call: Call): Promise<readonly VirtualMachine[]> {
    const path = `${this.subscription}/providers/Microsoft.Compute/virtualMachines`;
    return this.list('compute', 'virtualMachines', { path, version: VERSIONS.virtualMachines }, call);
  }

  /** Deletes a VM, by default one in the provider's resource group. */
  deleteVm(name: string, call: Call, group?: string): Promise<Accepted> {
    const kind: Operation = { service: 'compute', method: 'DELETE', operation: 'virtualMachines' };
    return this.arm.begin(kind, call, this.resource('virtualMachines', name, group));
  }

  /** Returns a network interface with its public addresses. */
  getNic(name: string, call: Call): Promise<NetworkInterface> {
    const kind: Operation = { service: 'network', method: 'GET', operation: 'networkInterfaces' };
    const query = { $expand: 'ipConfigurations/publicIPAddress' };
    return this.arm.call(kind, call, { ...this.resource('networkInterfaces', name), query });
  }

  listNics(call: Call): Promise<readonly NetworkInterface[]> {
    return this.list('network', 'networkInterfaces', this.collection('networkInterfaces'), call);
  }

  deleteNic(name: string, call: Call): Promise<Accepted> {
    return this.begin('DELETE', 'networkInterfaces', name, call);
  }

  listPublicIps(call: Call): Promise<readonly PublicIpAddress[]> {
    return this.list('network', 'publicIPAddresses', this.collection('publicIPAddresses'), call);
  }

  deletePublicIp(name: string, call: Call): Promise<Accepted> {
    return this.begin('DELETE', 'publicIPAddresses', name, call);
  }

  listNetworks(call: Call): Promise<readonly VirtualNetwork[]> {
    return this.list('network', 'virtualNetworks', this.collection('virtualNetworks'), call);
  }

  createDisk(name: string, disk: Disk, call: Call): Promise<Accepted> {
    return this.begin('PUT', 'disks', name, call, disk);
  }

  listDisks(call: Call): Promise<readonly Disk[]> {
    return this.list('compute', 'disks', this.collection('disks'), call);
  }

  deleteDisk(name: string, call: Call): Promise<Accepted> {
    return this.begin('DELETE', 'disks', name, call);
  }

  /** Requests a disk's upload URL, which is the result of the operation. */
  grantAccess(name: string, call: Call): Promise<Accepted> {
    const body = { access: 'Write', durationInSeconds: ACCESS_SECONDS };
    const kind: Operation = { service: 'compute', method: 'POST', operation: 'disks.beginGetAccess' };
    return this.arm.begin(kind, call, { ...this.resource('disks', `${name}/beginGetAccess`), body }, 'location');
  }

  revokeAccess(name: string, call: Call): Promise<Accepted> {
    const kind: Operation = { service: 'compute', method: 'POST', operation: 'disks.endGetAccess' };
    return this.arm.begin(kind, call, this.resource('disks', `${name}/endGetAccess`));
  }

  createImage(name: string, image: Image, call: Call): Promise<Accepted> {
    return this.begin('PUT', 'images', name, call, image);
  }

  listImages(call: Call): Promise<readonly Image[]> {
    return this.list('compute', 'images', this.collection('images'), call);
  }

  listImagesOfSubscription(call: Call): Promise<readonly Image[]> {
    const path = `${this.subscription}/providers/Microsoft.Compute/images`;
    return this.list('compute', 'images', { path, version: VERSIONS.images }, call);
  }

  /** Deletes an image, by default one in the provider's resource group. */
  deleteImage(name: string, call: Call, group?: string): Promise<Accepted> {
    const kind: Operation = { service: 'compute', method: 'DELETE', operation: 'images' };
    return this.arm.begin(kind, call, this.resource('images', name, group));
  }

  listSkus(call: Call): Promise<readonly ResourceSku[]> {
    const path = `${this.subscription}/providers/Microsoft.Compute/skus`;
    const query = { $filter: `location eq '${locationName(this.place.location)}'` };
    return this.list('compute', 'skus', { path, version: VERSIONS.skus, query }, call);
  }

  listUsages(call: Call): Promise<readonly Usage[]> {
    const location = encodeURIComponent(locationName(this.place.location));
    const path = `${this.subscription}/providers/Microsoft.Compute/locations/${location}/usages`;
    return this.list('compute', 'usages', { path, version: VERSIONS.usages }, call);
  }

  progress(what: string, url: string, call: Call): Promise<Progress> {
    return this.arm.progress(what, url, call);
  }

  private get subscription(): string {
    return `/subscriptions/${encodeURIComponent(this.arm.subscriptionId)}`;
  }

  private get group(): string {
    return this.pathOfGroup(this.place.resourceGroup);
  }

  private pathOfGroup(name: string): string {
    return `${this.subscription}/resourceGroups/${encodeURIComponent(name)}`;
  }

  private collection(type: Compute | Network, group = this.place.resourceGroup): ArmRequest {
    const network = isNetwork(type);
    const path = `${this.pathOfGroup(group)}/providers/Microsoft.${network ? 'Network' : 'Compute'}/${type}`;
    return { path, version: network ? VERSIONS.network : VERSIONS[type] };
  }

  /** `name` can be followed by a slash and an action of the resource. */
  private resource(type: Compute | Network, name: string, group?: string): ArmRequest {
    const { path, version } = this.collection(type, group);
    return { path: `${path}/${name.split('/').map(encodeURIComponent).join('/')}`, version };
  }

  private begin(
    method: 'PUT' | 'DELETE',
    type: Compute | Network,
    name: string,
    call: Call,
    body?: unknown,
  ): Promise<Accepted> {
    const network = isNetwork(type);
    const kind: Operation = { service: network ? 'network' : 'compute', method, operation: type };
    return this.arm.begin(kind, call, { ...this.resource(type, name), ...(body === undefined ? {} : { body }) });
  }

  private list<T>(service: Operation['service'], type: string, request: ArmRequest, call: Call): Promise<readonly T[]> {
    return this.arm.list({ service, method: 'GET', operation: `${type}.list` }, call, request);
  }
}

function isNetwork(type: Compute | Network): type is Network {
  return type === 'networkInterfaces' || type === 'publicIPAddresses' || type === 'virtualNetworks';
}

/** The narrow API through which this driver uses Azure: the calls that it makes, and no more. All are below one resource group. */

import type { Disk, Image, ResourceSku, Usage, VirtualMachine } from '@azure/arm-compute';
import type { NetworkInterface, PublicIPAddress } from '@azure/arm-network';
import { isDriverError, type Call } from '@nodepool/core';
import type { Accepted, Arm, Progress } from './arm.js';

/** So long a disk's address for writing is good, seconds; Azure allows days. */
const ACCESS_SECONDS = 86_400;

export interface Place {
  readonly resourceGroup: string;
  readonly location: string;
}

export class Client {
  constructor(
    readonly arm: Arm,
    private readonly place: Place,
  ) {}

  /** Makes the resource group if it is missing. */
  async ensureResourceGroup(location: string, call: Call): Promise<void> {
    const { resourceGroup } = this.place;
    try {
      await this.arm.call(
        { service: 'resources', method: 'GET', operation: 'resourceGroups' },
        call,
        ({ resources }, options) => resources.resourceGroups.get(resourceGroup, options),
      );
    } catch (error) {
      if (!isDriverError(error) || error.code !== 'not-found') throw error;
      await this.arm.call(
        { service: 'resources', method: 'PUT', operation: 'resourceGroups' },
        call,
        ({ resources }, options) => resources.resourceGroups.createOrUpdate(resourceGroup, { location }, options),
      );
    }
  }

  createVm(name: string, vm: VirtualMachine, call: Call): Promise<Accepted> {
    return this.arm.begin(
      { service: 'compute', method: 'PUT', operation: 'virtualMachines' },
      call,
      ({ compute }, options) =>
        compute.virtualMachines.createOrUpdate(this.place.resourceGroup, name, vm, options).submitted(),
    );
  }

  /** Only the instance view says why a VM failed; Azure leaves it out unless it is asked for. */
  getVm(name: string, call: Call, expand?: 'instanceView'): Promise<VirtualMachine> {
    return this.arm.call(
      { service: 'compute', method: 'GET', operation: 'virtualMachines' },
      call,
      ({ compute }, options) =>
        compute.virtualMachines.get(
          this.place.resourceGroup,
          name,
          expand === undefined ? options : { ...options, expand },
        ),
    );
  }

  /** Of the whole subscription: those of others use up the same quota. */
  listVms(call: Call): Promise<readonly VirtualMachine[]> {
    return this.arm.list(
      { service: 'compute', method: 'GET', operation: 'virtualMachines.list' },
      call,
      ({ compute }, options) => compute.virtualMachines.listAll(options),
    );
  }

  deleteVm(name: string, call: Call): Promise<Accepted> {
    return this.arm.begin(
      { service: 'compute', method: 'DELETE', operation: 'virtualMachines' },
      call,
      ({ compute }, options) => compute.virtualMachines.delete(this.place.resourceGroup, name, options).submitted(),
    );
  }

  /** With its public addresses. */
  getNic(name: string, call: Call): Promise<NetworkInterface> {
    return this.arm.call(
      { service: 'network', method: 'GET', operation: 'networkInterfaces' },
      call,
      ({ network }, options) =>
        network.networkInterfaces.get(this.place.resourceGroup, name, {
          ...options,
          expand: 'ipConfigurations/publicIPAddress',
        }),
    );
  }

  listNics(call: Call): Promise<readonly NetworkInterface[]> {
    return this.arm.list(
      { service: 'network', method: 'GET', operation: 'networkInterfaces.list' },
      call,
      ({ network }, options) => network.networkInterfaces.list(this.place.resourceGroup, options),
    );
  }

  deleteNic(name: string, call: Call): Promise<Accepted> {
    return this.arm.begin(
      { service: 'network', method: 'DELETE', operation: 'networkInterfaces' },
      call,
      ({ network }, options) => network.networkInterfaces.beginDelete(this.place.resourceGroup, name, options),
    );
  }

  listPublicIps(call: Call): Promise<readonly PublicIPAddress[]> {
    return this.arm.list(
      { service: 'network', method: 'GET', operation: 'publicIPAddresses.list' },
      call,
      ({ network }, options) => network.publicIPAddresses.list(this.place.resourceGroup, options),
    );
  }

  deletePublicIp(name: string, call: Call): Promise<Accepted> {
    return this.arm.begin(
      { service: 'network', method: 'DELETE', operation: 'publicIPAddresses' },
      call,
      ({ network }, options) => network.publicIPAddresses.beginDelete(this.place.resourceGroup, name, options),
    );
  }

  createDisk(name: string, disk: Disk, call: Call): Promise<Accepted> {
    return this.arm.begin({ service: 'compute', method: 'PUT', operation: 'disks' }, call, ({ compute }, options) =>
      compute.disks.createOrUpdate(this.place.resourceGroup, name, disk, options).submitted(),
    );
  }

  listDisks(call: Call): Promise<readonly Disk[]> {
    return this.arm.list({ service: 'compute', method: 'GET', operation: 'disks.list' }, call, ({ compute }, options) =>
      compute.disks.listByResourceGroup(this.place.resourceGroup, options),
    );
  }

  deleteDisk(name: string, call: Call): Promise<Accepted> {
    return this.arm.begin({ service: 'compute', method: 'DELETE', operation: 'disks' }, call, ({ compute }, options) =>
      compute.disks.delete(this.place.resourceGroup, name, options).submitted(),
    );
  }

  /** Asks for the address that a disk can be written at, which is the result of the operation. */
  grantAccess(name: string, call: Call): Promise<Accepted> {
    const access = { access: 'Write', durationInSeconds: ACCESS_SECONDS } as const;
    return this.arm.begin(
      { service: 'compute', method: 'POST', operation: 'disks.beginGetAccess' },
      call,
      ({ compute }, options) => compute.disks.grantAccess(this.place.resourceGroup, name, access, options).submitted(),
      'location',
    );
  }

  revokeAccess(name: string, call: Call): Promise<Accepted> {
    return this.arm.begin(
      { service: 'compute', method: 'POST', operation: 'disks.endGetAccess' },
      call,
      ({ compute }, options) => compute.disks.revokeAccess(this.place.resourceGroup, name, options).submitted(),
    );
  }

  createImage(name: string, image: Image, call: Call): Promise<Accepted> {
    return this.arm.begin({ service: 'compute', method: 'PUT', operation: 'images' }, call, ({ compute }, options) =>
      compute.images.createOrUpdate(this.place.resourceGroup, name, image, options).submitted(),
    );
  }

  listImages(call: Call): Promise<readonly Image[]> {
    return this.arm.list(
      { service: 'compute', method: 'GET', operation: 'images.list' },
      call,
      ({ compute }, options) => compute.images.listByResourceGroup(this.place.resourceGroup, options),
    );
  }

  deleteImage(name: string, call: Call): Promise<Accepted> {
    return this.arm.begin({ service: 'compute', method: 'DELETE', operation: 'images' }, call, ({ compute }, options) =>
      compute.images.delete(this.place.resourceGroup, name, options).submitted(),
    );
  }

  listSkus(call: Call): Promise<readonly ResourceSku[]> {
    const filter = `location eq '${this.place.location}'`;
    return this.arm.list({ service: 'compute', method: 'GET', operation: 'skus.list' }, call, ({ compute }, options) =>
      compute.resourceSkus.list({ ...options, filter }),
    );
  }

  listUsages(call: Call): Promise<readonly Usage[]> {
    return this.arm.list(
      { service: 'compute', method: 'GET', operation: 'usages.list' },
      call,
      ({ compute }, options) => compute.usage.list(this.place.location, options),
    );
  }

  progress(what: string, url: string, call: Call): Promise<Progress> {
    return this.arm.progress(what, url, call);
  }
}

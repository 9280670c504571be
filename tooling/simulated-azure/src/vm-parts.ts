/**
 * The interfaces, addresses and disks that are created with a VM. Their delete option decides whether they are deleted
 * with it.
 */

import { isJsonObject, type JsonObject } from '@nodepool/core';
import type { Cloud } from './cloud.js';
import { listIn, objectIn, textIn } from './fields.js';
import { tagsIn, type Resource } from './store.js';

const NIC = 'Microsoft.Network/networkInterfaces';
const IP = 'Microsoft.Network/publicIPAddresses';
const DISK = 'Microsoft.Compute/disks';

export class VmParts {
  private addresses = 0;

  constructor(private readonly cloud: Cloud) {}

  /** Creates the parts and returns the VM's storage and network profile. */
  create(vm: Resource, properties: JsonObject): JsonObject {
    return {
      storageProfile: this.addDisk(vm, objectIn(properties, 'storageProfile')),
      networkProfile: { networkInterfaces: this.addInterfaces(vm, objectIn(properties, 'networkProfile')) },
    };
  }

  /** Deletes the parts with the delete option `Delete` and detaches the others. */
  delete(vm: Resource, afterMs: number): void {
    const { store } = this.cloud;
    const disk = objectIn(objectIn(vm.properties, 'storageProfile'), 'osDisk');
    const nics = listIn(objectIn(vm.properties, 'networkProfile'), 'networkInterfaces');
    const deleted = nics.filter((nic) => textIn(objectIn(nic, 'properties'), 'deleteOption') === 'Delete');
    const ids = deleted.map((nic) => textIn(nic, 'id'));
    if (textIn(disk, 'deleteOption') === 'Delete') ids.push(textIn(objectIn(disk, 'managedDisk'), 'id'));
    for (const id of ids) {
      const part = store.get(id);
      if (part === undefined) continue;
      for (const configuration of listIn(part.properties, 'ipConfigurations')) {
        const reference = objectIn(objectIn(configuration, 'properties'), 'publicIPAddress');
        const address = store.get(textIn(reference, 'id'));
        const { deleteOption } = objectIn(reference, 'properties');
        if (address !== undefined && deleteOption === 'Delete') store.remove(address, afterMs);
      }
      store.remove(part, afterMs);
    }
  }

  private addDisk(vm: Resource, storage: JsonObject): JsonObject {
    const disk = objectIn(storage, 'osDisk');
    const ephemeral = disk['diffDiskSettings'] !== undefined;
    const name = textIn(disk, 'name') === '' ? `${vm.name}_OsDisk_1` : textIn(disk, 'name');
    const sku = textIn(objectIn(disk, 'managedDisk'), 'storageAccountType') || 'Standard_LRS';
    const made = this.cloud.store.put({
      ...{ type: DISK, group: vm.group, name, location: vm.location, tags: vm.tags, workMs: 0 },
      extra: { managedBy: vm.id, sku: { name: sku } },
      properties: {
        diskState: 'Attached',
        diskSizeGB: disk['diskSizeGB'] ?? 30,
        creationData: { createOption: 'FromImage' },
      },
    });
    const deleteOption = disk['deleteOption'] ?? (ephemeral ? 'Delete' : 'Detach');
    const managedDisk = { id: made.id, storageAccountType: sku };
    return { ...storage, osDisk: { ...disk, name, deleteOption, managedDisk } };
  }

  private addInterfaces(vm: Resource, network: JsonObject): JsonObject[] {
    return listIn(network, 'networkInterfaceConfigurations').map((nic) => {
      const properties = objectIn(nic, 'properties');
      const configurations = listIn(properties, 'ipConfigurations').map((one) => this.addAddress(vm, one));
      const made = this.cloud.store.put({
        ...{ type: NIC, group: vm.group, name: textIn(nic, 'name'), location: vm.location },
        ...{ tags: tagsIn(nic['tags']), workMs: 0 },
        properties: { virtualMachine: { id: vm.id }, primary: true, ipConfigurations: configurations },
      });
      this.attach(made);
      return {
        id: made.id,
        properties: { primary: properties['primary'] ?? true, deleteOption: properties['deleteOption'] ?? 'Detach' },
      };
    });
  }

  /** Links an address to its interface. */
  private attach(nic: Resource): void {
    for (const configuration of listIn(nic.properties, 'ipConfigurations')) {
      const reference = objectIn(objectIn(configuration, 'properties'), 'publicIPAddress');
      const address = this.cloud.store.get(textIn(reference, 'id'));
      const id = `${nic.id}/ipConfigurations/${textIn(configuration, 'name')}`;
      if (address !== undefined) address.properties = { ...address.properties, ipConfiguration: { id } };
    }
  }

  private addAddress(vm: Resource, configuration: JsonObject): JsonObject {
    const properties = objectIn(configuration, 'properties');
    this.addresses += 1;
    const number = this.addresses;
    const version = textIn(properties, 'privateIPAddressVersion') === 'IPv6' ? 'IPv6' : 'IPv4';
    const wanted = properties['publicIPAddressConfiguration'];
    const address = isJsonObject(wanted) ? this.addPublicAddress(vm, wanted, version, number) : undefined;
    const deleteOption = isJsonObject(wanted) ? objectIn(wanted, 'properties')['deleteOption'] : undefined;
    return {
      name: textIn(configuration, 'name'),
      properties: {
        privateIPAddress: version === 'IPv4' ? `10.${octets(number)}` : `fd00::${number.toString(16)}`,
        privateIPAddressVersion: version,
        primary: properties['primary'] ?? version === 'IPv4',
        subnet: objectIn(properties, 'subnet'),
        ...(address === undefined
          ? {}
          : { publicIPAddress: { id: address.id, properties: { deleteOption: deleteOption ?? 'Detach' } } }),
      },
    };
  }

  private addPublicAddress(vm: Resource, wanted: JsonObject, version: string, number: number): Resource {
    const { publicIPAllocationMethod = 'Dynamic' } = objectIn(wanted, 'properties');
    return this.cloud.store.put({
      ...{ type: IP, group: vm.group, name: textIn(wanted, 'name'), location: vm.location },
      ...{ tags: tagsIn(wanted['tags']), workMs: this.cloud.settings.addressMs },
      extra: { sku: wanted['sku'] ?? { name: 'Basic' } },
      properties: {
        publicIPAddressVersion: version,
        publicIPAllocationMethod,
        ipAddress: version === 'IPv4' ? `203.${octets(number)}` : `2001:db8::${number.toString(16)}`,
      },
    });
  }
}

function octets(number: number): string {
  return `${(number >> 16) & 255}.${(number >> 8) & 255}.${number & 255}`;
}

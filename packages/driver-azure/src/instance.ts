/** From a VM as Azure describes it to an instance as core knows it. */

import type { VirtualMachine } from '@azure/arm-compute';
import type { NetworkInterface } from '@azure/arm-network';
import type { ExternalId, Instance } from '@nodepool/core';
import type { VmSize } from './lookups.js';
import { nameIn, tagsOf } from './identity.js';
import { resourcesOf } from './quota.js';

/** A VM as lists show it: they know nothing of addresses, so none is ready by a list alone. */
export function instanceOf(vm: VirtualMachine, sizes: ReadonlyMap<string, VmSize> | undefined): Instance {
  const size = sizes?.get((vm.hardwareProfile?.vmSize ?? '').toLowerCase());
  const state = vm.provisioningState;
  return {
    externalId: vm.name ?? nameIn(vm.id) ?? '',
    hostname: vm.osProfile?.computerName ?? vm.name,
    ready: state === 'Succeeded',
    deleted: false,
    failed: state === 'Failed' ? failureIn(vm) : state === 'Deleting' ? 'somebody is deleting it' : undefined,
    tags: tagsOf(vm),
    cloud: 'Azure',
    region: vm.location,
    az: vm.zones?.[0],
    resources: size === undefined ? { instances: 1 } : resourcesOf(size),
  };
}

/** What a failed VM says of the reason. */
export function failureIn(vm: VirtualMachine): string {
  const said = vm.instanceView?.statuses?.find(({ level }) => level === 'Error');
  return said?.message ?? said?.displayStatus ?? 'Azure could not provision it';
}

/** The addresses on a VM's interface, which was read with its public addresses. */
export function addressesOf(nic: NetworkInterface, useInternalIp: boolean): Partial<Instance> {
  const configurations = nic.ipConfigurations ?? [];
  const of = (version: string): (typeof configurations)[number] | undefined =>
    configurations.find(({ privateIPAddressVersion }) => (privateIPAddressVersion ?? 'IPv4') === version);
  const [v4, v6] = [of('IPv4'), of('IPv6')];
  const publicIpv4 = v4?.publicIPAddress?.ipAddress;
  const publicIpv6 = v6?.publicIPAddress?.ipAddress;
  const [privateIpv4, privateIpv6] = [v4?.privateIPAddress, v6?.privateIPAddress];
  const inside = privateIpv4 ?? privateIpv6;
  return {
    publicIpv4,
    publicIpv6: publicIpv6 ?? privateIpv6,
    privateIpv4,
    interfaceIp: useInternalIp ? inside : (publicIpv4 ?? publicIpv6 ?? inside),
  };
}

/** Names are texts in this cloud. */
export function nameOf(externalId: ExternalId): string {
  return typeof externalId === 'string' ? externalId : JSON.stringify(externalId);
}

import type { ExternalId, Instance } from '@nodepool/core';
import type { NetworkInterface, VirtualMachine } from './client/types.js';
import type { VmSize } from './lookups.js';
import { isCopy, nameIn, tagsOf } from './identity.js';
import { resourcesOf } from './quota.js';

/** Converts a listed VM. Listings lack addresses, so a listed VM is never ready. */
export function instanceOf(vm: VirtualMachine, sizes: ReadonlyMap<string, VmSize> | undefined): Instance {
  const { hardwareProfile, osProfile, priority, provisioningState: state } = vm.properties ?? {};
  const vmSize = hardwareProfile?.vmSize;
  const size = sizes?.get((vmSize ?? '').toLowerCase());
  const spot = priority === 'Spot' || priority === 'Low';
  return {
    externalId: vm.name ?? nameIn(vm.id) ?? '',
    hostname: osProfile?.computerName ?? vm.name,
    ready: state === 'Succeeded',
    deleted: false,
    failed: state === 'Failed' ? failureIn(vm) : state === 'Deleting' ? 'it is being deleted' : undefined,
    // An evicted spot VM is deleted, as `evictionPolicy` demands.
    reclaimed: state === 'Deleting' && spot ? {} : undefined,
    tags: isCopy(vm) ? {} : tagsOf(vm),
    cloud: 'Azure',
    region: vm.location,
    az: vm.zones?.[0],
    machine: vmSize === undefined ? undefined : { type: vmSize, market: spot ? 'spot' : 'on-demand' },
    resources: size === undefined ? { instances: 1 } : resourcesOf(size, spot),
  };
}

/** Returns why a VM failed. Only a VM that was read with its instance view contains the reason. */
export function failureIn(vm: VirtualMachine): string {
  const said = vm.properties?.instanceView?.statuses?.find(({ level }) => level === 'Error');
  return said?.message ?? said?.displayStatus ?? 'Azure could not provision it';
}

/**
 * Returns the addresses of a network interface that was read with its public addresses. Returns undefined if Azure has
 * not assigned all of them yet.
 */
export function addressesOf(nic: NetworkInterface, useInternalIp: boolean): Partial<Instance> | undefined {
  const configurations = (nic.properties?.ipConfigurations ?? []).map(({ properties = {} }) => properties);
  const of = (version: string): (typeof configurations)[number] | undefined =>
    configurations.find(({ privateIPAddressVersion }) => (privateIPAddressVersion ?? 'IPv4') === version);
  const [v4, v6] = [of('IPv4'), of('IPv6')];
  const publicIpv4 = v4?.publicIPAddress?.properties?.ipAddress;
  const publicIpv6 = v6?.publicIPAddress?.properties?.ipAddress;
  const [privateIpv4, privateIpv6] = [v4?.privateIPAddress, v6?.privateIPAddress];
  const unassigned = configurations.some(
    ({ privateIPAddress, publicIPAddress }) =>
      privateIPAddress === undefined ||
      (publicIPAddress !== undefined && publicIPAddress.properties?.ipAddress === undefined),
  );
  if (unassigned || configurations.length === 0) return undefined;
  const inside = privateIpv4 ?? privateIpv6;
  return {
    publicIpv4,
    publicIpv6,
    privateIpv4,
    interfaceIp: useInternalIp ? inside : (publicIpv4 ?? publicIpv6 ?? inside),
  };
}

/** Returns the external id as a string, the only type of names in this cloud. */
export function nameOf(externalId: ExternalId): string {
  return typeof externalId === 'string' ? externalId : JSON.stringify(externalId);
}

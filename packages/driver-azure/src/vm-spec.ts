/** From a label to the body of the one PUT that makes a VM with everything that belongs to it. */

import type { ImageReference, VirtualMachine, VirtualMachineNetworkInterfaceIPConfiguration } from '@azure/arm-compute';
import type { CreateRequest, RandomSource } from '@nodepool/core';
import { asTag, type Addresses, type AzureLabel } from './config.js';
import { tagsOf } from './identity.js';

/** Version of the network service with which the interface and the addresses are made; it knows all that is asked for here. */
const NETWORK_API = '2022-11-01';
/** Longest name of a Windows host. */
const COMPUTER_NAME_MAX = 15;

export interface Surroundings {
  readonly location: string;
  readonly provider: string;
  readonly subnetId: string;
  readonly image: ImageReference;
  readonly random: RandomSource;
}

export function vmSpec(name: string, request: CreateRequest<AzureLabel>, surroundings: Surroundings): VirtualMachine {
  const { label, hostname, availabilityZone } = request;
  const { location, image } = surroundings;
  const tags = tagsFor(request);
  return {
    location,
    tags,
    ...(availabilityZone === undefined ? {} : { zones: [availabilityZone] }),
    hardwareProfile: { vmSize: label.vmSize },
    storageProfile: {
      imageReference: image,
      osDisk: {
        name: `${name}-disk`,
        createOption: 'FromImage',
        deleteOption: 'Delete',
        ...(label.volumeSize === undefined ? {} : { diskSizeGB: label.volumeSize }),
        ...(label.volumeType === undefined ? {} : { managedDisk: { storageAccountType: label.volumeType } }),
        // Azure has ephemeral disks only with this cache.
        ...(label.ephemeralDisk ? { caching: 'ReadOnly', diffDiskSettings: { option: 'Local' } } : {}),
      },
    },
    osProfile: {
      computerName: hostname.slice(0, COMPUTER_NAME_MAX),
      adminUsername: label.username,
      ...loginOf(label, surroundings.random),
      ...(label.customData === undefined ? {} : { customData: label.customData }),
    },
    networkProfile: {
      networkApiVersion: NETWORK_API,
      networkInterfaceConfigurations: [
        {
          name: `${name}-nic`,
          primary: true,
          deleteOption: 'Delete',
          tags,
          ipConfigurations: ipConfigurations(name, label.addresses, surroundings.subnetId, tags),
        },
      ],
    },
    ...(label.userData === undefined ? {} : { userData: label.userData }),
    ...purchaseOf(label),
  };
}

/** Terms, protection and identity of the VM. */
function purchaseOf({ spot, trustedLaunch, identities }: AzureLabel): Partial<VirtualMachine> {
  return {
    // A spot VM that Azure only stopped would still count, and never run again.
    ...(spot === undefined
      ? {}
      : { priority: 'Spot', evictionPolicy: 'Delete', billingProfile: { maxPrice: spot.maxPrice } }),
    ...(trustedLaunch === undefined
      ? {}
      : {
          securityProfile: {
            securityType: 'TrustedLaunch',
            uefiSettings: { secureBootEnabled: trustedLaunch.secureBoot, vTpmEnabled: trustedLaunch.vtpm },
          },
        }),
    ...(identities.length === 0
      ? {}
      : {
          identity: {
            type: 'UserAssigned',
            userAssignedIdentities: Object.fromEntries(identities.map((id) => [id, {}])),
          },
        }),
  };
}

/** The operator's tags, then those of the request, then ours, which nothing can hide. */
function tagsFor({ label, request, tags }: CreateRequest<AzureLabel>): Record<string, string> {
  const dynamic = [...label.dynamicTags].map(([name, template]) => [name, asTag(template.render(request))] as const);
  return { ...label.tags, ...Object.fromEntries(dynamic), ...tags };
}

function loginOf(label: AzureLabel, random: RandomSource): NonNullable<VirtualMachine['osProfile']> {
  const { key, username, generatePassword } = label;
  const password = label.password ?? (generatePassword ? generatedPassword(random) : undefined);
  const publicKeys = key === undefined ? [] : [{ path: `/home/${username}/.ssh/authorized_keys`, keyData: key }];
  return {
    ...(password === undefined ? {} : { adminPassword: password }),
    ...(key === undefined
      ? {}
      : { linuxConfiguration: { disablePasswordAuthentication: password === undefined, ssh: { publicKeys } } }),
  };
}

/** To Azure's rules: three of four kinds of characters, at least 12; all four and 36 here, 122 bits of them by chance. */
export function generatedPassword(random: RandomSource): string {
  return `Np1-${random.uuidHex()}`;
}

function ipConfigurations(
  name: string,
  addresses: Addresses,
  subnetId: string,
  tags: Record<string, string>,
): VirtualMachineNetworkInterfaceIPConfiguration[] {
  const { ipv6, publicIpv4, publicIpv6 } = addresses;
  const one = (
    version: 'IPv4' | 'IPv6',
    isPublic: boolean,
    primary: boolean,
  ): VirtualMachineNetworkInterfaceIPConfiguration => {
    const suffix = version.toLowerCase();
    const publicIPAddressConfiguration = {
      name: `${name}-${suffix}`,
      sku: { name: 'Standard' },
      publicIPAddressVersion: version,
      publicIPAllocationMethod: 'Static',
      deleteOption: 'Delete',
      tags: tagsOf({ tags }),
    };
    return {
      name: `${suffix}-config`,
      primary,
      privateIPAddressVersion: version,
      subnet: { id: subnetId },
      ...(isPublic ? { publicIPAddressConfiguration } : {}),
    };
  };
  // Azure has no interface without IPv4, and its primary configuration is IPv4.
  return [one('IPv4', publicIpv4, true), ...(ipv6 ? [one('IPv6', publicIpv6, false)] : [])];
}

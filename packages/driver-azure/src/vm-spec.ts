/** Builds the body of the PUT request that creates a VM and all its resources. */

import type { CreateRequest, RandomSource } from '@nodepool/core';
import type {
  ImageReference,
  IpConfiguration,
  OsDisk,
  OsProfile,
  VirtualMachine,
  VmProperties,
} from './client/types.js';
import { asTag, type Addresses, type AzureLabel } from './config.js';
import { OWNER_TAG, ownerTagOf } from './identity.js';

/** Version of the network service API for the VM's interface and addresses. */
const NETWORK_API = '2022-11-01';
/** Maximum length of a Windows hostname. */
const COMPUTER_NAME_MAX = 15;

export interface Environment {
  readonly location: string;
  readonly resourceGroup: string;
  readonly subnetId: string;
  readonly image: ImageReference;
  readonly random: RandomSource;
}

export function vmSpec(name: string, request: CreateRequest<AzureLabel>, environment: Environment): VirtualMachine {
  const { label, availabilityZone, machineType = label.vmSize } = request;
  const tags = { ...tagsFor(request), [OWNER_TAG]: ownerTagOf(environment.resourceGroup, name) };
  const { identities, userData } = label;
  return {
    location: environment.location,
    tags,
    ...(availabilityZone === undefined ? {} : { zones: [availabilityZone] }),
    ...(identities.length === 0 ? {} : { identity: identityOf(identities) }),
    properties: {
      hardwareProfile: { vmSize: machineType },
      storageProfile: { imageReference: environment.image, osDisk: diskOf(name, label) },
      osProfile: osProfileOf(request, environment.random),
      networkProfile: {
        networkApiVersion: NETWORK_API,
        networkInterfaceConfigurations: [
          {
            name: `${name}-nic`,
            tags,
            properties: {
              primary: true,
              deleteOption: 'Delete',
              ipConfigurations: ipConfigurations(name, label.addresses, environment.subnetId, tags),
            },
          },
        ],
      },
      ...(userData === undefined ? {} : { userData }),
      ...termsOf(label),
    },
  };
}

function diskOf(name: string, { volumeSize, volumeType, ephemeralDisk }: AzureLabel): OsDisk {
  return {
    name: `${name}-disk`,
    createOption: 'FromImage',
    deleteOption: 'Delete',
    ...(volumeSize === undefined ? {} : { diskSizeGB: volumeSize }),
    ...(volumeType === undefined ? {} : { managedDisk: { storageAccountType: volumeType } }),
    // Azure requires this cache mode for ephemeral disks.
    ...(ephemeralDisk ? { caching: 'ReadOnly', diffDiskSettings: { option: 'Local' } } : {}),
  };
}

function osProfileOf({ label, hostname }: CreateRequest<AzureLabel>, random: RandomSource): OsProfile {
  const { username, customData } = label;
  return {
    computerName: hostname.slice(0, COMPUTER_NAME_MAX),
    adminUsername: username,
    ...loginOf(label, random),
    ...(customData === undefined ? {} : { customData }),
  };
}

function identityOf(ids: readonly string[]): NonNullable<VirtualMachine['identity']> {
  return { type: 'UserAssigned', userAssignedIdentities: Object.fromEntries(ids.map((id) => [id, {}])) };
}

/** Returns the spot and security properties of the VM. */
function termsOf({ spot, trustedLaunch }: AzureLabel): VmProperties {
  return {
    // A deallocated spot VM would still use quota and never run again, so eviction deletes it.
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
  };
}

/** Returns the operator's tags, overridden by those of the request, overridden by Nodepool's. */
function tagsFor({ label, request, tags }: CreateRequest<AzureLabel>): Record<string, string> {
  const dynamic = [...label.dynamicTags].map(([name, template]) => [name, asTag(template.render(request))] as const);
  return { ...label.tags, ...Object.fromEntries(dynamic), ...tags };
}

function loginOf(label: AzureLabel, random: RandomSource): OsProfile {
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

/**
 * Generates an administrator password. Azure requires three of four character classes and 12 characters; this one has
 * all four classes, 36 characters and 122 random bits.
 */
function generatedPassword(random: RandomSource): string {
  return `Np1-${random.uuidHex()}`;
}

function ipConfigurations(
  name: string,
  addresses: Addresses,
  subnetId: string,
  tags: Record<string, string>,
): IpConfiguration[] {
  const { ipv6, publicIpv4, publicIpv6 } = addresses;
  const one = (version: 'IPv4' | 'IPv6', isPublic: boolean): IpConfiguration => {
    const suffix = version.toLowerCase();
    const publicIPAddressConfiguration = {
      name: `${name}-${suffix}`,
      sku: { name: 'Standard' },
      tags,
      properties: { publicIPAddressVersion: version, publicIPAllocationMethod: 'Static', deleteOption: 'Delete' },
    } as const;
    return {
      name: `${suffix}-config`,
      properties: {
        primary: version === 'IPv4',
        privateIPAddressVersion: version,
        subnet: { id: subnetId },
        ...(isPublic ? { publicIPAddressConfiguration } : {}),
      },
    };
  };
  // Azure requires IPv4 as the primary configuration of every network interface.
  return [one('IPv4', publicIpv4), ...(ipv6 ? [one('IPv6', publicIpv6)] : [])];
}

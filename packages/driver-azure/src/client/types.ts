/**
 * The properties of Azure resources that this driver reads and writes, as on the wire.
 *
 * Source: Azure/azure-rest-api-specs; `tooling/simulated-azure/definitions` contains the parts that tests validate
 * against.
 */

type Tags = Record<string, string>;

export interface Reference {
  readonly id?: string;
}

interface Named extends Reference {
  readonly name?: string;
  readonly location?: string;
  readonly tags?: Tags;
}

export interface VirtualNetwork extends Named {
  readonly properties?: { readonly subnets?: readonly { readonly id?: string; readonly name?: string }[] };
}

/** `Failed`, `Succeeded`, or work in progress, e.g. `Creating`. */
interface Provisioned {
  readonly provisioningState?: string;
}

export type ImageReference = Readonly<Record<string, string>>;

export interface VirtualMachine extends Named {
  readonly zones?: readonly string[];
  readonly identity?: { readonly type: 'UserAssigned'; readonly userAssignedIdentities: Record<string, object> };
  readonly properties?: VmProperties;
}

export interface VmProperties extends Provisioned {
  readonly hardwareProfile?: { readonly vmSize?: string };
  readonly storageProfile?: { readonly imageReference?: ImageReference; readonly osDisk?: OsDisk };
  readonly osProfile?: OsProfile;
  readonly networkProfile?: NetworkProfile;
  readonly userData?: string;
  readonly priority?: string;
  readonly evictionPolicy?: 'Delete';
  readonly billingProfile?: { readonly maxPrice: number };
  readonly securityProfile?: {
    readonly securityType: 'TrustedLaunch';
    readonly uefiSettings: { readonly secureBootEnabled: boolean; readonly vTpmEnabled: boolean };
  };
  readonly instanceView?: { readonly statuses?: readonly InstanceStatus[] };
}

export interface InstanceStatus {
  readonly level?: string;
  readonly displayStatus?: string;
  readonly message?: string;
}

export interface OsDisk {
  readonly name: string;
  readonly createOption: 'FromImage';
  readonly deleteOption: 'Delete';
  readonly diskSizeGB?: number;
  readonly managedDisk?: { readonly storageAccountType: string };
  readonly caching?: 'ReadOnly';
  readonly diffDiskSettings?: { readonly option: 'Local' };
}

export interface OsProfile {
  readonly computerName?: string;
  readonly adminUsername?: string;
  readonly adminPassword?: string;
  readonly customData?: string;
  readonly linuxConfiguration?: {
    readonly disablePasswordAuthentication: boolean;
    readonly ssh: { readonly publicKeys: readonly { readonly path: string; readonly keyData: string }[] };
  };
}

export interface NetworkProfile {
  readonly networkApiVersion?: string;
  readonly networkInterfaceConfigurations?: readonly NicConfiguration[];
  readonly networkInterfaces?: readonly (Reference & { readonly properties?: { readonly primary?: boolean } })[];
}

export interface NicConfiguration {
  readonly name: string;
  readonly tags: Tags;
  readonly properties: {
    readonly primary: boolean;
    readonly deleteOption: 'Delete';
    readonly ipConfigurations: readonly IpConfiguration[];
  };
}

/** An IP configuration of a network interface that is created with its VM. */
export interface IpConfiguration {
  readonly name: string;
  readonly properties: {
    readonly primary: boolean;
    readonly privateIPAddressVersion: 'IPv4' | 'IPv6';
    readonly subnet: Reference;
    readonly publicIPAddressConfiguration?: {
      readonly name: string;
      readonly sku: { readonly name: 'Standard' };
      readonly tags: Tags;
      readonly properties: {
        readonly publicIPAddressVersion: 'IPv4' | 'IPv6';
        readonly publicIPAllocationMethod: 'Static';
        readonly deleteOption: 'Delete';
      };
    };
  };
}

export interface NetworkInterface extends Named {
  readonly properties?: {
    readonly virtualMachine?: Reference;
    readonly ipConfigurations?: readonly {
      readonly properties?: {
        readonly privateIPAddress?: string;
        readonly privateIPAddressVersion?: string;
        readonly publicIPAddress?: PublicIpAddress;
      };
    }[];
  };
}

export interface PublicIpAddress extends Named {
  readonly properties?: { readonly ipAddress?: string; readonly ipConfiguration?: Reference };
}

export interface Disk extends Named {
  readonly managedBy?: string;
  readonly sku?: { readonly name: string };
  readonly properties?: {
    readonly osType?: 'Linux' | 'Windows';
    readonly hyperVGeneration?: 'V1' | 'V2';
    readonly creationData?: { readonly createOption: 'Upload'; readonly uploadSizeBytes: number };
  };
}

export interface Image extends Named {
  readonly properties?: Provisioned & {
    readonly hyperVGeneration?: 'V1' | 'V2';
    readonly storageProfile?: {
      readonly zoneResilient: boolean;
      readonly osDisk: {
        readonly osType: 'Linux' | 'Windows';
        readonly osState: 'Generalized';
        readonly managedDisk: Reference;
      };
    };
  };
}

export interface ResourceSku {
  readonly name?: string;
  readonly family?: string;
  readonly resourceType?: string;
  readonly locations?: readonly string[];
  readonly capabilities?: readonly { readonly name?: string; readonly value?: string }[];
  readonly restrictions?: readonly { readonly type?: string; readonly reasonCode?: string }[];
}

export interface Usage {
  readonly name: { readonly value?: string };
  readonly limit: number;
}

/** What neutron keeps. */

import type { Owned } from '../table.js';
import type { AddressPool } from './addresses.js';

/** Of every resource of neutron. */
export interface Standard extends Owned {
  name: string;
  description: string;
  tags: readonly string[];
  updatedAt: number;
  revision: number;
}

export interface NetworkRecord extends Standard {
  readonly external: boolean;
  readonly shared: boolean;
}

export interface SubnetRecord extends Standard {
  readonly networkId: string;
  readonly version: 4 | 6;
  readonly cidr: string;
  readonly pool: AddressPool;
}

export interface FixedIp {
  readonly subnet_id: string;
  readonly ip_address: string;
}

export interface PortRecord extends Standard {
  readonly networkId: string;
  readonly mac: string;
  readonly fixedIps: readonly FixedIp[];
  readonly securityGroups: readonly string[];
  status: 'ACTIVE' | 'DOWN';
  deviceId: string;
  deviceOwner: string;
  /** Nova made it, and removes it together with the server. */
  readonly madeByNova: boolean;
}

export interface FloatingIpRecord extends Standard {
  readonly networkId: string;
  readonly address: string;
  portId: string | null;
  fixedIp: string | null;
  routerId: string | null;
}

export interface RouterRecord extends Standard {
  readonly externalNetworkId: string;
  readonly externalIps: readonly FixedIp[];
  /** Subnets that it has an interface in. */
  readonly subnets: Set<string>;
}

export type SecurityGroupRecord = Standard;

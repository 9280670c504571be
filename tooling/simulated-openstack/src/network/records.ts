/** Records of neutron. */

import type { Owned } from '../table.js';
import type { AddressPool } from './addresses.js';

/** Properties of all neutron resources. */
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
  /** True if nova created the port, and deletes it with the server. */
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
  /** Subnets in which the router has an interface. */
  readonly subnets: Set<string>;
}

export type SecurityGroupRecord = Standard;

/** Network interfaces, and the addresses of subnets. */

import type { Region } from '../region.js';
import type { NetworkInterface, Subnet } from './records.js';
import { KINDS } from './table.js';

export interface NewInterface {
  readonly subnetId: string;
  readonly groupIds: readonly string[];
  readonly description: string;
  readonly privateIp: string;
  readonly ipv6: readonly string[];
  readonly publicIp: string | undefined;
  readonly tags: ReadonlyMap<string, string> | undefined;
}

export function newInterface(region: Region, { tags, ...fields }: NewInterface): NetworkInterface {
  return { ...fields, ...region.newResource(KINDS.networkInterface, tags), attachment: undefined };
}

/** Takes a free private address of a subnet, and IPv6 addresses with the same last part. */
export function takeAddresses(subnet: Subnet, ipv6Count: number): Pick<NewInterface, 'privateIp' | 'ipv6'> {
  // AWS reserves the first four addresses of a subnet.
  let number = subnet.base + 4;
  while (subnet.used.has(number)) number++;
  subnet.used.add(number);
  const privateIp = [number >> 24, number >> 16, number >> 8, number].map((part) => part & 0xff).join('.');
  const ipv6 = Array.from(
    { length: ipv6Count },
    (_, index) => `${subnet.ipv6Prefix}::${(number - subnet.base).toString(16)}:${(index + 1).toString(16)}`,
  );
  return { privateIp, ipv6 };
}

/** Removes an interface, and frees its private address. */
export function removeInterface(region: Region, nic: NetworkInterface, at: number): void {
  const subnet = region.subnets.get(nic.subnetId);
  const [a = 0, b = 0, c = 0, d = 0] = nic.privateIp.split('.').map(Number);
  subnet?.used.delete(((a << 24) | (b << 16) | (c << 8) | d) >>> 0);
  region.interfaces.remove(nic, at);
}

import { lookup } from 'node:dns/promises';
import { isIP } from 'node:net';
import { reasonOf, TransientError } from '@nodepool/core';

export interface Addresses {
  readonly publicIpv4?: string;
  readonly publicIpv6?: string;
}

export type Resolve = (hostname: string) => Promise<Addresses>;

/** Resolves a host name as the system does. Returns IP addresses unchanged without a lookup. */
export async function resolveName(hostname: string): Promise<Addresses> {
  const literal = isIP(hostname);
  if (literal !== 0) return addressesOf(hostname, literal);
  try {
    const { address, family } = await lookup(hostname);
    return addressesOf(address, family);
  } catch (error) {
    throw new TransientError(`host name ${hostname} could not be resolved: ${reasonOf(error)}`, { cause: error });
  }
}

function addressesOf(address: string, family: number): Addresses {
  return family === 4 ? { publicIpv4: address } : { publicIpv6: address };
}

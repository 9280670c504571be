/** Selects the addresses of a server for requestors and for the launcher. */

import type { Cloud } from './client/cloud.js';
import type { Network } from './client/network.js';
import type { Server, ServerAddress } from './client/server.js';

/** Known properties of the networks that addresses belong to. */
export interface AddressFacts {
  readonly networks: readonly Network[];
  readonly hints: Cloud['networks'];
}

export interface ChosenAddresses {
  /** The address on the network with `default_interface`, if there is one. */
  readonly defaultAddress: string | undefined;
  readonly publicIpv4: string | undefined;
  readonly privateIpv4: string | undefined;
  readonly publicIpv6: string | undefined;
  readonly hasFloating: boolean;
}

/**
 * Selects a server's addresses. Public IPv4: the floating address, else the first on a network that routes externally,
 * else the first globally routable one. Private IPv4: the first other address, on a default-interface network if one is
 * configured.
 */
export function chooseAddresses({ addresses }: Pick<Server, 'addresses'>, facts: AddressFacts): ChosenAddresses {
  const ordered = addresses.toSorted((a, b) => Number(preferred(b, facts)) - Number(preferred(a, facts)));
  const v4 = ordered.filter(({ version }) => version === 4);
  const floating = v4.find((address) => address.floating);
  const fixed = v4.filter((address) => !address.floating);
  const publicFixed = fixed.find((address) => isPublic(address, facts));
  const privateFixed = fixed.find((address) => !isPublic(address, facts));
  const v6 = ordered.filter(({ version, address }) => version === 6 && !isLocalIpv6(address));
  const candidates = [...v4.filter((address) => address.floating), ...fixed, ...v6];
  return {
    defaultAddress: candidates.find((address) => preferred(address, facts))?.address,
    publicIpv4: (floating ?? publicFixed)?.address,
    privateIpv4: privateFixed?.address,
    publicIpv6: v6[0]?.address,
    hasFloating: floating !== undefined,
  };
}

/**
 * Returns the address at which requestors reach a node: the one on the network with `default_interface`, else the
 * private one if `wantsPrivate` is true, else the public one. Falls back to IPv6, then to a private address.
 */
export function interfaceAddress(chosen: ChosenAddresses, wantsPrivate: boolean): string | undefined {
  const { defaultAddress, publicIpv4, privateIpv4, publicIpv6 } = chosen;
  return defaultAddress ?? (wantsPrivate ? privateIpv4 : undefined) ?? publicIpv4 ?? publicIpv6 ?? privateIpv4;
}

function preferred({ network }: ServerAddress, facts: AddressFacts): boolean {
  return hintFor(network, facts)?.defaultInterface === true;
}

/** Returns the settings of a network, which can name it by its id. */
function hintFor(network: string, { networks, hints }: AddressFacts): AddressFacts['hints'][number] | undefined {
  const ids = new Set(networks.filter(({ name }) => name === network).map(({ id }) => id));
  return hints.find(({ name }) => name === network || ids.has(name));
}

function isPublic({ network, address }: ServerAddress, facts: AddressFacts): boolean {
  const hinted = hintFor(network, facts)?.routesExternally;
  if (hinted !== undefined) return hinted;
  return facts.networks.some(({ name, external }) => external && name === network) || isRoutableIpv4(address);
}

/** Ranges of the IANA special-purpose address registry that are used for servers. */
const LOCAL_IPV4: readonly (readonly [first: string, bits: number])[] = [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['224.0.0.0', 3],
];

function isRoutableIpv4(address: string): boolean {
  const number = ipv4Number(address);
  return !LOCAL_IPV4.some(([first, bits]) => number >>> (32 - bits) === ipv4Number(first) >>> (32 - bits));
}

function ipv4Number(address: string): number {
  return address.split('.').reduce((number, part) => ((number << 8) | Number(part)) >>> 0, 0);
}

/** Returns true for link-local (fe80::/10) and unique local (fc00::/7) addresses. */
function isLocalIpv6(address: string): boolean {
  return /^(fe[89ab]|f[cd])/i.test(address) || address === '::1';
}

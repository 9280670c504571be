import { lookup, lookupService } from 'node:dns/promises';
import { hostname } from 'node:os';

/** The host name of the system and its name service. */
export interface HostNames {
  hostname(): string;
  /** Resolves with an address of the name. */
  addressOf(name: string): Promise<string>;
  /** Resolves with the first name of the address. */
  nameOf(address: string): Promise<string>;
}

/** Addresses at which an endpoint listens on all networks. */
const EVERYWHERE: readonly string[] = ['0.0.0.0', '::', ''];

const systemHostNames: HostNames = {
  hostname,
  addressOf: async (name) => (await lookup(name)).address,
  nameOf: async (address) => (await lookupService(address, 0)).hostname,
};

/**
 * Returns the name with its domain as Python's `socket.getfqdn` does, which identifies this machine to other programs.
 * Returns the plain host name if the name service knows no domain or does not answer.
 */
export async function fullyQualifiedHostname(names: HostNames = systemHostNames): Promise<string> {
  const name = names.hostname();
  if (name.includes('.')) return name;
  try {
    const found = await names.nameOf(await names.addressOf(name));
    return found.includes('.') ? found : name;
  } catch {
    return name;
  }
}

/** Returns the host for clients on other machines of an endpoint that listens at `address`. */
export function hostForClients(address: string, fqdn: string): string {
  return EVERYWHERE.includes(address) ? fqdn : address;
}

/** Returns the name of this process, which no other running process has. */
export function processIdentifier(): string {
  return `${hostname()}-${process.pid}`;
}

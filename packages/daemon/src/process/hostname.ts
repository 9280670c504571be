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

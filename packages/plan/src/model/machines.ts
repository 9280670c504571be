/** Machines that exist, e.g. static ones: their driver's own code runs in a replay, which must not look up names. */

import { isIP } from 'node:net';
import type { NodepoolConfig } from '@nodepool/config';
import { isJsonObject, type Driver, type JsonObject, type JsonValue, type ProviderConfig } from '@nodepool/core';

/** Returns the configuration of the provider with an address in the place of each machine's name. */
export function withAddresses(
  provider: ProviderConfig,
  driver: Driver,
  { diskImages, labels }: Pick<NodepoolConfig, 'diskImages' | 'labels'>,
): ProviderConfig {
  const problems: string[] = [];
  const addressed = driver.getProviderConfig(sectionWithAddresses(provider.section), {
    diskImages,
    labels: new Set(labels.keys()),
    problem: (path, { expected, hint }) =>
      void problems.push(`${path.join('.')}: expected ${expected}${hint === undefined ? '' : `; ${hint}`}`),
  });
  if (problems.length > 0) throw new Error(`provider ${provider.name} cannot be replayed: ${problems.join('; ')}`);
  return addressed;
}

function sectionWithAddresses(section: JsonObject): JsonObject {
  const addresses = new Map<string, string>();
  const addressOf = (name: string): string => {
    const address = addresses.get(name) ?? testAddress(addresses.size + 1);
    addresses.set(name, address);
    return address;
  };
  const withAddress = (machine: JsonValue): JsonValue => {
    if (!isJsonObject(machine)) return machine;
    const { name } = machine;
    return typeof name === 'string' && isIP(name) === 0 ? { ...machine, name: addressOf(name) } : machine;
  };
  return changeLists(section, 'pools', (pool) => (isJsonObject(pool) ? changeLists(pool, 'nodes', withAddress) : pool));
}

/** Returns the object with a changed list, if it has one. */
function changeLists(object: JsonObject, key: string, change: (each: JsonValue) => JsonValue): JsonObject {
  const list = object[key];
  return Array.isArray(list) ? { ...object, [key]: list.map(change) } : object;
}

/** Returns an address of the network for benchmarks, 198.18.0.0/15 (RFC 2544). */
function testAddress(number: number): string {
  return `198.${18 + (number >> 16)}.${(number >> 8) & 0xff}.${number & 0xff}`;
}

import { isDeepStrictEqual } from 'node:util';
import type { ProviderConfig } from '@nodepool/core';
import type { NodepoolConfig } from './types.js';

export interface NameChanges {
  readonly added: readonly string[];
  readonly removed: readonly string[];
  readonly changed: readonly string[];
}

export interface ConfigDiff {
  /** True if the configurations are equal. */
  readonly empty: boolean;
  /** `changed` lists the providers that must be restarted, see `sameProvider`. */
  readonly providers: NameChanges;
  readonly brokenProviders: NameChanges;
  readonly labels: NameChanges;
  readonly diskImages: NameChanges;
  readonly tenantLimits: NameChanges;
  /** Packages of the drivers in use, by the names of the drivers. */
  readonly drivers: NameChanges;
  readonly zookeeper: boolean;
  readonly webapp: boolean;
  /** True if a global setting differs: directories, log retention, hold age, fair shares, prices, driver names. */
  readonly settings: boolean;
}

/** Compares configurations; the names are sorted. */
export function diffConfig(before: NodepoolConfig, after: NodepoolConfig): ConfigDiff {
  const parts = {
    providers: changes(before.providers, after.providers, (_, { name }) => sameProvider(before, after, name)),
    brokenProviders: changes(before.brokenProviders, after.brokenProviders, isDeepStrictEqual),
    labels: changes(before.labels, after.labels, isDeepStrictEqual),
    diskImages: changes(before.diskImages, after.diskImages, isDeepStrictEqual),
    tenantLimits: changes(before.tenantLimits, after.tenantLimits, isDeepStrictEqual),
    drivers: changes(before.driverPackages ?? new Map(), after.driverPackages ?? new Map(), isDeepStrictEqual),
  };
  const flags = {
    zookeeper: !isDeepStrictEqual(before.zookeeper, after.zookeeper),
    webapp: !isDeepStrictEqual(before.webapp, after.webapp),
    settings: !isDeepStrictEqual(settingsOf(before), settingsOf(after)),
  };
  const nothing = Object.values(parts).every(isEmpty) && Object.values(flags).every((flag) => !flag);
  return { empty: nothing, ...parts, ...flags };
}

/**
 * Returns true if a running provider can continue under the other configuration: its section, the package of its
 * driver, its image format, and its inputs from disk images are equal. The contents of an image, such as its elements,
 * do not count.
 */
export function sameProvider(
  before: Pick<NodepoolConfig, 'providers' | 'driverPackages'>,
  after: Pick<NodepoolConfig, 'providers' | 'driverPackages' | 'unserved'>,
  name: string,
): boolean {
  const [old, now] = [before.providers.get(name), after.providers.get(name)];
  if (old === undefined || now === undefined) return false;
  // The format may be outside of the section, in clouds.yaml. It is a guess while that file cannot be used.
  if (now.imageFormat !== old.imageFormat && after.unserved?.has(name) !== true) return false;
  return isDeepStrictEqual(settingsOfProvider(old), settingsOfProvider(now)) && sameDriver(before, after, now.driver);
}

/**
 * Returns all inputs of a provider. Labels inherit their login, and providers the metadata of their images, from disk
 * images outside of the section.
 */
export function settingsOfProvider({ driver, section, diskImages, pools }: ProviderConfig): unknown {
  const connections = [...pools.values()].map(({ labels }) => [...labels.values()].map(({ connection }) => connection));
  // Prices are read where costs are shown, and change nothing in a provider.
  const { prices: _, ...rest } = section;
  return { driver, section: rest, diskImages, connections };
}

/** Returns true if both configurations use the same package for the driver. */
function sameDriver(
  before: Pick<NodepoolConfig, 'driverPackages'>,
  after: Pick<NodepoolConfig, 'driverPackages'>,
  driver: string,
): boolean {
  return before.driverPackages?.get(driver)?.folder === after.driverPackages?.get(driver)?.folder;
}

function isEmpty(names: NameChanges): boolean {
  return names.added.length === 0 && names.removed.length === 0 && names.changed.length === 0;
}

function changes<T>(
  before: ReadonlyMap<string, T>,
  after: ReadonlyMap<string, T>,
  same: (a: T, b: T) => boolean,
): NameChanges {
  const changed: string[] = [];
  for (const [name, value] of after) {
    const old = before.get(name);
    if (old !== undefined && !same(old, value)) changed.push(name);
  }
  return {
    added: [...after.keys()].filter((name) => !before.has(name)).sort(),
    removed: [...before.keys()].filter((name) => !after.has(name)).sort(),
    changed: changed.sort(),
  };
}

function settingsOf(config: NodepoolConfig): unknown {
  const { elementsDir, imagesDir, buildLogDir, buildLogRetention, maxHoldAgeMs, fairShares, drivers } = config;
  const prices = [...config.providers].map(([name, { section }]) => [name, section['prices']]);
  return { elementsDir, imagesDir, buildLogDir, buildLogRetention, maxHoldAgeMs, fairShares, drivers, prices };
}

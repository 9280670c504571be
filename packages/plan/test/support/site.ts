/** Configurations for replays, read as from a file. */

import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadConfig, type DiscoverDriver, type NodepoolConfig } from '@nodepool/config';
import type { Driver } from '@nodepool/core';
import { exampleDriver } from '@nodepool/driver-example';

export interface SitePool {
  readonly labels: readonly string[];
  readonly maxServers?: number;
}

export interface SiteOptions {
  /** Pools named `main`, by provider. */
  readonly providers: Readonly<Record<string, SitePool>>;
  readonly minReady?: Readonly<Record<string, number>>;
  /** Further top-level keys. */
  readonly extra?: object;
  readonly driver?: Driver;
}

export function siteFile({ providers, minReady = {}, extra = {} }: SiteOptions): object {
  const labels = [...new Set(Object.values(providers).flatMap((pool) => pool.labels))];
  return {
    'zookeeper-servers': [{ host: 'localhost' }],
    labels: labels.map((name) => ({ name, ...(minReady[name] === undefined ? {} : { 'min-ready': minReady[name] }) })),
    providers: Object.entries(providers).map(([name, pool]) => ({
      name,
      driver: 'example',
      'cloud-images': [{ name: 'debian', username: 'zuul' }],
      pools: [
        {
          name: 'main',
          ...(pool.maxServers === undefined ? {} : { 'max-servers': pool.maxServers }),
          'host-key-checking': true,
          labels: pool.labels.map((label) => ({ name: label, 'cloud-image': 'debian', size: 'small' })),
        },
      ],
    })),
    ...extra,
  };
}

/** Reads the configuration from a file, as the launcher does. */
export function siteConfig(options: SiteOptions): Promise<NodepoolConfig> {
  return configOf(siteFile(options), { example: options.driver ?? exampleDriver() });
}

/** Reads a configuration with these drivers. */
export async function configOf(
  content: object,
  drivers: Readonly<Partial<Record<string, Driver>>>,
): Promise<NodepoolConfig> {
  const folder = await mkdtemp(join(tmpdir(), 'nodepool-plan-'));
  try {
    const file = join(folder, 'nodepool.yaml');
    await writeFile(file, JSON.stringify(content));
    const discoverDriver: DiscoverDriver = async (name) => drivers[name] ?? Promise.reject(new Error(`no ${name}`));
    const result = await loadConfig({ file, env: {}, discoverDriver });
    if (!result.ok) throw new Error(`the configuration is invalid: ${JSON.stringify(result.problems)}`);
    return result.config;
  } finally {
    await rm(folder, { recursive: true });
  }
}

/** Makes the configuration of a provider from a section, as a program does from a file with that section alone. */

import {
  entriesAt,
  type Driver,
  type JsonObject,
  type LabelConfig,
  type PoolConfig,
  type ProviderConfig,
  type DiskImageConfig,
} from '@nodepool/core';

/** Throws when the driver finds something wrong with the section. */
export function providerConfigOf(driver: Driver, section: JsonObject): ProviderConfig {
  const problems: string[] = [];
  const config = driver.getProviderConfig(section, {
    labels: new Set(labelNames(section)),
    diskImages: new Map(imageNames(section).map((name) => [name, diskImage(name)])),
    problem: (path, { expected, hint }) =>
      problems.push(`${path.join('.')}: expected ${expected}${hint === undefined ? '' : `; ${hint}`}`),
  });
  if (problems.length > 0) throw new Error(`the section of the test cloud is refused: ${problems.join('; ')}`);
  return config;
}

/** Names of the labels that the pools of a section have. */
export function labelNames(section: JsonObject): string[] {
  const pools = entriesAt(section, 'pools');
  const names = pools.flatMap((pool) => entriesAt(pool.section, 'labels').map(({ name }) => name));
  return [...new Set(names)].filter((name) => name !== '');
}

/** Names of the disk images that a section has. */
export function imageNames(section: JsonObject): string[] {
  return [...new Set(entriesAt(section, 'diskimages').map(({ name }) => name))].filter((name) => name !== '');
}

/** The first pool and its first label. Throws when there is none. */
export function firstLabel(config: ProviderConfig): { readonly pool: PoolConfig; readonly label: LabelConfig } {
  for (const pool of config.pools.values()) {
    for (const label of pool.labels.values()) return { pool, label };
  }
  throw new Error(`the section of the test cloud has no pool with a label`);
}

function diskImage(name: string): DiskImageConfig {
  return {
    name,
    abstract: false,
    parent: undefined,
    formats: [],
    keepFormats: [],
    deleteAfterUpload: false,
    rebuildAgeMs: 86_400_000,
    release: undefined,
    buildTimeoutMs: 28_800_000,
    elements: [],
    envVars: {},
    pause: false,
    username: 'zuul',
    pythonPath: 'auto',
    shellType: undefined,
    dibCmd: 'disk-image-create',
    metadata: {},
  };
}

import {
  entriesAt,
  isJsonObject,
  stringAt,
  type Driver,
  type JsonObject,
  type JsonValue,
  type LabelConfig,
  type PoolConfig,
  type ProviderConfig,
  type DiskImageConfig,
} from '@nodepool/core';

/** Throws if the driver rejects the section. */
export function providerConfigOf(driver: Driver, section: JsonObject): ProviderConfig {
  const problems: string[] = [];
  const config = driver.getProviderConfig(section, {
    labels: new Set(fileLabelNames(section)),
    diskImages: new Map(imageNames(section).map((name) => [name, diskImage(name)])),
    problem: (path, { expected, hint }) =>
      problems.push(`${path.join('.')}: expected ${expected}${hint === undefined ? '' : `; ${hint}`}`),
  });
  if (problems.length > 0) throw new Error(`the section of the test cloud is refused: ${problems.join('; ')}`);
  return config;
}

/** Returns the names of all labels in the pools of a section: entries of `labels`, and names in `labels` below. */
export function labelNames(section: JsonObject): string[] {
  const names = entriesAt(section, 'pools').flatMap((pool) => labelsIn(pool.section));
  return [...new Set(names)].filter((name) => name !== '');
}

/** Returns the labels that a file with the section defines: those of its pools, and those that they are slots of. */
export function fileLabelNames(section: JsonObject): string[] {
  const labels = entriesAt(section, 'pools').flatMap((pool) => entriesAt(pool.section, 'labels'));
  const backing = labels.flatMap((label) => stringAt(label.section, 'backing-label') ?? []);
  return [...new Set([...labelNames(section), ...backing])];
}

function labelsIn(section: JsonObject): string[] {
  return Object.entries(section).flatMap(([key, value]) => {
    if (key === 'labels' && typeof value === 'string') return value.split(/\s+/);
    const items = Array.isArray(value) ? (value as readonly JsonValue[]) : [];
    if (key !== 'labels') return items.filter(isJsonObject).flatMap(labelsIn);
    return items.flatMap((item) =>
      isJsonObject(item) ? (stringAt(item, 'name') ?? []) : typeof item === 'string' ? item : [],
    );
  });
}

/** Returns the names of the disk images in a section. */
export function imageNames(section: JsonObject): string[] {
  return [...new Set(entriesAt(section, 'diskimages').map(({ name }) => name))].filter((name) => name !== '');
}

/** Returns the first pool and its first label. Throws if there is none. */
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

/** Reads the configuration that providers of all drivers have in common; a driver adds its own fields. */

import type { JsonObject } from '../model/json.js';
import type {
  Connection,
  ImageReference,
  LabelConfig,
  PoolConfig,
  ProviderConfig,
  ProviderConfigContext,
  ProviderDiskImage,
} from './provider-config.js';
import { loadImageUploadSettings } from './image-settings.js';
import { hasImageTests, loadImageTests } from './image-tests.js';
import type { ProviderDefaults } from './schema.js';
import { DEFAULT_DRIVER, DEFAULT_LAUNCH_RETRIES, DEFAULT_LAUNCH_TIMEOUT_SECONDS, DEFAULT_PRIORITY } from './schema.js';
import {
  booleanAt,
  entriesAt,
  entryNamed,
  millisecondsAt,
  numberAt,
  objectAt,
  stringAt,
  stringsAt,
  textsAt,
  type Entry,
} from './section.js';

/** The sections that a label is created from. */
export interface LabelSource {
  readonly section: JsonObject;
  readonly poolSection: JsonObject;
  readonly providerSection: JsonObject;
  /** Entry of the provider's `diskimages` or `cloud-images` that the label uses; empty for an absent disk image. */
  readonly imageSection: JsonObject;
  /** Position of the label, for `ProviderConfigContext.problem`. */
  readonly path: readonly (string | number)[];
}

/** The sections that a pool is created from. */
export interface PoolSource {
  readonly section: JsonObject;
  readonly providerSection: JsonObject;
  readonly path: readonly (string | number)[];
}

export interface CommonProviderOptions<L extends LabelConfig, P extends PoolConfig<L>> {
  readonly defaults: ProviderDefaults;
  /** See `ProviderConfig.imageFormat`. */
  readonly imageFormat?: string | undefined;
  /** Key of an entry of `diskimages` that holds the image's properties. Default `meta`. */
  readonly imageMetadataKey?: string;
  /**
   * True if labels name no image of the provider. `LabelSource.imageSection` is then the label's section, and the name
   * of `LabelConfig.image` is empty.
   */
  readonly withoutImages?: boolean;
  /** Adds the driver's fields to a label. */
  readonly loadLabel: (label: LabelConfig, source: LabelSource) => L;
  /** Adds the driver's fields to a pool. */
  readonly loadPool: (pool: PoolConfig<L>, source: PoolSource) => P;
}

/** A provider's configuration, with the driver's own labels and pools. */
export interface CommonProvider<L extends LabelConfig, P extends PoolConfig<L>> extends ProviderConfig<L> {
  readonly pools: ReadonlyMap<string, P>;
}

const DEFAULT_PORTS: Readonly<Record<string, number>> = { ssh: 22, winrm: 5986 };

/** Keys of a pool that limit a resource, each with the name of the resource. */
const POOL_LIMITS: readonly (readonly [key: string, resource: string])[] = [
  ['max-cores', 'cores'],
  ['max-ram', 'ram'],
  ['max-volumes', 'volumes'],
  ['max-volume-gb', 'volume-gb'],
];

/**
 * Reads the common part of a provider's section that has passed a schema created by `providerSchema`. Omits labels
 * whose image is not defined. The caller of the driver checks and reports unresolved names, in the same way for all
 * drivers.
 */
export function loadCommonProvider<L extends LabelConfig, P extends PoolConfig<L>>(
  section: JsonObject,
  context: ProviderConfigContext,
  options: CommonProviderOptions<L, P>,
): CommonProvider<L, P> {
  const { defaults } = options;
  const priority = numberAt(section, 'priority') ?? DEFAULT_PRIORITY;
  const pools = entriesAt(section, 'pools').map((pool) => loadPool(pool, section, priority, context, options));
  const launchTimeoutSeconds = defaults.launchTimeoutSeconds ?? DEFAULT_LAUNCH_TIMEOUT_SECONDS;
  return {
    name: stringAt(section, 'name') ?? '',
    driver: stringAt(section, 'driver') ?? DEFAULT_DRIVER,
    priority,
    maxConcurrency: unlimitedWhenNegative(numberAt(section, 'max-concurrency') ?? -1),
    launchRetries: numberAt(section, 'launch-retries') ?? defaults.launchRetries ?? DEFAULT_LAUNCH_RETRIES,
    launchTimeoutMs: millisecondsAt(section, 'launch-timeout') ?? launchTimeoutSeconds * 1000,
    bootTimeoutMs: millisecondsAt(section, 'boot-timeout') ?? defaults.bootTimeoutSeconds * 1000,
    callsPerSecond: callsPerSecond(section, defaults),
    pools: new Map(pools.map((pool) => [pool.name, pool])),
    diskImages: loadDiskImages(section, context, options.imageMetadataKey ?? 'meta'),
    imageFormat: options.imageFormat,
    imageUpload: loadImageUploadSettings(section),
    section,
  };
}

function unlimitedWhenNegative(value: number): number {
  return value < 0 ? Infinity : value;
}

function callsPerSecond(section: JsonObject, defaults: ProviderDefaults): number {
  const rate = numberAt(section, 'rate') ?? numberAt(section, 'rate-limit') ?? defaults.rate ?? 0;
  if (rate <= 0) return Infinity;
  return defaults.rateUnit === 'calls-per-second' ? rate : 1 / rate;
}

/** Returns the provider's disk images. Properties in the provider's entry override those of the disk image. */
function loadDiskImages(
  section: JsonObject,
  context: ProviderConfigContext,
  metadataKey: string,
): Map<string, ProviderDiskImage> {
  const images = new Map<string, ProviderDiskImage>();
  for (const entry of entriesAt(section, 'diskimages')) {
    const metadata = { ...context.diskImages.get(entry.name)?.metadata, ...textsAt(entry.section, metadataKey) };
    const tests = loadImageTests(entry.section, context.diskImages.get(entry.name)?.tests);
    const pause = booleanAt(entry.section, 'pause') ?? false;
    images.set(entry.name, { name: entry.name, pause, metadata, ...(hasImageTests(tests) ? { tests } : {}) });
  }
  return images;
}

function loadPool<L extends LabelConfig, P extends PoolConfig<L>>(
  entry: Entry,
  providerSection: JsonObject,
  priority: number,
  context: ProviderConfigContext,
  options: CommonProviderOptions<L, P>,
): P {
  const { section } = entry;
  const path = ['pools', entry.index];
  const limits: Record<string, number> = {};
  for (const [key, resource] of POOL_LIMITS) {
    const limit = numberAt(section, key);
    if (limit !== undefined) limits[resource] = limit;
  }
  const pool: PoolConfig<L> = {
    name: entry.name,
    priority: numberAt(section, 'priority') ?? priority,
    maxServers: numberAt(section, 'max-servers') ?? Infinity,
    limits,
    nodeAttributes: objectAt(section, 'node-attributes') ?? {},
    availabilityZones: stringsAt(section, 'availability-zones') ?? [],
    labels: loadLabels(entry, providerSection, path, context, options),
  };
  return options.loadPool(pool, { section, providerSection, path });
}

function loadLabels<L extends LabelConfig, P extends PoolConfig<L>>(
  pool: Entry,
  providerSection: JsonObject,
  poolPath: readonly (string | number)[],
  context: ProviderConfigContext,
  options: CommonProviderOptions<L, P>,
): Map<string, L> {
  const labels = new Map<string, L>();
  for (const { index, name, section } of entriesAt(pool.section, 'labels')) {
    const found = options.withoutImages === true ? noImage(section) : imageOf(section, providerSection, context);
    if (found === undefined) continue;
    const label: LabelConfig = {
      name,
      image: found.reference,
      connection: connectionOf(found, context),
      hostKeyChecking:
        booleanAt(section, 'host-key-checking') ??
        booleanAt(pool.section, 'host-key-checking') ??
        booleanAt(providerSection, 'host-key-checking') ??
        true,
      consoleLog: booleanAt(section, 'console-log') ?? false,
    };
    const path = [...poolPath, 'labels', index];
    const source = { section, poolSection: pool.section, providerSection, imageSection: found.section, path };
    labels.set(name, options.loadLabel(label, source));
  }
  return labels;
}

interface FoundImage {
  readonly reference: ImageReference;
  readonly section: JsonObject;
}

function noImage(label: JsonObject): FoundImage {
  return { reference: { kind: 'cloud-image', name: '' }, section: label };
}

/** Returns the image of a label; a disk image may be absent from the provider's list, and then has no upload there. */
function imageOf(
  label: JsonObject,
  provider: JsonObject,
  { diskImages }: ProviderConfigContext,
): FoundImage | undefined {
  const diskImage = stringAt(label, 'diskimage');
  const reference: ImageReference =
    diskImage === undefined
      ? { kind: 'cloud-image', name: stringAt(label, 'cloud-image') ?? '' }
      : { kind: 'diskimage', name: diskImage };
  const list = reference.kind === 'diskimage' ? 'diskimages' : 'cloud-images';
  const isBuilt = reference.kind === 'diskimage' && diskImages.get(reference.name)?.abstract === false;
  const section = entryNamed(provider, list, reference.name)?.section ?? (isBuilt ? {} : undefined);
  return section === undefined ? undefined : { reference, section };
}

/** Returns the login settings of a label: a disk image's user, Python path and shell, unless the entry sets them. */
function connectionOf({ reference, section }: FoundImage, context: ProviderConfigContext): Connection {
  const built = reference.kind === 'diskimage' ? context.diskImages.get(reference.name) : undefined;
  const type = stringAt(section, 'connection-type') ?? 'ssh';
  return {
    type,
    port: numberAt(section, 'connection-port') ?? DEFAULT_PORTS[type] ?? 22,
    username: stringAt(section, 'username') ?? built?.username ?? null,
    pythonPath: stringAt(section, 'python-path') ?? built?.pythonPath ?? 'auto',
    shellType: stringAt(section, 'shell-type') ?? built?.shellType ?? null,
  };
}

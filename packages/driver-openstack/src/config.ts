/** Parses the configuration of a provider; see `schema.ts` for its keys. */

import {
  booleanAt,
  loadCommonProvider,
  millisecondsAt,
  numberAt,
  requestTemplatesAt,
  stringAt,
  stringsAt,
  textsAt,
  type JsonObject,
  type LabelConfig,
  type LabelSource,
  type PoolConfig,
  type PoolSource,
  type ProviderConfig,
  type ProviderConfigContext,
  type RequestTemplate,
} from '@nodepool/core';
import { DEFAULT_PORT_CLEANUP_SECONDS, DEFAULT_VOLUME_SIZE_GB, DEFAULTS } from './schema.js';

/** Maximum length of a metadata value of a server in bytes (nova). */
export const METADATA_MAX_BYTES = 255;
/** Maximum length of user data in base64 characters (nova). */
const USERDATA_MAX = 65_535;

/** Criteria for a flavor. */
export interface FlavorCriteria {
  /** MiB; if undefined, `name` is the full name or the id. */
  readonly minRam: number | undefined;
  readonly name: string | undefined;
}

export interface OpenStackLabel extends LabelConfig {
  /** The preferred flavor; see `flavorOf`. */
  readonly flavor: FlavorCriteria;
  /** Id or name of the image of a label without a disk image. */
  readonly cloudImage: { readonly id: string } | { readonly name: string } | undefined;
  readonly configDrive: boolean | undefined;
  readonly keyName: string | undefined;
  /** GB of the boot volume; if undefined, the server boots from a local disk. */
  readonly volumeSize: number | undefined;
  readonly instanceProperties: Readonly<Record<string, string>>;
  readonly dynamicInstanceProperties: ReadonlyMap<string, RequestTemplate>;
  /** Base64. */
  readonly userData: string | undefined;
  /** Names or ids. */
  readonly networks: readonly string[];
  readonly securityGroups: readonly string[];
  readonly autoFloatingIp: boolean;
  /** If true, nodes are reached at their private addresses. */
  readonly useInternalIp: boolean;
}

export interface OpenStackPool extends PoolConfig<OpenStackLabel> {
  /** If true, the cloud's quota does not limit this pool. */
  readonly ignoreProviderQuota: boolean;
}

export interface OpenStackProvider extends ProviderConfig<OpenStackLabel> {
  readonly pools: ReadonlyMap<string, OpenStackPool>;
  /** Name in `clouds.yaml`. */
  readonly cloud: string;
  readonly regionName: string | undefined;
  /** If true, unattached floating IPs of any owner are deleted. */
  readonly cleanFloatingIps: boolean;
  /** Infinity disables the cleanup. */
  readonly portCleanupMs: number;
}

/** Returns the criteria for the flavor of a node; `machineType` is one of `flavor-names`. */
export function flavorOf({ flavor }: Pick<OpenStackLabel, 'flavor'>, machineType: string | undefined): FlavorCriteria {
  return machineType === undefined ? flavor : { ...flavor, name: machineType };
}

export function usesVolumes({ pools }: OpenStackProvider): boolean {
  const labels = [...pools.values()].flatMap((pool) => [...pool.labels.values()]);
  return labels.some(({ volumeSize }) => volumeSize !== undefined);
}

/** Returns the image format from the files of a cloud while the configuration is read. */
export type ImageFormatOf = (
  cloud: string,
  regionName: string | undefined,
  onUnknown: (reason: string) => void,
) => string;

export function loadProvider(
  section: JsonObject,
  context: ProviderConfigContext,
  imageFormatOf: ImageFormatOf,
): OpenStackProvider {
  const cloud = stringAt(section, 'cloud') ?? '';
  const regionName = filled(stringAt(section, 'region-name'));
  const common = loadCommonProvider<OpenStackLabel, OpenStackPool>(section, context, {
    defaults: DEFAULTS,
    imageFormat: imageFormatOf(cloud, regionName, (reason) => context.unserved?.(['cloud'], reason)),
    loadLabel: (label, source) => loadLabel(label, source, context),
    loadPool,
  });
  const portCleanupMs = millisecondsAt(section, 'port-cleanup-interval') ?? DEFAULT_PORT_CLEANUP_SECONDS * 1000;
  return {
    ...common,
    cloud,
    regionName,
    cleanFloatingIps: booleanAt(section, 'clean-floating-ips') ?? false,
    portCleanupMs: portCleanupMs > 0 ? portCleanupMs : Infinity,
  };
}

function loadPool(pool: PoolConfig<OpenStackLabel>, { section }: PoolSource): OpenStackPool {
  return { ...pool, ignoreProviderQuota: booleanAt(section, 'ignore-provider-quota') ?? false };
}

function loadLabel(label: LabelConfig, source: LabelSource, context: ProviderConfigContext): OpenStackLabel {
  const { section, poolSection, imageSection, path } = source;
  const flavorNames = stringsAt(section, 'flavor-names');
  return {
    ...label,
    machineTypes: flavorNames,
    flavor: {
      minRam: numberAt(section, 'min-ram'),
      name: flavorNames?.[0] ?? filled(stringAt(section, 'flavor-name')),
    },
    cloudImage: label.image.kind === 'diskimage' ? undefined : cloudImage(imageSection, label.image.name),
    configDrive: booleanAt(imageSection, 'config-drive'),
    keyName: filled(stringAt(section, 'key-name')),
    volumeSize:
      booleanAt(section, 'boot-from-volume') === true
        ? (numberAt(section, 'volume-size') ?? DEFAULT_VOLUME_SIZE_GB)
        : undefined,
    instanceProperties: instanceProperties(section, path, context),
    dynamicInstanceProperties: requestTemplatesAt(section, 'dynamic-instance-properties', path, context),
    userData: userData(section, path, context),
    networks: stringsAt(section, 'networks') ?? stringsAt(poolSection, 'networks') ?? [],
    securityGroups: stringsAt(poolSection, 'security-groups') ?? [],
    autoFloatingIp: booleanAt(poolSection, 'auto-floating-ip') ?? true,
    useInternalIp: booleanAt(poolSection, 'use-internal-ip') ?? false,
  };
}

function cloudImage(section: JsonObject, name: string): { readonly id: string } | { readonly name: string } {
  const id = stringAt(section, 'image-id');
  return id === undefined ? { name: stringAt(section, 'image-name') ?? name } : { id };
}

function instanceProperties(
  section: JsonObject,
  path: LabelSource['path'],
  context: ProviderConfigContext,
): Readonly<Record<string, string>> {
  const properties = textsAt(section, 'instance-properties');
  for (const [key, value] of Object.entries(properties)) {
    if (Buffer.byteLength(value) <= METADATA_MAX_BYTES) continue;
    context.problem([...path, 'instance-properties', key], {
      expected: `metadata of a server with at most ${METADATA_MAX_BYTES} bytes`,
    });
  }
  return properties;
}

function userData(section: JsonObject, path: LabelSource['path'], context: ProviderConfigContext): string | undefined {
  const plain = filled(stringAt(section, 'userdata'));
  if (plain === undefined) return undefined;
  const encoded = Buffer.from(plain).toString('base64');
  if (encoded.length > USERDATA_MAX) {
    context.problem([...path, 'userdata'], { expected: `at most ${USERDATA_MAX} characters in base64` });
  }
  return encoded;
}

function filled(text: string | undefined): string | undefined {
  return text === '' ? undefined : text;
}

/** Parses the configuration of a provider; see `schema.ts` for its keys. */

import type {
  JsonObject,
  LabelConfig,
  LabelSource,
  PoolConfig,
  PoolSource,
  ProviderConfig,
  ProviderConfigContext,
} from '@nodepool/core';
import { booleanAt, entriesAt, loadCommonProvider, numberAt, stringAt, stringsAt, textsAt } from '@nodepool/core';
import { fitsLabel, LABEL_MAX_LENGTH, propertyLabel } from './labels.js';
import {
  DEFAULT_GUEST_OS_FEATURES,
  DEFAULT_NETWORK,
  DEFAULT_VOLUME_SIZE_GB,
  DEFAULT_VOLUME_TYPE,
  DEFAULTS,
} from './schema.js';

/** Format of disk images: raw, compressed during the upload. */
const IMAGE_FORMAT = 'raw';

/** Provisioning model of an instance. Spot and preemptible instances can be reclaimed at any time. */
export type Provisioning = 'standard' | 'spot' | 'preemptible';

export interface Accelerator {
  /** e.g. `nvidia-tesla-t4`. */
  readonly type: string;
  readonly count: number;
}

export interface GceLabel extends LabelConfig {
  readonly zones: readonly string[];
  /** The preferred type, which a launch without a machine type uses. */
  readonly instanceType: string;
  /** Path of the image, e.g. `projects/debian-cloud/global/images/family/debian-12`; undefined for a disk image. */
  readonly cloudImage: string | undefined;
  readonly volumeType: string;
  /** GB. */
  readonly volumeSize: number;
  /** Path; undefined if the subnetwork determines the network. */
  readonly network: string | undefined;
  /** Path. */
  readonly subnetwork: string | undefined;
  /** SSH public key of the connection's user. */
  readonly key: string | undefined;
  readonly serviceAccount: string | undefined;
  readonly provisioning: Provisioning;
  readonly accelerators: readonly Accelerator[];
  readonly instanceLabels: Readonly<Record<string, string>>;
  /** If true, instances have an external IPv4 address. */
  readonly publicIpv4: boolean;
}

/** Cloud settings of a disk image; see `Image` of the API. */
export interface ImageTraits {
  readonly architecture: 'X86_64' | 'ARM64' | undefined;
  readonly guestOsFeatures: readonly string[];
}

export interface GceProvider extends ProviderConfig<GceLabel> {
  /** Names of the pools whose nodes are reached at their internal addresses. */
  readonly internalPools: ReadonlySet<string>;
  /** By name of the disk image. */
  readonly imageTraits: ReadonlyMap<string, ImageTraits>;
  readonly project: string;
  readonly region: string;
  readonly zone: string;
  readonly credentialsFile: string | undefined;
  /** If undefined, Google's endpoint is used. */
  readonly apiEndpoint: string | undefined;
  readonly storageEndpoint: string | undefined;
  readonly storageBucket: string | undefined;
}

export function loadProvider(section: JsonObject, context: ProviderConfigContext): GceProvider {
  const common = loadCommonProvider<GceLabel, PoolConfig<GceLabel>>(section, context, {
    defaults: DEFAULTS,
    imageFormat: IMAGE_FORMAT,
    loadLabel: (label, source) => loadLabel(label, source),
    loadPool: (pool, source) => loadPool(pool, source, context),
  });
  const provider: GceProvider = {
    ...common,
    project: stringAt(section, 'project') ?? '',
    region: stringAt(section, 'region') ?? '',
    zone: stringAt(section, 'zone') ?? '',
    credentialsFile: stringAt(section, 'credentials-file'),
    apiEndpoint: stringAt(section, 'api-endpoint'),
    storageEndpoint: stringAt(section, 'storage-endpoint'),
    storageBucket: stringAt(section, 'storage-bucket'),
    internalPools: new Set(
      entriesAt(section, 'pools')
        .filter((pool) => booleanAt(pool.section, 'use-internal-ip') === true)
        .map(({ name }) => name),
    ),
    imageTraits: new Map(entriesAt(section, 'diskimages').map((entry) => [entry.name, imageTraitsOf(entry.section)])),
  };
  check(provider, section, context);
  return provider;
}

/** Checks constraints that the schema cannot express. */
function check(provider: GceProvider, section: JsonObject, context: ProviderConfigContext): void {
  if (!fitsLabel(provider.name)) context.problem(['name'], tooLong);
  if (!isZoneOf(provider.region, provider.zone))
    context.problem(['zone'], { expected: `a zone of ${provider.region}` });
  if (provider.diskImages.size > 0 && provider.storageBucket === undefined) {
    context.problem(['diskimages'], {
      expected: '"storage-bucket" to be set on the provider',
      hint: 'images reach Compute Engine through a bucket of Cloud Storage; name one in "storage-bucket"',
    });
  }
  for (const { index, name } of entriesAt(section, 'diskimages')) {
    if (!fitsLabel(name)) context.problem(['diskimages', index, 'name'], tooLong);
    for (const [key, value] of Object.entries(provider.diskImages.get(name)?.metadata ?? {})) {
      if (/^[a-z][a-z0-9_-]{0,62}$/.test(key) && propertyLabel(value).length <= LABEL_MAX_LENGTH) continue;
      context.problem(['diskimages', index], {
        expected: 'properties of the image that can be labels in Google Cloud',
        hint: `"${key}" cannot: a name begins with a-z and has at most 63 of a-z, 0-9, _ and -`,
      });
    }
  }
}

const tooLong = {
  expected: 'a name of at most 63 characters in a label of Google Cloud',
  hint: 'in labels, each character other than a-z, 0-9 and - takes three characters',
} as const;

function loadPool(
  pool: PoolConfig<GceLabel>,
  { section, providerSection, path }: PoolSource,
  context: ProviderConfigContext,
): PoolConfig<GceLabel> {
  const region = stringAt(providerSection, 'region') ?? '';
  stringsAt(section, 'zones')?.forEach((zone, index) => {
    if (!isZoneOf(region, zone)) context.problem([...path, 'zones', index], { expected: `a zone of ${region}` });
  });
  if (!fitsLabel(pool.name)) context.problem([...path, 'name'], tooLong);
  return { ...pool, availabilityZones: zonesOf(section, providerSection) };
}

function zonesOf(pool: JsonObject, provider: JsonObject): readonly string[] {
  const zones = stringsAt(pool, 'zones') ?? [];
  return zones.length > 0 ? zones : [stringAt(provider, 'zone') ?? ''];
}

function loadLabel(label: LabelConfig, source: LabelSource): GceLabel {
  const { section, poolSection, imageSection, providerSection } = source;
  const project = stringAt(providerSection, 'project') ?? '';
  const region = stringAt(providerSection, 'region') ?? '';
  const subnetwork = pathOf(stringAt(poolSection, 'subnetwork'), `regions/${region}/subnetworks`);
  // The cloud rejects the default network with a subnetwork of another network, such as a shared VPC.
  const network = subnetwork === undefined ? DEFAULT_NETWORK : undefined;
  const instanceTypes = stringsAt(section, 'instance-types');
  return {
    ...label,
    zones: zonesOf(poolSection, providerSection),
    machineTypes: instanceTypes,
    instanceType: instanceTypes?.[0] ?? stringAt(section, 'instance-type') ?? '',
    cloudImage: label.image.kind === 'diskimage' ? undefined : cloudImage(imageSection, project),
    volumeType: stringAt(section, 'volume-type') ?? DEFAULT_VOLUME_TYPE,
    volumeSize: numberAt(section, 'volume-size') ?? DEFAULT_VOLUME_SIZE_GB,
    network: pathOf(stringAt(poolSection, 'network'), 'global/networks') ?? network,
    subnetwork,
    key: stringAt(imageSection, 'key'),
    serviceAccount: stringAt(section, 'service-account') ?? stringAt(poolSection, 'service-account'),
    provisioning: provisioningOf(section) ?? provisioningOf(poolSection) ?? 'standard',
    accelerators: entriesAt(section, 'accelerators').map((entry) => ({
      type: stringAt(entry.section, 'type') ?? '',
      count: numberAt(entry.section, 'count') ?? 1,
    })),
    instanceLabels: textsAt(section, 'labels'),
    publicIpv4: booleanAt(poolSection, 'public-ipv4') ?? true,
  };
}

function provisioningOf(section: JsonObject): Provisioning | undefined {
  const model = stringAt(section, 'provisioning-model');
  if (model === 'spot' || model === 'standard') return model;
  const preemptible = booleanAt(section, 'preemptible');
  return preemptible === undefined ? undefined : preemptible ? 'preemptible' : 'standard';
}

const ARCHITECTURES = { x86_64: 'X86_64', arm64: 'ARM64' } as const;

function imageTraitsOf(section: JsonObject): ImageTraits {
  const architecture = stringAt(section, 'architecture');
  return {
    architecture: architecture === 'x86_64' || architecture === 'arm64' ? ARCHITECTURES[architecture] : undefined,
    guestOsFeatures: stringsAt(section, 'guest-os-features') ?? DEFAULT_GUEST_OS_FEATURES,
  };
}

function cloudImage(section: JsonObject, project: string): string {
  const family = stringAt(section, 'image-family');
  if (family !== undefined)
    return `projects/${stringAt(section, 'image-project') ?? ''}/global/images/family/${family}`;
  return imagePath(project, stringAt(section, 'image-id') ?? '');
}

/** Returns the path of an image name in the project. Paths and URLs are returned unchanged. */
export function imagePath(project: string, image: string): string {
  return pathOf(image, `projects/${project}/global/images`) ?? '';
}

function pathOf(name: string | undefined, collection: string): string | undefined {
  return name === undefined || name.includes('/') ? name : `${collection}/${name}`;
}

/** Returns true if the zone's name is the region's name with a letter appended. */
export function isZoneOf(region: string, zone: string): boolean {
  return zone.startsWith(`${region}-`);
}

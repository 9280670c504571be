/** Parses the configuration of a provider; see `schema.ts` for its keys. */

import {
  booleanAt,
  entriesAt,
  loadCommonProvider,
  millisecondsAt,
  numberAt,
  objectAt,
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
import { machineTypesOf, type Market, type SpotUse } from './offers.js';
import {
  ALLOCATION_STRATEGIES,
  DEFAULT_IMAGE_SOURCE_TIMEOUT_S,
  DEFAULT_IMAGE_VOLUME_TYPE,
  DEFAULTS,
} from './schema.js';
import { checkImageTags, checkUserTags } from './tag-limits.js';

/** Maximum size of user data before its encoding, in bytes (EC2). */
const USER_DATA_MAX = 16_384;
/** Strategies of on-demand fleets (EC2); the others are for spot fleets. */
const ON_DEMAND_STRATEGIES: ReadonlySet<string> = new Set(['prioritized', 'lowest-price']);

export type AllocationStrategy = (typeof ALLOCATION_STRATEGIES)[number];

export interface ImageFilter {
  readonly name: string;
  readonly values: readonly string[];
}

/** The source of an image. */
export type ImageSource =
  | { readonly kind: 'uploaded' }
  | { readonly kind: 'id'; readonly id: string }
  | { readonly kind: 'filters'; readonly filters: readonly ImageFilter[]; readonly owners: readonly string[] };

export interface VolumeConfig {
  readonly type: string | undefined;
  /** GiB. */
  readonly size: number | undefined;
  readonly iops: number | undefined;
  /** MiB per second. */
  readonly throughput: number | undefined;
  readonly kmsKeyId: string | undefined;
}

export interface Fleet {
  readonly strategy: AllocationStrategy;
}

export interface AwsLabel extends LabelConfig {
  readonly pool: string;
  /** Types in the order of preference: alternatives, or those of the fleet. */
  readonly instanceTypes: readonly string[];
  readonly spot: SpotUse;
  /** Market of a launch without a machine type. */
  readonly market: Market;
  readonly fleet: Fleet | undefined;
  readonly imageSource: ImageSource;
  readonly keyName: string;
  readonly ebsOptimized: boolean;
  readonly volume: VolumeConfig;
  /** Base64. */
  readonly userData: string | undefined;
  readonly instanceProfile: { readonly Name?: string; readonly Arn?: string } | undefined;
  readonly tags: Readonly<Record<string, string>>;
  readonly dynamicTags: ReadonlyMap<string, RequestTemplate>;
  readonly imdsv2: 'required' | 'optional' | undefined;
  readonly dedicatedHost: boolean;
  readonly network: Network;
}

/** Network settings of a pool. */
export interface Network {
  /** Zone in the configuration; undefined if the subnets determine it. */
  readonly zone: string | undefined;
  /** In the order of preference; empty for the default subnet. */
  readonly subnetIds: readonly string[];
  readonly securityGroupIds: readonly string[];
  readonly publicIpv4: boolean;
  readonly ipv6: boolean;
  readonly useInternalIp: boolean;
}

export type ImportMethod = 'snapshot' | 'ebs-direct' | 'image';

/** Cloud settings of a disk image. */
export interface ImageTraits {
  readonly architecture: string;
  readonly enaSupport: boolean;
  readonly importMethod: ImportMethod;
  readonly imdsV2: boolean;
  readonly volume: VolumeConfig;
}

export interface AwsProvider extends ProviderConfig<AwsLabel> {
  readonly region: string;
  readonly profileName: string | undefined;
  readonly roleArn: string | undefined;
  readonly webIdentityTokenFile: string | undefined;
  /** If undefined, AWS's endpoints are used. */
  readonly endpointUrl: string | undefined;
  /** URL. */
  readonly interruptionQueue: string | undefined;
  readonly bucket: string | undefined;
  readonly imageImportTimeoutMs: number | undefined;
  readonly imageSourceRegion: string | undefined;
  /** Time limit of the wait for the image in the source region (ms). */
  readonly imageSourceTimeoutMs: number;
  /** By name of the disk image. */
  readonly imageTraits: ReadonlyMap<string, ImageTraits>;
  /** Cloud images with filters and without owners, which a stranger's image can match. */
  readonly imagesOfAnyOwner: readonly string[];
}

/** Parses a section that conforms to the schema. */
export function loadProvider(section: JsonObject, context: ProviderConfigContext): AwsProvider {
  const common = loadCommonProvider<AwsLabel, PoolConfig<AwsLabel>>(section, context, {
    defaults: DEFAULTS,
    imageFormat: stringAt(section, 'image-format') ?? 'raw',
    imageMetadataKey: 'tags',
    loadLabel: (label, source) => loadLabel(label, source, context),
    loadPool: (pool, source) => loadPool(pool, source),
  });
  checkDiskImages(common, section, context);
  return {
    ...common,
    region: stringAt(section, 'region-name') ?? '',
    profileName: stringAt(section, 'profile-name'),
    roleArn: stringAt(section, 'role-arn'),
    webIdentityTokenFile: stringAt(section, 'web-identity-token-file'),
    endpointUrl: stringAt(section, 'endpoint-url')?.replace(/\/$/, ''),
    interruptionQueue: stringAt(section, 'interruption-queue'),
    bucket: stringAt(objectAt(section, 'object-storage') ?? {}, 'bucket-name'),
    imageImportTimeoutMs: millisecondsAt(section, 'image-import-timeout'),
    imageSourceRegion: stringAt(section, 'image-source-region'),
    imageSourceTimeoutMs: millisecondsAt(section, 'image-source-timeout') ?? DEFAULT_IMAGE_SOURCE_TIMEOUT_S * 1000,
    imageTraits: new Map(entriesAt(section, 'diskimages').map((entry) => [entry.name, imageTraitsOf(entry.section)])),
    imagesOfAnyOwner: entriesAt(section, 'cloud-images')
      .filter((image) => 'image-filters' in image.section && !('owners' in image.section))
      .map(({ name }) => name),
  };
}

/** Adds the limits of `max-resources`, and those of the provider that the pool does not set. */
function loadPool(pool: PoolConfig<AwsLabel>, { section, providerSection }: PoolSource): PoolConfig<AwsLabel> {
  const limits: Record<string, number> = {};
  for (const from of [providerSection, section]) {
    for (const [key, resource] of [
      ['max-cores', 'cores'],
      ['max-ram', 'ram'],
    ] as const) {
      const limit = numberAt(from, key);
      if (limit !== undefined) limits[resource] = limit;
    }
    const resources = objectAt(from, 'max-resources') ?? {};
    for (const code of Object.keys(resources)) limits[code] = numberAt(resources, code) ?? 0;
  }
  const maxServers = numberAt(section, 'max-servers') ?? numberAt(providerSection, 'max-servers') ?? Infinity;
  const zone = stringAt(section, 'availability-zone');
  return { ...pool, maxServers, limits, availabilityZones: zone === undefined ? [] : [zone] };
}

type Problem = (key: readonly (string | number)[], expected: string, hint?: string) => void;

function loadLabel(label: LabelConfig, source: LabelSource, context: ProviderConfigContext): AwsLabel {
  const { section, poolSection, imageSection, path } = source;
  const problem: Problem = (key, expected, hint) =>
    context.problem([...path, ...key], { expected, ...(hint === undefined ? {} : { hint }) });
  const fleetSection = objectAt(section, 'fleet');
  const instanceTypes = stringsAt(fleetSection ?? section, 'instance-types') ?? [
    stringAt(section, 'instance-type') ?? '',
  ];
  const spot = section['use-spot'] === 'prefer' ? 'prefer' : booleanAt(section, 'use-spot') === true ? 'only' : 'never';
  const dedicatedHost = booleanAt(section, 'dedicated-host') ?? false;
  const network = networkOf(source);
  checkMarket({ section, spot, dedicatedHost, network }, problem);
  return {
    ...label,
    machineTypes: machineTypesOf({ instanceTypes, spot, isFleet: fleetSection !== undefined }),
    pool: stringAt(poolSection, 'name') ?? '',
    instanceTypes,
    spot,
    market: spot === 'never' ? 'on-demand' : 'spot',
    fleet: fleetOf(fleetSection),
    imageSource: label.image.kind === 'diskimage' ? { kind: 'uploaded' } : imageSourceOf(imageSection),
    keyName: stringAt(section, 'key-name') ?? '',
    ebsOptimized: booleanAt(section, 'ebs-optimized') ?? false,
    volume: volumeOf(section),
    userData: userDataOf(section, problem),
    instanceProfile: instanceProfileOf(section),
    tags: checkUserTags(section, problem),
    dynamicTags: requestTemplatesAt(section, 'dynamic-tags', path, context),
    imdsv2: imdsv2Of(section),
    dedicatedHost,
    network,
  };
}

interface MarketSource {
  readonly section: JsonObject;
  readonly spot: SpotUse;
  readonly dedicatedHost: boolean;
  readonly network: Network;
}

/** Reports combinations that EC2 refuses. */
function checkMarket({ section, spot, dedicatedHost, network }: MarketSource, problem: Problem): void {
  const fleet = objectAt(section, 'fleet');
  const strategy = fleet === undefined ? undefined : stringAt(fleet, 'allocation-strategy');
  if (dedicatedHost && spot !== 'never') {
    problem(
      ['dedicated-host'],
      'no "dedicated-host" together with "use-spot"',
      'spot instances have no host of their own',
    );
  }
  if (dedicatedHost && network.zone === undefined) {
    problem(['dedicated-host'], '"availability-zone" to be set on the pool', 'a host is allocated in one zone');
  }
  if (dedicatedHost && fleet !== undefined) {
    problem(['dedicated-host'], '"instance-type" or "instance-types" instead of "fleet"');
  }
  if (fleet === undefined || strategy === undefined) return;
  if (spot === 'prefer') {
    problem(['use-spot'], 'true or false for a fleet', 'use "instance-types" instead of "fleet" to prefer spot');
  }
  if (spot === 'never' && !ON_DEMAND_STRATEGIES.has(strategy)) {
    problem(
      ['fleet', 'allocation-strategy'],
      '"prioritized" or "lowest-price", the strategies of on-demand fleets',
      'set "use-spot: true" for a fleet of spot instances',
    );
  }
}

function networkOf({ poolSection, providerSection }: LabelSource): Network {
  const flag = (key: string): boolean | undefined => booleanAt(poolSection, key) ?? booleanAt(providerSection, key);
  const one = (key: string): readonly string[] | undefined => {
    const value = stringAt(poolSection, key);
    return value === undefined ? undefined : [value];
  };
  return {
    zone: stringAt(poolSection, 'availability-zone'),
    subnetIds:
      one('subnet-id') ?? stringsAt(poolSection, 'subnet-ids') ?? stringsAt(providerSection, 'subnet-ids') ?? [],
    securityGroupIds: one('security-group-id') ?? stringsAt(poolSection, 'security-group-ids') ?? [],
    publicIpv4: booleanAt(poolSection, 'public-ip-address') ?? flag('public-ipv4') ?? true,
    ipv6: flag('public-ipv6') ?? false,
    useInternalIp: flag('use-internal-ip') ?? false,
  };
}

function fleetOf(section: JsonObject | undefined): Fleet | undefined {
  if (section === undefined) return undefined;
  const name = stringAt(section, 'allocation-strategy');
  return { strategy: ALLOCATION_STRATEGIES.find((each) => each === name) ?? 'lowest-price' };
}

function imageSourceOf(section: JsonObject): ImageSource {
  const id = stringAt(section, 'image-id');
  if (id !== undefined) return { kind: 'id', id };
  const filters = entriesAt(section, 'image-filters').map(({ section: each }) => ({
    name: stringAt(each, 'name') ?? stringAt(each, 'Name') ?? '',
    values: stringsAt(each, 'values') ?? stringsAt(each, 'Values') ?? [],
  }));
  return { kind: 'filters', filters, owners: stringsAt(section, 'owners') ?? [] };
}

function volumeOf(section: JsonObject): VolumeConfig {
  return {
    type: stringAt(section, 'volume-type'),
    size: numberAt(section, 'volume-size'),
    iops: numberAt(section, 'iops'),
    throughput: numberAt(section, 'throughput'),
    kmsKeyId: stringAt(section, 'kms-key-id'),
  };
}

function userDataOf(section: JsonObject, problem: Problem): string | undefined {
  const plain = stringAt(section, 'userdata');
  if (plain === undefined || plain === '') return undefined;
  const bytes = Buffer.from(plain);
  if (bytes.length > USER_DATA_MAX) problem(['userdata'], `at most ${USER_DATA_MAX} bytes, the limit of EC2`);
  return bytes.toString('base64');
}

function instanceProfileOf(section: JsonObject): AwsLabel['instanceProfile'] {
  const profile = objectAt(section, 'iam-instance-profile');
  if (profile === undefined) return undefined;
  const arn = stringAt(profile, 'arn');
  return arn === undefined ? { Name: stringAt(profile, 'name') ?? '' } : { Arn: arn };
}

function imdsv2Of(section: JsonObject): AwsLabel['imdsv2'] {
  const value = stringAt(section, 'imdsv2');
  return value === 'required' || value === 'optional' ? value : undefined;
}

function importMethodOf(section: JsonObject): ImportMethod {
  const method = stringAt(section, 'import-method');
  return method === 'ebs-direct' || method === 'image' ? method : 'snapshot';
}

function imageTraitsOf(section: JsonObject): ImageTraits {
  const volume = volumeOf(section);
  return {
    architecture: stringAt(section, 'architecture') ?? 'x86_64',
    enaSupport: booleanAt(section, 'ena-support') ?? true,
    importMethod: importMethodOf(section),
    imdsV2: stringAt(section, 'imds-support') === 'v2.0',
    volume: { ...volume, type: volume.type ?? DEFAULT_IMAGE_VOLUME_TYPE },
  };
}

function checkDiskImages({ diskImages }: ProviderConfig, section: JsonObject, context: ProviderConfigContext): void {
  const bucket = objectAt(section, 'object-storage');
  const format = stringAt(section, 'image-format') ?? 'raw';
  for (const { index, name, section: image } of entriesAt(section, 'diskimages')) {
    const problem: Problem = (key, expected, hint) =>
      context.problem(['diskimages', index, ...key], { expected, ...(hint === undefined ? {} : { hint }) });
    const method = importMethodOf(image);
    if (method !== 'ebs-direct' && bucket === undefined) {
      problem(
        [],
        '"object-storage" to be set on the provider',
        'or set "import-method: ebs-direct", which needs no bucket',
      );
    }
    if (method === 'ebs-direct' && format !== 'raw') {
      problem(['import-method'], '"image-format: raw" of the provider for "ebs-direct"');
    }
    if (method === 'image' && stringAt(image, 'imds-support') === 'v2.0') {
      problem(['imds-support'], 'no "imds-support" with "import-method: image"', 'use "snapshot" or "ebs-direct"');
    }
    checkImageTags(textsAt(image, 'tags'), diskImages.get(name)?.metadata ?? {}, problem);
  }
}

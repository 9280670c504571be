/** Parses the configuration of a provider; see `schema.ts` for its keys. */

import {
  booleanAt,
  entriesAt,
  loadCommonProvider,
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
  type ProviderConfig,
  type ProviderConfigContext,
  type RequestTemplate,
} from '@nodepool/core';
import { DEFAULTS } from './schema.js';

/** Maximum number of tags of a resource (Azure Resource Manager). */
const TAGS_MAX = 50;
/** Number of tags that Nodepool adds: to VMs `InstanceTags` and the owner, to images also their name. */
const OWN_TAGS = { vm: 6, image: 8 } as const;
/** Maximum length of a tag name in characters (Azure Resource Manager). */
const TAG_NAME_MAX = 512;
/** Maximum length of a tag value in characters (Azure Resource Manager). */
const TAG_MAX = 256;
/** Characters that are invalid in tag names (Azure Resource Manager). */
const INVALID_TAG_CHARACTERS = /[<>%&\\?/]/;
/** Maximum length of custom data and user data in base64 characters (Azure virtual machines: 64 KiB). */
const DATA_MAX = 87_380;
/** Maximum price of a spot VM that is never evicted because of its price. */
const REGULAR_PRICE = -1;

/** The source of an image. */
export type ImageSource =
  | { readonly kind: 'uploaded' }
  /** `imageReference` of a VM. */
  | { readonly kind: 'reference'; readonly reference: Readonly<Record<string, string>> }
  | { readonly kind: 'filter'; readonly filter: ImageFilter };

export interface ImageFilter {
  readonly name: string | undefined;
  readonly location: string | undefined;
  readonly tags: Readonly<Record<string, string>>;
}

export interface AzureLabel extends LabelConfig {
  /** The preferred size, which a launch without a machine type uses. */
  readonly vmSize: string;
  readonly imageSource: ImageSource;
  readonly username: string;
  readonly key: string | undefined;
  readonly password: string | undefined;
  readonly generatePassword: boolean;
  readonly tags: Readonly<Record<string, string>>;
  readonly dynamicTags: ReadonlyMap<string, RequestTemplate>;
  /** Base64. */
  readonly userData: string | undefined;
  /** Base64. */
  readonly customData: string | undefined;
  /** GB. */
  readonly volumeSize: number | undefined;
  /** SKU of the disk, e.g. `Premium_LRS`. */
  readonly volumeType: string | undefined;
  /** If true, the OS disk is local to the VM's host. */
  readonly ephemeralDisk: boolean;
  readonly spot: Spot | undefined;
  readonly trustedLaunch: TrustedLaunch | undefined;
  /** Ids of the managed identities assigned to the VM. */
  readonly identities: readonly string[];
  readonly addresses: Addresses;
}

export interface Spot {
  /** US dollars per hour; -1 means the price of a regular VM. */
  readonly maxPrice: number;
}

export interface TrustedLaunch {
  readonly secureBoot: boolean;
  readonly vtpm: boolean;
}

export type Generation = 'V1' | 'V2';

export interface ImageTraits {
  readonly generation: Generation;
  readonly zoneResilient: boolean;
}

/** Addresses of a VM besides the private IPv4 address that every network interface in Azure has. */
export interface Addresses {
  readonly ipv6: boolean;
  readonly publicIpv4: boolean;
  readonly publicIpv6: boolean;
  /** If true, nodes are reached at their private addresses. */
  readonly useInternalIp: boolean;
}

export interface AzureProvider extends ProviderConfig<AzureLabel> {
  /** Path; undefined if none is configured, which is an error at startup. */
  readonly authPath: string | undefined;
  readonly location: string;
  readonly resourceGroup: string;
  readonly resourceGroupLocation: string;
  /** Full id, or a path relative to the subscription. */
  readonly subnet: { readonly id: string } | { readonly path: string };
  /** By name of the disk image. */
  readonly imageTraits: ReadonlyMap<string, ImageTraits>;
}

export function loadProvider(
  section: JsonObject,
  context: ProviderConfigContext,
  env: Readonly<Record<string, string | undefined>>,
): AzureProvider {
  const common = loadCommonProvider<AzureLabel, PoolConfig<AzureLabel>>(section, context, {
    defaults: DEFAULTS,
    imageFormat: 'vhd',
    imageMetadataKey: 'tags',
    loadLabel: (label, source) => loadLabel(label, source, context),
    loadPool: (pool, { section: pools }) => ({ ...pool, availabilityZones: stringsAt(pools, 'zones') ?? [] }),
  });
  checkImageTags(common, section, context);
  const resourceGroup = stringAt(section, 'resource-group') ?? '';
  return {
    ...common,
    authPath: stringAt(section, 'auth-path') ?? env['AZURE_AUTH_LOCATION'],
    location: stringAt(section, 'location') ?? '',
    resourceGroup,
    resourceGroupLocation: stringAt(section, 'resource-group-location') ?? '',
    subnet: subnetOf(section, resourceGroup),
    imageTraits: new Map(entriesAt(section, 'diskimages').map((entry) => [entry.name, imageTraitsOf(entry.section)])),
  };
}

function subnetOf(section: JsonObject, resourceGroup: string): AzureProvider['subnet'] {
  const id = stringAt(section, 'subnet-id');
  if (id !== undefined) return { id };
  const where = objectAt(section, 'network') ?? {};
  const group = stringAt(where, 'resource-group') ?? resourceGroup;
  const network = stringAt(section, 'network') ?? stringAt(where, 'network') ?? '';
  const subnet = stringAt(where, 'subnet') ?? 'default';
  return { path: `resourceGroups/${group}/providers/Microsoft.Network/virtualNetworks/${network}/subnets/${subnet}` };
}

function loadLabel(label: LabelConfig, source: LabelSource, context: ProviderConfigContext): AzureLabel {
  const { section, imageSection, path } = source;
  const password = stringAt(imageSection, 'password');
  const generatePassword = booleanAt(imageSection, 'generate-password') ?? false;
  const hasPassword = password !== undefined || generatePassword;
  const ownKey = stringAt(imageSection, 'key');
  const key = ownKey ?? (hasPassword ? undefined : stringAt(source.providerSection, 'zuul-public-key'));
  const problem: Problem = (key, expected, hint) =>
    context.problem([...path, ...key], { expected, ...(hint === undefined ? {} : { hint }) });
  // A disk image that the provider does not list has no settings; requests for its label are declined.
  const isListed = 'name' in imageSection;
  if (isListed && key === undefined && !hasPassword) {
    problem([], `an image with a login: "key", "password" or "generate-password" of ${label.image.name}`);
  }
  const machineTypes = vmSizesOf(section, problem);
  return {
    ...label,
    machineTypes,
    vmSize: machineTypes?.[0] ?? stringAt(objectAt(section, 'hardware-profile') ?? {}, 'vm-size') ?? '',
    imageSource: label.image.kind === 'diskimage' ? { kind: 'uploaded' } : imageSourceOf(imageSection),
    username: label.connection.username ?? 'zuul',
    key,
    password,
    generatePassword,
    tags: checkedTags(section, problem),
    dynamicTags: requestTemplatesAt(section, 'dynamic-tags', path, context),
    userData: encoded(section, 'user-data', problem),
    customData: encoded(section, 'custom-data', problem),
    volumeSize: numberAt(section, 'volume-size'),
    volumeType: stringAt(section, 'volume-type'),
    ephemeralDisk: booleanAt(section, 'ephemeral-os-disk') ?? false,
    spot: spotOf(section),
    trustedLaunch: trustedLaunchOf(section),
    identities: stringsAt(section, 'identities') ?? [],
    addresses: addressesOf(source),
  };
}

/** Returns the sizes of `hardware-profiles`. The cloud ignores the case of their names. */
function vmSizesOf(section: JsonObject, problem: Problem): readonly string[] | undefined {
  if (!('hardware-profiles' in section)) return undefined;
  const entries = entriesAt(section, 'hardware-profiles');
  const sizes = entries.map((entry) => stringAt(entry.section, 'vm-size') ?? '');
  const names = sizes.map((size) => size.toLowerCase());
  entries.forEach(({ index }, at) => {
    if (names.indexOf(names[at] ?? '') < at) {
      problem(['hardware-profiles', index, 'vm-size'], 'a size that is not listed above', 'remove the repetition');
    }
  });
  return sizes;
}

function spotOf(section: JsonObject): Spot | undefined {
  const maxPrice = numberAt(section, 'spot-max-price');
  return booleanAt(section, 'spot') === true ? { maxPrice: maxPrice ?? REGULAR_PRICE } : undefined;
}

function trustedLaunchOf(section: JsonObject): TrustedLaunch | undefined {
  const profile = objectAt(section, 'security-profile');
  if (profile === undefined) return undefined;
  return { secureBoot: booleanAt(profile, 'secure-boot') ?? true, vtpm: booleanAt(profile, 'vtpm') ?? true };
}

function imageTraitsOf(section: JsonObject): ImageTraits {
  return {
    generation: stringAt(section, 'hyper-v-generation') === 'V1' ? 'V1' : 'V2',
    zoneResilient: booleanAt(section, 'zone-resilient') ?? true,
  };
}

/** `ipv4` has no effect, because a network interface requires a private IPv4 address. */
function addressesOf({ poolSection, providerSection }: LabelSource): Addresses {
  const flag = (key: string): boolean | undefined => booleanAt(poolSection, key) ?? booleanAt(providerSection, key);
  const publicIpv6 = flag('public-ipv6') ?? false;
  return {
    ipv6: publicIpv6 || (flag('ipv6') ?? false),
    publicIpv4: flag('public-ipv4') ?? true,
    publicIpv6,
    useInternalIp: flag('use-internal-ip') ?? false,
  };
}

function imageSourceOf(section: JsonObject): ImageSource {
  const filter = objectAt(section, 'image-filter');
  if (filter !== undefined) {
    const [name, location] = [stringAt(filter, 'name'), stringAt(filter, 'location')];
    return { kind: 'filter', filter: { name, location, tags: textsAt(filter, 'tags') } };
  }
  return { kind: 'reference', reference: referenceOf(section) };
}

function referenceOf(section: JsonObject): Readonly<Record<string, string>> {
  const id = stringAt(section, 'image-id');
  if (id !== undefined) return { id };
  const community = objectAt(section, 'community-gallery-image');
  if (community !== undefined) return { communityGalleryImageId: galleryPath('CommunityGalleries', community) };
  const shared = objectAt(section, 'shared-gallery-image');
  if (shared !== undefined) return { sharedGalleryImageId: galleryPath('SharedGalleries', shared) };
  return textsAt(section, 'image-reference');
}

/** Returns the path of a gallery image. Ids of shared gallery images start with the gallery, not a subscription. */
function galleryPath(kind: string, section: JsonObject): string {
  const [gallery = '', image = '', version] = ['gallery-name', 'name', 'version'].map((key) => stringAt(section, key));
  return `/${kind}/${gallery}/Images/${image}${version === undefined ? '' : `/Versions/${version}`}`;
}

type Problem = (key: readonly (string | number)[], expected: string, hint?: string) => void;

function checkedTags(section: JsonObject, problem: Problem): Readonly<Record<string, string>> {
  const tags = textsAt(section, 'tags');
  const dynamic = Object.keys(textsAt(section, 'dynamic-tags'));
  for (const [name, value] of Object.entries(tags)) checkTag(name, value, ['tags', name], problem);
  for (const name of dynamic) checkTag(name, '', ['dynamic-tags', name], problem);
  checkNumber(
    new Set([...Object.keys(tags), ...dynamic]).size,
    OWN_TAGS.vm,
    ['tags' in section ? 'tags' : 'dynamic-tags'],
    problem,
  );
  return tags;
}

/** Checks the tags of disk images, which can also be properties of the image that is built. */
function checkImageTags({ diskImages }: ProviderConfig, section: JsonObject, context: ProviderConfigContext): void {
  for (const { index, name: image } of entriesAt(section, 'diskimages')) {
    const path = ['diskimages', index];
    const problem: Problem = (key, expected, hint) =>
      context.problem([...path, ...key], { expected, ...(hint === undefined ? {} : { hint }) });
    const tags = Object.entries(diskImages.get(image)?.metadata ?? {});
    for (const [name, value] of tags)
      checkTag(name, value, [], (key, expected) => problem(key, expected, `this is about the tag ${name}`));
    checkNumber(tags.length, OWN_TAGS.image, [], problem);
  }
}

function checkTag(name: string, value: string, key: readonly string[], problem: Problem): void {
  if (INVALID_TAG_CHARACTERS.test(name)) problem(key, 'a name of a tag, without any of <>%&\\?/');
  if (name.length > TAG_NAME_MAX) problem(key, `a name of a tag with at most ${TAG_NAME_MAX} characters`);
  if (value.length > TAG_MAX) problem(key, `a value of a tag with at most ${TAG_MAX} characters`);
}

function checkNumber(tags: number, own: number, key: readonly string[], problem: Problem): void {
  const allowed = TAGS_MAX - own;
  if (tags > allowed) problem(key, `at most ${allowed} tags, because Azure allows ${TAGS_MAX} including Nodepool's`);
}

/** Returns a value of the section in base64, as the API requires. */
function encoded(section: JsonObject, key: string, problem: Problem): string | undefined {
  const plain = stringAt(section, key);
  if (plain === undefined || plain === '') return undefined;
  const base64 = Buffer.from(plain).toString('base64');
  if (base64.length > DATA_MAX) problem([key], `at most ${DATA_MAX} characters in base64`);
  return base64;
}

/** Truncates a value to the limits of tags, so that data of a request cannot make a launch fail. */
export function asTag(value: string): string {
  return value.slice(0, TAG_MAX);
}

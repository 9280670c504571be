/** Looks up the VM sizes and filtered images that labels refer to. */

import { CachedRead, ConfigurationError, type Call, type Clock, type Readiness } from '@nodepool/core';
import type { Client } from './client/client.js';
import type { Image, ResourceSku } from './client/types.js';
import type { AzureLabel, ImageFilter } from './config.js';
import { sameLocation, tagsOf } from './identity.js';

const SIZES_MAX_AGE_MS = 24 * 3_600_000;
const IMAGES_MAX_AGE_MS = 300_000;
/** Maximum age of a list that a size is refused by (ms); an older one is read again. */
const REFUSED_MAX_AGE_MS = 5000;

export interface VmSize {
  readonly name: string;
  /** As in usages, e.g. `standardBSFamily`. */
  readonly family: string;
  readonly cores: number;
  /** MiB. */
  readonly ram: number;
  /** Reason why the subscription cannot use the size here; undefined if it can. */
  readonly refused: string | undefined;
  /** True if the size is known to boot common images: processors of Intel or AMD, and VM generation 2. */
  readonly common: boolean;
}

export class Lookups {
  readonly sizes: CachedRead<ReadonlyMap<string, VmSize>>;
  readonly images: CachedRead<readonly Image[]>;

  constructor(client: Client, location: string, makeCall: () => Call, clock: Clock) {
    const readSizes = async (call: Call): Promise<ReadonlyMap<string, VmSize>> =>
      sizesIn(await client.listSkus(call), location);
    this.sizes = new CachedRead(readSizes, makeCall, clock, SIZES_MAX_AGE_MS);
    this.images = new CachedRead((call) => client.listImages(call), makeCall, clock, IMAGES_MAX_AGE_MS);
  }

  /** Rejects with `ConfigurationError` if the location does not have the size, or not for this subscription. */
  async size(name: string): Promise<VmSize> {
    const find = async (maxAgeMs?: number): Promise<VmSize | undefined> =>
      (await this.sizes.read(maxAgeMs)).get(name.toLowerCase());
    let size = await find();
    // An old cached list must not refuse a size.
    if (size === undefined || size.refused !== undefined) size = await find(REFUSED_MAX_AGE_MS);
    if (size === undefined || size.refused !== undefined) throw new ConfigurationError(refusal(size, name));
    return size;
  }

  /** Resolves with the id of the last matching image by name. Rejects with `ConfigurationError` if there is none. */
  async image(filter: ImageFilter): Promise<string> {
    const found = chooseImage(await this.images.read(), filter);
    const image = found ?? chooseImage(await this.images.read(REFUSED_MAX_AGE_MS), filter);
    if (image?.id === undefined) throw new ConfigurationError(noImage(filter));
    return image.id;
  }

  /** Returns the label's readiness according to cached lookups. One usable size of several is enough. */
  readiness({ vmSize, machineTypes = [vmSize], imageSource }: AzureLabel): Readiness {
    const [sizes, images] = [this.sizes.latest, this.images.latest];
    const reasons = sizes === undefined ? [] : machineTypes.map((name) => unusable(sizes, name));
    if (reasons.length > 0 && reasons.every((reason) => reason !== undefined)) {
      return { ready: false, reason: reasons.join('; ') };
    }
    if (
      imageSource.kind === 'filter' &&
      images !== undefined &&
      chooseImage(images, imageSource.filter) === undefined
    ) {
      return { ready: false, reason: noImage(imageSource.filter) };
    }
    return { ready: true };
  }

  /** Refreshes the lookups of a label unless they are younger than `maxAgeMs`. */
  async refresh({ imageSource }: AzureLabel, maxAgeMs: number): Promise<void> {
    await Promise.all([
      this.sizes.read(maxAgeMs),
      imageSource.kind === 'filter' ? this.images.read(maxAgeMs) : undefined,
    ]);
  }
}

/** Returns the reason why the size cannot be used, or undefined if it can. */
function unusable(sizes: ReadonlyMap<string, VmSize>, name: string): string | undefined {
  const size = sizes.get(name.toLowerCase());
  return size !== undefined && size.refused === undefined ? undefined : refusal(size, name);
}

function refusal(size: VmSize | undefined, name: string): string {
  if (size === undefined) return `the location has no VM size ${JSON.stringify(name)}`;
  return `the VM size ${name} cannot be had here: ${size.refused ?? 'restricted'}`;
}

function chooseImage(images: readonly Image[], { name, location, tags }: ImageFilter): Image | undefined {
  const fitting = images.filter(
    (image) =>
      image.properties?.provisioningState === 'Succeeded' &&
      (name === undefined || image.name === name) &&
      (location === undefined || sameLocation(image.location, location)) &&
      Object.entries(tags).every(([key, value]) => tagsOf(image)[key] === value),
  );
  return fitting.reduce<Image | undefined>((last, image) => (isAfter(image, last) ? image : last), undefined);
}

/** Compares names by their characters, as the Python Nodepool does, and not by the rules of the host's language. */
function isAfter({ name = '' }: Image, other: Image | undefined): boolean {
  return other === undefined || name >= (other.name ?? '');
}

function noImage(filter: ImageFilter): string {
  return `the resource group has no image that fits ${JSON.stringify(filter)}`;
}

function sizesIn(skus: readonly ResourceSku[], location: string): ReadonlyMap<string, VmSize> {
  const sizes = new Map<string, VmSize>();
  for (const sku of skus) {
    const { name, family = '', resourceType, capabilities = [], restrictions = [] } = sku;
    if (resourceType !== 'virtualMachines' || name === undefined) continue;
    if (sku.locations !== undefined && !sku.locations.some((here) => sameLocation(here, location))) continue;
    const amount = (capability: string): number =>
      Number(capabilities.find((one) => one.name === capability)?.value ?? 0);
    const text = (capability: string): string | undefined =>
      capabilities.find(({ name: of }) => of === capability)?.value;
    const refused = restrictions.find(({ type }) => type === 'Location');
    sizes.set(name.toLowerCase(), {
      name,
      family,
      cores: amount('vCPUs'),
      ram: Math.round(amount('MemoryGB') * 1024),
      refused: refused?.reasonCode ?? (refused === undefined ? undefined : 'restricted'),
      common: (text('CpuArchitectureType') ?? 'x64') === 'x64' && /V2/.test(text('HyperVGenerations') ?? ''),
    });
  }
  return sizes;
}

/**
 * What labels name, found in the cloud: flavors, images, networks. Kept for a while, since it changes rarely, and forgotten when the
 * cloud refuses what was found.
 */

import { ConfigurationError, NotFoundError, type Clock, type Readiness } from '@nodepool/core';
import type { Client } from './client/client.js';
import type { Flavor } from './client/compute.js';
import type { Image } from './client/image.js';
import type { Network } from './client/network.js';
import { KeptRead, type MakeCall } from './client/shared-read.js';
import type { FlavorWish, OpenStackLabel } from './config.js';

const MAX_AGE_MS = 3_600_000;

type CloudImage = NonNullable<OpenStackLabel['cloudImage']>;

export class Lookups {
  readonly flavors: KeptRead<readonly Flavor[]>;
  readonly networks: KeptRead<readonly Network[]>;
  private readonly images = new Map<string, KeptRead<readonly Image[]>>();

  constructor(
    private readonly client: Client,
    private readonly makeCall: MakeCall,
    private readonly clock: Clock,
  ) {
    this.flavors = this.kept((call) => client.compute.listFlavors(call));
    this.networks = this.kept(async (call) => ((await client.has('network')) ? client.network.listNetworks(call) : []));
  }

  /** Rejects with `ConfigurationError` when the cloud has none. */
  async flavor(wish: FlavorWish): Promise<Flavor> {
    const flavors = await this.flavors.read();
    const found = chooseFlavor(flavors, wish);
    if (found !== undefined) return found;
    // It may have been made since.
    this.flavors.forget();
    const fresh = await this.flavors.read();
    const now = chooseFlavor(fresh, wish);
    if (now !== undefined) return now;
    throw new ConfigurationError(noFlavor(fresh, wish));
  }

  /** Id of the image of a label without disk image. Rejects with `NotFoundError` when the cloud has none: it may be replaced just now. */
  async cloudImage(image: CloudImage): Promise<string> {
    if ('id' in image) return image.id;
    const read = this.imagesNamed(image.name);
    const [newest] = await read.read();
    if (newest !== undefined) return newest.id;
    read.forget();
    throw new NotFoundError(noImage(image.name));
  }

  /** Whether the cloud has what a label names, as far as it is known: what was not read yet, a launch will find. */
  readiness({ flavor, cloudImage }: Pick<OpenStackLabel, 'flavor' | 'cloudImage'>): Readiness {
    const flavors = this.flavors.latest;
    if (flavors !== undefined && chooseFlavor(flavors, flavor) === undefined) {
      return { ready: false, reason: noFlavor(flavors, flavor) };
    }
    if (cloudImage === undefined || 'id' in cloudImage) return { ready: true };
    const missing = this.imagesNamed(cloudImage.name).latest?.length === 0;
    return missing ? { ready: false, reason: noImage(cloudImage.name) } : { ready: true };
  }

  /** Reads what a label names, unless what is known of it is younger than that. */
  async refresh({ cloudImage }: Pick<OpenStackLabel, 'cloudImage'>, maxAgeMs: number): Promise<void> {
    const image = cloudImage === undefined || 'id' in cloudImage ? undefined : this.imagesNamed(cloudImage.name);
    await Promise.all([this.flavors.read(maxAgeMs), image?.read(maxAgeMs)]);
  }

  /**
   * Resolves with the ids of the networks by these names or ids, in this order; without names, of the network that
   * `clouds.yaml` marks with `default_interface`. Rejects with `ConfigurationError` if one is missing.
   */
  async networkIds(configured: readonly string[]): Promise<readonly string[]> {
    const byDefault = this.client.cloud.networks.find(({ defaultInterface }) => defaultInterface)?.name;
    const names = configured.length > 0 || byDefault === undefined ? configured : [byDefault];
    if (names.length === 0) return [];
    const projectId = await this.client.projectId();
    const search = async (): Promise<readonly (string | undefined)[]> => {
      const networks = await this.networks.read();
      return names.map((name) => findNetwork(networks, name, projectId)?.id);
    };
    let ids = await search();
    if (ids.includes(undefined)) {
      this.networks.forget();
      ids = await search();
    }
    return ids.map((id, index) => {
      if (id !== undefined) return id;
      const known = (this.networks.latest ?? []).map(({ name }) => name).join(', ');
      throw new ConfigurationError(`the cloud has no network ${JSON.stringify(names[index])}; it has: ${known}`);
    });
  }

  /** What was found may not be true any more: the next who asks has it looked up. */
  forget(): void {
    this.flavors.forget();
    this.networks.forget();
    for (const read of this.images.values()) read.forget();
  }

  private imagesNamed(name: string): KeptRead<readonly Image[]> {
    let read = this.images.get(name);
    if (read === undefined) {
      read = this.kept((call) => this.findImages(name, call));
      this.images.set(name, read);
    }
    return read;
  }

  private kept<T>(load: (call: ReturnType<MakeCall>) => Promise<T>): KeptRead<T> {
    return new KeptRead(load, this.makeCall, this.clock, MAX_AGE_MS);
  }

  /** Active images of that name, the newest first; else the one with that id. */
  private async findImages(nameOrId: string, call: ReturnType<MakeCall>): Promise<readonly Image[]> {
    const named = await this.client.image.listImages(call, { name: nameOrId, status: 'active' });
    if (named.length > 0) return named.toSorted((a, b) => b.createdAt.localeCompare(a.createdAt));
    if (!/^[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}$/i.test(nameOrId)) return [];
    const all = await this.client.image.listImages(call, { id: nameOrId });
    return all.filter(({ id, status }) => id === nameOrId && status === 'active');
  }
}

/** The smallest flavor with the memory whose name contains the name; without a wish for memory, that of exactly the name or id. */
export function chooseFlavor(flavors: readonly Flavor[], { minRam, name }: FlavorWish): Flavor | undefined {
  if (minRam === undefined) return flavors.find((flavor) => flavor.name === name || flavor.id === name);
  const fitting = flavors.filter((flavor) => flavor.ram >= minRam && flavor.name.includes(name ?? ''));
  return fitting.toSorted((a, b) => a.ram - b.ram || a.vcpus - b.vcpus || a.name.localeCompare(b.name))[0];
}

function noImage(name: string): string {
  return `the cloud has no active image named ${JSON.stringify(name)}, and none with that id`;
}

function noFlavor(flavors: readonly Flavor[], { minRam, name }: FlavorWish): string {
  const known = flavors.map((flavor) => `${flavor.name} (${flavor.ram} MiB)`).join(', ');
  const wanted =
    minRam === undefined
      ? `with the name or id ${JSON.stringify(name)}`
      : `with at least ${minRam} MiB${name === undefined ? '' : ` and ${JSON.stringify(name)} in its name`}`;
  return `the cloud has no flavor ${wanted}; it has: ${known}`;
}

/** Names are not unique: the project's own network comes before those that it shares. */
function findNetwork(
  networks: readonly Network[],
  nameOrId: string,
  projectId: string | undefined,
): Network | undefined {
  const named = networks.filter(({ name }) => name === nameOrId);
  return (
    networks.find(({ id }) => id === nameOrId) ?? named.find((network) => network.projectId === projectId) ?? named[0]
  );
}

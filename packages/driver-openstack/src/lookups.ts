/** Looks up the flavors, images and networks of labels. Results are cached and discarded if the cloud refuses them. */

import type { Clock, MakeCall, Readiness } from '@nodepool/core';
import { CachedRead, ConfigurationError, isDriverError, NotFoundError } from '@nodepool/core';
import type { Client } from './client/client.js';
import type { Flavor } from './client/compute.js';
import type { Image } from './client/image.js';
import type { Network } from './client/network.js';
import { flavorOf, type FlavorCriteria, type OpenStackLabel } from './config.js';

const MAX_AGE_MS = 3_600_000;
/** Age (ms) of the names of images that a message lists. */
const NAMES_AGE_MS = 60_000;
/** Number of existing names in a message. */
const MAX_NAMES = 20;

type CloudImage = NonNullable<OpenStackLabel['cloudImage']>;

export class Lookups {
  readonly flavors: CachedRead<readonly Flavor[]>;
  readonly networks: CachedRead<readonly Network[]>;
  private readonly images = new Map<string, CachedRead<readonly Image[]>>();
  /** Names of all active images, which errors list. Read only if an image is missing. */
  private readonly imageNames: CachedRead<readonly string[]>;

  constructor(
    private readonly client: Client,
    private readonly makeCall: MakeCall,
    private readonly clock: Clock,
  ) {
    this.flavors = this.kept((call) => client.compute.listFlavors(call));
    this.imageNames = this.kept(async (call) => {
      const images = await client.image.listImages(call, { status: 'active' });
      return [...new Set(images.map(({ name }) => name))].sort();
    });
    this.networks = this.kept(async (call) => ((await client.has('network')) ? client.network.listNetworks(call) : []));
  }

  /** Rejects with `ConfigurationError` if the cloud has no such flavor. */
  async flavor(wish: FlavorCriteria): Promise<Flavor> {
    const flavors = await this.flavors.read();
    const found = chooseFlavor(flavors, wish);
    if (found !== undefined) return found;
    // The flavor may have been created since the last read.
    this.flavors.forget();
    const fresh = await this.flavors.read();
    const now = chooseFlavor(fresh, wish);
    if (now !== undefined) return now;
    throw new ConfigurationError(noFlavor(fresh, wish));
  }

  /**
   * Resolves with the image id of a label without a disk image. Rejects with `NotFoundError` if there is none, since
   * the image may be in the process of being replaced.
   */
  async cloudImage(image: CloudImage): Promise<string> {
    if ('id' in image) return image.id;
    const read = this.imagesNamed(image.name);
    const [newest] = await read.read();
    if (newest !== undefined) return newest.id;
    read.forget();
    throw new NotFoundError(noImage(image.name, await this.imageNames.read(NAMES_AGE_MS)));
  }

  /**
   * Returns the label's readiness according to cached lookups. A lookup that was not made yet counts as ready; the
   * launch makes it. One existing flavor of several is enough.
   */
  readiness(label: Pick<OpenStackLabel, 'flavor' | 'machineTypes' | 'cloudImage' | 'networks'>): Readiness {
    const { cloudImage, flavor, machineTypes = [] } = label;
    const flavors = this.flavors.latest;
    const wishes = [flavor, ...machineTypes.slice(1).map((name) => flavorOf(label, name))];
    if (flavors !== undefined && wishes.every((wish) => chooseFlavor(flavors, wish) === undefined)) {
      return { ready: false, reason: noFlavor(flavors, ...wishes) };
    }
    const network = this.missingNetwork(label.networks);
    if (network !== undefined) return { ready: false, reason: network };
    if (cloudImage === undefined || 'id' in cloudImage) return { ready: true };
    const missing = this.imagesNamed(cloudImage.name).latest?.length === 0;
    return missing ? { ready: false, reason: noImage(cloudImage.name, this.imageNames.latest) } : { ready: true };
  }

  /** Refreshes the lookups of a label unless they are younger than `maxAgeMs`. */
  async refresh(label: Pick<OpenStackLabel, 'cloudImage' | 'networks'>, maxAgeMs: number): Promise<void> {
    const { cloudImage, networks } = label;
    const image = cloudImage === undefined || 'id' in cloudImage ? undefined : this.imagesNamed(cloudImage.name);
    const [, found] = await Promise.all([
      this.flavors.read(maxAgeMs),
      image?.read(maxAgeMs),
      this.networkNames(networks).length === 0 ? undefined : this.networks.read(maxAgeMs),
    ]);
    if (found?.length === 0) await this.imageNames.read(maxAgeMs);
  }

  /**
   * Resolves with the ids of the networks with these names or ids, in this order. Without names, uses the network that
   * `clouds.yaml` marks with `default_interface`. Rejects with `ConfigurationError` if a network is missing.
   */
  async networkIds(configured: readonly string[]): Promise<readonly string[]> {
    const names = this.networkNames(configured);
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
      throw new ConfigurationError(noNetwork(names[index] ?? '', this.networks.latest ?? []));
    });
  }

  private networkNames(configured: readonly string[]): readonly string[] {
    const byDefault = this.client.cloud.networks.find(({ defaultInterface }) => defaultInterface)?.name;
    return configured.length > 0 || byDefault === undefined ? configured : [byDefault];
  }

  /** Returns the reason why a label has no network, or undefined; networks that were not looked up count as found. */
  private missingNetwork(configured: readonly string[]): string | undefined {
    const { latest } = this.networks;
    if (latest === undefined) return undefined;
    const missing = this.networkNames(configured).find(
      (wanted) => findNetwork(latest, wanted, undefined) === undefined,
    );
    return missing === undefined ? undefined : noNetwork(missing, latest);
  }

  /** Invalidates all lookups, so that the next caller reads again. */
  forget(): void {
    this.flavors.forget();
    this.networks.forget();
    for (const read of this.images.values()) read.forget();
  }

  private imagesNamed(name: string): CachedRead<readonly Image[]> {
    let read = this.images.get(name);
    if (read === undefined) {
      read = this.kept((call) => this.findImages(name, call));
      this.images.set(name, read);
    }
    return read;
  }

  private kept<T>(load: (call: ReturnType<MakeCall>) => Promise<T>): CachedRead<T> {
    return new CachedRead(load, this.makeCall, this.clock, MAX_AGE_MS);
  }

  /** Returns the active images with the name, newest first; else the image with that id. */
  private async findImages(nameOrId: string, call: ReturnType<MakeCall>): Promise<readonly Image[]> {
    const named = await this.client.image.listImages(call, { name: nameOrId, status: 'active' });
    if (named.length > 0) return named.toSorted((a, b) => b.createdAt.localeCompare(a.createdAt));
    if (!/^[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}$/i.test(nameOrId)) return [];
    try {
      // The list lacks hidden images, also if it is filtered by their id.
      const image = await this.client.image.getImage(nameOrId, call);
      return image.status === 'active' ? [image] : [];
    } catch (error) {
      if (isDriverError(error) && error.code === 'not-found') return [];
      throw error;
    }
  }
}

/**
 * Returns the smallest flavor with at least `minRam` whose name contains `name`, and the first by name of several with
 * that memory, as the Python Nodepool does. Without `minRam`, returns the flavor with exactly that name or id.
 */
export function chooseFlavor(flavors: readonly Flavor[], { minRam, name }: FlavorCriteria): Flavor | undefined {
  if (minRam === undefined || (minRam === 0 && name !== undefined))
    return flavors.find((flavor) => flavor.name === name || flavor.id === name);
  const fitting = flavors.filter((flavor) => flavor.ram >= minRam && flavor.name.includes(name ?? ''));
  return fitting.toSorted((a, b) => a.ram - b.ram || (a.name < b.name ? -1 : 1))[0];
}

/** `known` are the names of the active images; undefined if they are unknown. */
function noImage(name: string, known: readonly string[] | undefined): string {
  const missing = `the cloud has no active image named ${JSON.stringify(name)}, and none with that id`;
  return known === undefined ? missing : `${missing}; it has: ${namesOf(known)}`;
}

function noNetwork(name: string, networks: readonly Network[]): string {
  return `the cloud has no network ${JSON.stringify(name)}; it has: ${namesOf(networks.map((network) => network.name))}`;
}

function namesOf(names: readonly string[]): string {
  const more = names.length - MAX_NAMES;
  const first = names.slice(0, MAX_NAMES).join(', ');
  return names.length === 0 ? 'none' : more > 0 ? `${first} and ${more} more` : first;
}

function noFlavor(flavors: readonly Flavor[], ...wishes: readonly FlavorCriteria[]): string {
  const known = flavors.map((flavor) => `${flavor.name} (${flavor.ram} MiB)`).join(', ');
  const minRam = wishes[0]?.minRam;
  const names = wishes.flatMap(({ name }) => (name === undefined ? [] : [JSON.stringify(name)])).join(' or ');
  const wanted =
    minRam === undefined
      ? `with the name or id ${names}`
      : `with at least ${minRam} MiB${names === '' ? '' : ` and ${names} in its name`}`;
  return `the cloud has no flavor ${wanted}; it has: ${known}`;
}

/** Finds a network by name or id. Names are not unique: the project's own network takes precedence over shared ones. */
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

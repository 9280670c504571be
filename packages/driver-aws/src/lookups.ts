/** Looks up the subnets and images that labels refer to. */

import { CachedRead, ConfigurationError, NotFoundError, type Call, type Clock, type DriverError } from '@nodepool/core';
import type { Image, Subnet } from '@aws-sdk/client-ec2';
import type { Ec2 } from './client/ec2.js';
import type { ImageSource, Network } from './config.js';
import { codeIn } from './errors.js';

const MAX_AGE_MS = 300_000;

export class Lookups {
  /** By the key of the query. */
  private readonly images = new Map<string, CachedRead<readonly Image[]>>();
  private readonly subnets = new Map<string, CachedRead<readonly Subnet[]>>();

  constructor(
    private readonly ec2: Ec2,
    private readonly makeCall: () => Call,
    private readonly clock: Clock,
  ) {}

  /** Resolves with the image of an id, or with the newest one that passes the filters. */
  async image(source: Exclude<ImageSource, { kind: 'uploaded' }>): Promise<Image> {
    const images = await this.imagesOf(source).read();
    const [newest] = [...images]
      .filter(({ State }) => State === undefined || State === 'available')
      .sort((a, b) => (b.CreationDate ?? '').localeCompare(a.CreationDate ?? ''));
    if (newest?.ImageId !== undefined) return newest;
    this.forget(source);
    if (source.kind === 'id') {
      throw new NotFoundError(`EC2 has no available image ${source.id}`);
    }
    const { filters, owners } = source;
    const criteria = JSON.stringify({ filters, ...(owners.length === 0 ? {} : { owners }) });
    throw new ConfigurationError(`EC2 has no image that passes ${criteria}; check "image-filters" and "owners"`);
  }

  /** Discards an image that was read, because it may have been deleted. */
  forget(source: ImageSource): void {
    this.images.get(JSON.stringify(source))?.forget();
  }

  /** Resolves with the zones of a pool's subnets, in their order. Returns none if the pool has no subnets. */
  async zones({ zone, subnetIds }: Network): Promise<readonly string[]> {
    if (zone !== undefined) return [zone];
    const subnets = await this.subnetsOf(subnetIds);
    return [...new Set(subnets.flatMap(({ AvailabilityZone }) => AvailabilityZone ?? []))];
  }

  /** Resolves with the pool's subnets in a zone; with all of them if no zone is given. */
  async subnetsIn({ zone: configured, subnetIds }: Network, zone = configured): Promise<readonly string[]> {
    const [first] = subnetIds;
    if (first === undefined) return [];
    if (subnetIds.length === 1) return [first];
    const subnets = await this.subnetsOf(subnetIds);
    const found = subnets.filter(({ AvailabilityZone }) => zone === undefined || AvailabilityZone === zone);
    if (found.length === 0) throw new ConfigurationError(`no subnet of "subnet-ids" is in ${zone ?? 'the region'}`);
    return found.flatMap(({ SubnetId }) => SubnetId ?? []);
  }

  private async subnetsOf(ids: readonly string[]): Promise<readonly Subnet[]> {
    if (ids.length === 0) return [];
    const key = ids.join(' ');
    const read = this.subnets.get(key) ?? this.cached((call) => this.readSubnets(ids, call));
    this.subnets.set(key, read);
    return read.read();
  }

  private async readSubnets(ids: readonly string[], call: Call): Promise<readonly Subnet[]> {
    const subnets = await this.ec2.subnets(ids, call);
    return ids.flatMap((id) => subnets.find(({ SubnetId }) => SubnetId === id) ?? []);
  }

  private imagesOf(source: Exclude<ImageSource, { kind: 'uploaded' }>): CachedRead<readonly Image[]> {
    const key = JSON.stringify(source);
    const read = this.images.get(key) ?? this.cached((call) => this.readImages(source, call));
    this.images.set(key, read);
    return read;
  }

  private async readImages(source: Exclude<ImageSource, { kind: 'uploaded' }>, call: Call): Promise<readonly Image[]> {
    if (source.kind === 'id') return this.ec2.images({ ids: [source.id] }, call);
    const filters = source.filters.map(({ name, values }) => ({ Name: name, Values: [...values] }));
    return this.ec2.images({ owners: source.owners, filters }, call);
  }

  private cached<T>(load: (call: Call) => Promise<T>): CachedRead<T> {
    return new CachedRead(load, this.makeCall, this.clock, MAX_AGE_MS);
  }
}

/**
 * Returns the error of a launch with an image. A missing image is a fault of the configuration, unless a builder
 * uploaded it and may have deleted it.
 */
export function imageError(error: DriverError, label: string, source: ImageSource): DriverError {
  if (error.code !== 'not-found' || source.kind === 'uploaded') return error;
  // Hosts can be unknown, too.
  if (!/^(Invalid(AMI|Snapshot).*)?$/.test(codeIn(error) ?? '')) return error;
  const key = source.kind === 'id' ? '"image-id"' : '"image-filters"';
  return new ConfigurationError(`label ${label}: ${error.message}; check ${key} of the cloud image`, { cause: error });
}

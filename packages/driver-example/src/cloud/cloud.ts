/** The example cloud, without computers: instances and images in memory, on a given clock and random source. */

import type { Clock, RandomSource } from '@nodepool/core';
import { ApiGateway, type Answer } from './api-gateway.js';
import { CloudImages } from './images.js';
import { InstanceStore, type Usage } from './instances.js';
import { DEFAULT_SETTINGS, type CloudSettings } from './settings.js';
import type { CloudDescription, CloudImage, CloudInstance, ImageSpec, InstanceSpec, Page } from './types.js';
import { CloudError } from './types.js';

export interface ExampleCloudOptions {
  readonly clock: Clock;
  readonly random: RandomSource;
  /** Default for each: `DEFAULT_SETTINGS`. */
  readonly settings?: Partial<CloudSettings>;
}

/**
 * The cloud itself, which callers use through a client. Calls respond synchronously or with a promise (see `Answer`),
 * and fail with `CloudError`. A call takes effect even if its caller no longer waits for the response.
 */
export class ExampleCloud {
  private readonly gateway: ApiGateway;
  private readonly instances: InstanceStore;
  private readonly images: CloudImages;
  private settings: CloudSettings;

  constructor({ clock, random, settings }: ExampleCloudOptions) {
    this.settings = { ...DEFAULT_SETTINGS, ...settings };
    this.gateway = new ApiGateway(clock, random, this.settings);
    this.instances = new InstanceStore(clock, random, this.gateway, this.settings);
    this.images = new CloudImages(random);
  }

  /** Changes the settings for future events. */
  configure(settings: Partial<CloudSettings>): void {
    this.settings = { ...this.settings, ...settings };
    this.gateway.configure(this.settings);
    this.instances.configure(this.settings);
  }

  describe(): Answer<CloudDescription> {
    return this.gateway.serve({ write: false }, () => {
      const { zones, sizes, quota, reusesIds, publicImages = null } = this.settings;
      const { instances, cores, ram } = quota;
      const limits = { instances: written(instances), cores: written(cores), ram: written(ram) };
      return { zones, sizes, quota: limits, reusesIds, publicImages };
    });
  }

  createInstance(spec: InstanceSpec): Answer<CloudInstance> {
    return this.gateway.serve({ write: true, error: 'create-errors' }, () =>
      this.instances.create(spec, (image) => {
        this.checkImage(image);
      }),
    );
  }

  /** Starts the deletion and returns the instance, `deleting` or `deleted`. Fails with `not-found` if there is none. */
  deleteInstance(id: string): Answer<CloudInstance> {
    return this.gateway.serve({ write: true, error: 'delete-errors' }, () => this.instances.delete(id));
  }

  listInstances(marker: string | null, limit = this.settings.pageSize): Answer<Page<CloudInstance>> {
    return this.gateway.serve({ write: false, error: 'list-errors' }, () =>
      this.instances.list(marker, Math.min(limit, this.settings.pageSize)),
    );
  }

  consoleOf(id: string): Answer<string> {
    return this.gateway.serve({ write: false }, () => this.instances.console(id));
  }

  createImage(spec: ImageSpec): Answer<CloudImage> {
    return this.gateway.serve({ write: true }, () => this.images.create(spec));
  }

  /** Receives an image's data and verifies them. */
  async putImageData(id: string, data: AsyncIterable<Uint8Array>): Promise<CloudImage> {
    this.gateway.admit();
    const image = await this.images.receive(id, data, () => this.gateway.happens('upload-errors'));
    this.gateway.mayLoseAnswer();
    return image;
  }

  deleteImage(id: string): Answer<null> {
    return this.gateway.serve({ write: true, error: 'delete-errors' }, () => {
      if (!this.images.delete(id)) throw new CloudError('not-found', `there is no image ${id}`);
      return null;
    });
  }

  listImages(marker: string | null, limit = this.settings.pageSize): Answer<Page<CloudImage>> {
    return this.gateway.serve({ write: false, error: 'list-errors' }, () =>
      this.images.list(marker, Math.min(limit, this.settings.pageSize)),
    );
  }

  /** Returns the existing instances, without latency or faults, for an observer outside the cloud, e.g. a test. */
  existingInstances(): readonly CloudInstance[] {
    return this.instances.existing();
  }

  usage(): Usage {
    return this.instances.usage();
  }

  /** Deletes an instance as a host failure does. Returns false if there is no such instance. */
  destroyInstance(id: string): boolean {
    return this.instances.destroy(id);
  }

  /** Marks an instance as permanently failed, as a disk failure does. Returns false if there is no such instance. */
  breakInstance(id: string): boolean {
    return this.instances.break(id);
  }

  close(): void {
    this.instances.close();
  }

  private checkImage(image: string): void {
    const uploaded = this.images.get(image);
    if (uploaded?.state === 'ready') return;
    if (uploaded !== undefined) throw new CloudError('not-found', `image ${image} is not ready`);
    if (image.startsWith('img-')) throw new CloudError('not-found', `there is no image ${image}`);
    const names = this.settings.publicImages;
    if (names === undefined || names.includes(image)) return;
    throw new CloudError('invalid', `there is no public image ${image}; images: ${names.join(', ')}`);
  }
}

/** Returns a limit as the API represents it. */
function written(limit: number): number {
  return limit === Infinity ? -1 : limit;
}

/** A cloud that stores only images, on a virtual clock, with the faults of real clouds, and a driver for it. */

import {
  NotFoundError,
  sleep,
  TransientError,
  type Call,
  type Clock,
  type Driver,
  type ExternalId,
  type ImageManager,
  type ImageUploadRequest,
  type ListedImage,
  type Provider,
  type ProviderConfig,
  type RandomSource,
} from '@nodepool/core';

export interface CloudImage {
  readonly id: string;
  readonly name: string;
  readonly provider: string;
  readonly tags: Readonly<Record<string, string>>;
  readonly metadata: Readonly<Record<string, string>>;
  readonly file: string;
  ready: boolean;
}

export interface CloudFaults {
  /** Chance that an upload breaks off, and then leaves its image behind. */
  readonly uploadFails: number;
  /** Chance that an upload succeeds but its answer is lost. */
  readonly answerLost: number;
  readonly deleteFails: number;
  readonly listFails: number;
  /** Chance that a call never ends. */
  readonly hangs: number;
  /** Chance that an upload receives all its data and never ends. */
  readonly neverAnswers: number;
  /** Chance per image that a list lacks it; the lists of the next minutes contain it. */
  readonly listLacks: number;
  /** Chance that a list is empty. */
  readonly listEmpty: number;
}

export const NO_FAULTS: CloudFaults = {
  uploadFails: 0,
  answerLost: 0,
  deleteFails: 0,
  listFails: 0,
  hangs: 0,
  neverAnswers: 0,
  listLacks: 0,
  listEmpty: 0,
};

/** Callbacks for calls of the cloud, called right before they take effect. */
export interface CloudObserver {
  deleting?(image: CloudImage): void;
  listing?(): void;
}

/** Longest time (ms) between two reports of an upload's progress. */
const REPORT_MS = 60_000;

/** Minimum time (ms) between two lists that lack the same image. */
const LACKING_MS = 900_000;

export class ImageCloud {
  readonly images = new Map<string, CloudImage>();
  /** Started uploads, by provider. */
  readonly startedUploads: string[] = [];
  faults: CloudFaults = NO_FAULTS;
  /** Faults by provider; they override `faults`. */
  readonly faultsOf = new Map<string, CloudFaults>();
  uploadMs: readonly [least: number, greatest: number] = [1000, 1000];
  observer: CloudObserver = {};
  private made = 0;
  private readonly lacked = new Map<string, number>();
  /** Files being sent, each with the clock of its sender. */
  private readonly sending = new Set<{ readonly file: string; readonly clock: Clock }>();

  constructor(private readonly random: RandomSource) {}

  ofProvider(provider: string): readonly CloudImage[] {
    return [...this.images.values()].filter((image) => image.provider === provider);
  }

  isSending(file: string): boolean {
    return [...this.sending].some((each) => each.file === file);
  }

  /** Stops the transfers of a killed process, which is identified by its clock. */
  forget(clock: Clock): void {
    for (const each of this.sending) if (each.clock === clock) this.sending.delete(each);
  }

  manager(provider: string, clock: Clock): ImageManager {
    return {
      uploadImage: (upload) => this.upload(provider, upload, clock),
      deleteImage: (id, call) => this.delete(provider, id, call, clock),
      listImages: (call) => this.list(provider, call, clock),
    };
  }

  private happens(provider: string, fault: keyof CloudFaults): boolean {
    return this.random.next() < (this.faultsOf.get(provider) ?? this.faults)[fault];
  }

  private async pass(provider: string, clock: Clock, { signal }: Call): Promise<void> {
    if (this.happens(provider, 'hangs')) await new Promise(() => undefined);
    await sleep(clock, 10, signal);
  }

  private async upload(provider: string, upload: ImageUploadRequest, clock: Clock): Promise<ExternalId> {
    this.startedUploads.push(provider);
    const sending = { file: upload.file, clock };
    this.sending.add(sending);
    // An aborted transfer ends even if the driver does not notice.
    upload.signal.addEventListener('abort', () => this.sending.delete(sending), { once: true });
    try {
      return await this.receive(provider, upload, clock);
    } finally {
      this.sending.delete(sending);
    }
  }

  private async receive(provider: string, upload: ImageUploadRequest, clock: Clock): Promise<ExternalId> {
    await this.pass(provider, clock, upload);
    this.made += 1;
    const { externalName: name, tags, metadata, file } = upload;
    const image: CloudImage = { id: `image-${this.made}`, name, provider, tags, metadata, file, ready: false };
    this.images.set(image.id, image);
    const [least, greatest] = this.uploadMs;
    const durationMs = least + this.random.next() * (greatest - least);
    const steps = Math.max(4, Math.ceil(durationMs / REPORT_MS));
    for (let step = 1; step <= steps; step += 1) {
      await sleep(clock, Math.round(durationMs / steps), upload.signal);
      upload.progress(step, steps);
      if (this.happens(provider, 'uploadFails')) {
        if (this.random.next() < 0.5) this.images.delete(image.id);
        throw new TransientError('the connection was cut');
      }
    }
    if (this.happens(provider, 'neverAnswers')) await new Promise(() => undefined);
    image.ready = true;
    if (this.happens(provider, 'answerLost')) throw new TransientError('the answer got lost');
    return image.id;
  }

  private async delete(provider: string, id: ExternalId, call: Call, clock: Clock): Promise<void> {
    await this.pass(provider, clock, call);
    if (this.happens(provider, 'deleteFails')) throw new TransientError('the cloud has a bad day');
    if (typeof id !== 'string') throw new NotFoundError('no id of ours');
    const image = this.images.get(id);
    if (image === undefined) return;
    this.observer.deleting?.(image);
    this.images.delete(id);
  }

  /** Returns true if a list may lack the image; after it did, the lists of the next minutes contain it. */
  private isLacking(provider: string, id: string, clock: Clock): boolean {
    if (!this.happens(provider, 'listLacks')) return false;
    const now = clock.monotonic();
    if (now - (this.lacked.get(id) ?? -Infinity) < LACKING_MS) return false;
    this.lacked.set(id, now);
    return true;
  }

  private async list(provider: string, call: Call, clock: Clock): Promise<readonly ListedImage[]> {
    await this.pass(provider, clock, call);
    this.observer.listing?.();
    if (this.happens(provider, 'listFails')) throw new TransientError('the cloud has a bad day');
    if (this.happens(provider, 'listEmpty')) return [];
    return [...this.images.values()]
      .filter(({ id }) => !this.isLacking(provider, id, clock))
      .map(({ id, name, tags, ready }) => ({ externalId: id, name, tags, ready }));
  }
}

/** Returns a driver whose providers manage only images. */
export function imageDriver(makeManager: (provider: string) => ImageManager): Driver {
  return {
    name: 'images',
    schema: {},
    getProviderConfig: () => {
      throw new Error('the configuration is made by the test');
    },
    getProvider: (config) => imageProvider(config, makeManager(config.name)),
  };
}

function imageProvider(config: ProviderConfig, images: ImageManager): Provider {
  const noNodes = (): never => {
    throw new Error('this provider has no nodes');
  };
  return {
    config,
    images,
    start: () => Promise.resolve(),
    stop: () => undefined,
    join: () => Promise.resolve(),
    labelReady: () => ({ ready: false, reason: 'this provider has no nodes' }),
    getRequestHandler: noNodes,
    cleanupNode: noNodes,
    waitForNodeCleanup: noNodes,
    cleanupLeakedResources: () => Promise.resolve(),
    listNodes: () => Promise.resolve([]),
  };
}

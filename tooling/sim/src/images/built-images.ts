/** The images of a run: what is wrong with each build, the files of builders, and what nodes of an image do. */

import { sleep, type Clock, type RandomSource } from '@nodepool/core';
import {
  BuildFailedError,
  type BootTest,
  type BootTester,
  type DiskImageCreator,
  type DiskImageFile,
  type DiskImageFiles,
  type DiskImageJob,
  type ImageSources,
} from '@nodepool/builder';
import type { ExampleCloud } from '@nodepool/driver-example';
import type { BuildRef } from '@nodepool/store';
import { between, weighted } from '../chance.js';
import { partsOfUpload } from './upload-path.js';

/** `no-boot`: it never boots; `no-login`: it boots under QEMU, but not in the cloud; `bad-jobs`: jobs fail on it. */
export type ImageKind = 'good' | 'no-boot' | 'no-login' | 'bad-jobs';

const KINDS: readonly (readonly [weight: number, kind: ImageKind])[] = [
  [5, 'good'],
  [1, 'no-boot'],
  [2, 'no-login'],
  [2, 'bad-jobs'],
];

/** Share of the jobs that fail on an image without and with a fault. */
const JOB_FAILURES = { usual: 0.05, bad: 0.8 } as const;
/** Duration of a build and of a boot test (ms). */
const BUILD_MS = { least: 5000, greatest: 30_000 } as const;
const BOOT_MS = 5000;
const FREE_BYTES = 2 ** 40;
const IMAGE_BYTES = 1000;

export class BuiltImages {
  /** By id of the build. */
  private readonly kinds = new Map<string, ImageKind>();
  /** Ids of builds by the id of their images in the cloud. */
  private readonly uploaded = new Map<string, string>();
  /** If true, all further builds are good. */
  onlyGood = false;

  constructor(
    private readonly cloud: ExampleCloud,
    private readonly random: RandomSource,
  ) {}

  /** Draws what is wrong with a new build. */
  made(build: string): void {
    const kind = weighted(this.random, KINDS) ?? 'good';
    this.kinds.set(build, this.onlyGood ? 'good' : kind);
  }

  /** Notes that an image in the cloud is of this build. */
  created(image: string, build: string): void {
    this.uploaded.set(image, build);
  }

  kindOf(build: string): ImageKind {
    return this.kinds.get(build) ?? 'good';
  }

  /** Returns true if the instance with this address never answers because of its image. */
  hasNoLogin(host: string): boolean {
    const instance = this.cloud.existingInstances().find(({ publicIpv4 }) => publicIpv4 === host);
    const kind = this.kindOf(this.uploaded.get(instance?.image ?? '') ?? '');
    return kind === 'no-login' || kind === 'no-boot';
  }

  /** Returns the result of a job on a node that was launched from an upload. */
  jobResult(imageId: string, random: RandomSource): 'success' | 'failure' {
    const isBad = this.kindOf(partsOfUpload(imageId)?.build ?? '') === 'bad-jobs';
    return random.next() < (isBad ? JOB_FAILURES.bad : JOB_FAILURES.usual) ? 'failure' : 'success';
  }
}

/** The disk of a machine, which outlives its builder. */
export class MemoryDisk implements DiskImageFiles {
  private readonly files = new Map<string, DiskImageFile & BuildRef>();
  private installationId: string | undefined;

  write(build: BuildRef, format: string): void {
    const path = `${this.basePath(build)}.${format}`;
    this.files.set(path, { ...build, format, path, bytes: IMAGE_BYTES, usedBytes: IMAGE_BYTES });
  }

  basePath({ image, id }: BuildRef): string {
    return `/images/${image}-${id}`;
  }

  list(): Promise<readonly BuildRef[]> {
    return Promise.resolve([...this.files.values()].map(({ image, id }) => ({ image, id })));
  }

  find(build: BuildRef, format: string): Promise<DiskImageFile | undefined> {
    return Promise.resolve(this.files.get(`${this.basePath(build)}.${format}`));
  }

  async complete(build: BuildRef, formats: readonly string[]): Promise<readonly DiskImageFile[]> {
    const files = await Promise.all(formats.map((format) => this.find(build, format)));
    return files.map((file) => {
      if (file === undefined) throw new BuildFailedError('incomplete', 'a file is missing');
      return file;
    });
  }

  checksums(): Promise<{ readonly md5: null; readonly sha256: null }> {
    return Promise.resolve({ md5: null, sha256: null });
  }

  remove(build: BuildRef, keep: readonly string[] = []): Promise<void> {
    for (const [path, { image, id, format }] of this.files) {
      if (image === build.image && id === build.id && !keep.includes(format)) this.files.delete(path);
    }
    return Promise.resolve();
  }

  usedBytes(): Promise<number> {
    return Promise.resolve(IMAGE_BYTES);
  }

  freeBytes(): Promise<number> {
    return Promise.resolve(FREE_BYTES);
  }

  installation(): Promise<string | undefined> {
    return Promise.resolve(this.installationId);
  }

  setInstallation(id: string): Promise<void> {
    this.installationId = id;
    return Promise.resolve();
  }
}

/** A `disk-image-create` without a process. */
export function scriptedCreator(
  images: BuiltImages,
  disk: MemoryDisk,
  clock: Clock,
  random: RandomSource,
): DiskImageCreator {
  return {
    create: async ({ image, build, args, signal }: DiskImageJob) => {
      await sleep(clock, between(random, BUILD_MS.least, BUILD_MS.greatest), signal);
      images.made(build);
      const formats = (args[args.indexOf('-t') + 1] ?? '').split(',');
      for (const format of formats) disk.write({ image, id: build }, format);
    },
    logFile: ({ image, id }) => `/logs/${image}-${id}.log`,
    leftovers: () => Promise.resolve([]),
    cleanUp: () => Promise.resolve(),
  };
}

export function scriptedBootTester(images: BuiltImages, clock: Clock): BootTester {
  return {
    test: async ({ build, signal }: BootTest) => {
      await sleep(clock, BOOT_MS, signal);
      if (images.kindOf(build.id) === 'no-boot') {
        throw new BuildFailedError('boot-test', 'the build failed its boot test: no login');
      }
    },
  };
}

/** No image of the site has a source. */
export const NO_SOURCES: ImageSources = {
  identity: () => Promise.resolve(undefined),
  fetch: () => Promise.reject(new Error('no image of the simulated site has a source')),
  leftovers: () => Promise.resolve([]),
  remove: () => Promise.resolve(),
};

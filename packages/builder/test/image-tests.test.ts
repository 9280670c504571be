/** Tests of builds and uploads that are tested before they are used. */

import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import {
  advanceReview,
  type BootTestConfig,
  type ImageTests,
  type ImageUpload,
  type ReviewEvent,
} from '@nodepool/core';
import type { SourceLeftover } from '../src/index.js';
import { World, type Site } from './support/world.js';

const BOOT_TEST: BootTestConfig = {
  timeoutMs: 60_000,
  memory: 512,
  cpus: 1,
  kvm: true,
  command: undefined,
  commandTimeoutMs: 60_000,
};
const TESTS: ImageTests = {
  launchTest: { command: undefined, timeoutMs: 60_000, identity: undefined },
  canary: undefined,
};

let world: World;
beforeEach(() => {
  world = new World();
});
afterEach(async () => {
  expect(await world.end()).toEqual([]);
});

function site(image: Site['images'][string] = {}, tests?: ImageTests): Site {
  return {
    images: { debian: { rebuildAgeMs: 3_600_000, ...image } },
    providers: { one: { images: ['debian'], ...(tests === undefined ? {} : { tests }) } },
  };
}

describe('a boot test', () => {
  it('is passed before the build is ready, and is recorded', async () => {
    const { bootTester } = await world.builder(site({ bootTest: BOOT_TEST }));
    await world.until('a build is uploaded', () => world.readyUploads('debian', 'one') === 1);
    const [build] = world.builds('debian');
    expect(build).toMatchObject({ state: 'ready', boot_tested: true });
    expect(bootTester.tested).toEqual([build?.id]);
  });

  it('that fails rejects the build, with the reason; nothing is uploaded and the next build is tested', async () => {
    const { bootTester, store, machine } = await world.builder(site({ bootTest: BOOT_TEST }));
    bootTester.passes = () => false;
    await world.until('the build has failed', () => store.images.lastBuildFailure('debian') !== undefined);
    expect(store.images.lastBuildFailure('debian')).toMatchObject({
      reason: 'boot-test',
      message: 'the build failed its boot test: no login',
    });
    expect(world.cloud.startedUploads).toEqual([]);
    bootTester.passes = () => true;
    await world.until('a build is uploaded', () => world.readyUploads('debian', 'one') === 1);
    await world.until('only the files of the good build are left', () => machine.disk.files.size === 1);
  });

  it('that is interrupted by the death of the builder leaves no ready build', async () => {
    const first = await world.builder(site({ bootTest: BOOT_TEST }));
    first.bootTester.durationMs = 10_000_000;
    await world.until('the test runs', () => first.machine.disk.files.size === 1);
    await world.after(60_000);
    first.builder.abort();
    await first.stop();
    expect(world.readyBuilds('debian')).toBe(0);
    await world.builder(site({ bootTest: BOOT_TEST }), first.machine);
    await world.until('a build is uploaded', () => world.readyUploads('debian', 'one') === 1);
    expect(world.builds('debian').find(({ state }) => state === 'ready')).toMatchObject({ boot_tested: true });
  });
});

describe('an image that another program makes', () => {
  const source = { url: undefined, path: '/srv/debian.qcow2', sha256: undefined, format: undefined, maxBytes: 2 ** 30 };

  it('is built when its file appears and when it is replaced, and not by age', async () => {
    const { sources, dib } = await world.builder(site({ source }));
    await world.after(120_000);
    sources.present.set('/srv/debian.qcow2', 'first');
    await world.until('it is uploaded', () => world.readyUploads('debian', 'one') === 1);
    await world.after(3 * 3_600_000);
    expect(sources.fetched).toEqual(['first']);
    sources.present.set('/srv/debian.qcow2', 'second');
    await world.until('it is uploaded again', () => world.readyUploads('debian', 'one') === 2);
    expect(sources.fetched).toEqual(['first', 'second']);
    expect(world.builds('debian').map((build) => build['source'])).toEqual(['first', 'second']);
    expect(dib.jobs).toEqual([]);
  });

  it('is not built again by another process that finds the same file', async () => {
    const first = await world.builder(site({ source }));
    first.sources.present.set('/srv/debian.qcow2', 'first');
    await world.until('it is uploaded', () => world.readyUploads('debian', 'one') === 1);
    await first.stop();
    const second = await world.builder(site({ source }), first.machine);
    second.sources.present.set('/srv/debian.qcow2', 'first');
    await world.after(600_000);
    expect(second.sources.fetched).toEqual([]);
  });
});

describe('temporary files of sources', () => {
  const source = { url: 'https://example.org/a.raw', path: undefined, sha256: 'a', format: undefined, maxBytes: 1 };

  it('are deleted if no build needs them; a download that can be continued stays for a day', async () => {
    const machine = world.machine();
    const { sources, dib } = await world.builder(
      { images: { ...site({ source }).images, fedora: { formats: ['raw'] } }, providers: {} },
      machine,
    );
    dib.durationMs = () => 7_000_000;
    const changedMs = world.clock.now();
    const left = (image: string, isResumable: boolean): SourceLeftover => ({
      ...{ image, isResumable, changedMs },
      path: `/images/.source-${image}.${isResumable ? 'part' : 'image'}`,
    });
    // An image with a source, one that is being built, one with another source, and one of a similar name.
    sources.left = [left('debian', true), left('debian', false), left('fedora', false), left('debian-old', true)];
    const names = (): string[] => sources.left.map(({ path }) => path.slice('/images/'.length));
    await world.until('fedora is being built', () => dib.jobs.length > 0);
    await world.after(1_800_000);
    expect(names()).toEqual(['.source-debian.part', '.source-fedora.image']);
    await world.after(86_400_000);
    expect(names()).not.toContain('.source-debian.part');
  });
});

describe('uploads with reviews', () => {
  /** Moves the newest upload to another stage, as a launcher or an operator does. */
  async function advance(event: ReviewEvent, upload: ImageUpload): Promise<void> {
    const store = await world.operator();
    const { review = null, state_time: since } = upload;
    const change = { since: world.clock.now() / 1000, by: 'ada', reason: 'because' };
    const next = advanceReview({ review: review ?? undefined, since }, event, change);
    const handle = await world.during(store.images.tryLockUpload(upload, { change: { review: next ?? null } }));
    await world.during(handle!.lock.release());
  }

  async function pin(upload: ImageUpload): Promise<void> {
    const store = await world.operator();
    const { review } = upload;
    if (review === undefined || review === null) throw new Error('the upload has no review');
    const pinned = { by: 'ada', since: world.clock.now() / 1000 };
    const handle = await world.during(
      store.images.tryLockUpload(upload, { change: { review: { ...review, pinned } } }),
    );
    await world.during(handle!.lock.release());
  }

  async function newest(): Promise<ImageUpload> {
    const { images } = await world.operator();
    await world.during(images.syncCache());
    return [...images.uploads({ image: 'debian', provider: 'one' })].at(-1)!;
  }

  it('begin their review if the configuration demands a test, and have none otherwise', async () => {
    const { apply } = await world.builder(site());
    await world.until('a build is uploaded', () => world.readyUploads('debian', 'one') === 1);
    expect(world.uploads('debian', 'one')[0]).not.toHaveProperty('review');
    apply(site({}, TESTS));
    await world.until('another build is uploaded', () => world.readyUploads('debian', 'one') === 2);
    expect(world.uploads('debian', 'one')[1]).toMatchObject({ review: { stage: 'uploaded' } });
  });

  it('are kept if they are in service or next in line, however many newer ones there are', async () => {
    await world.builder(site({}, TESTS));
    const promoted: string[] = [];
    for (let count = 1; count <= 2; count += 1) {
      await world.until('a build is uploaded', () => world.uploads('debian', 'one').length === count);
      await world.until('it is ready', () => world.readyUploads('debian', 'one') === count);
      promoted.push((await newest()).build);
      await advance('promote', await newest());
    }
    await world.after(6 * 3_600_000);
    const uploads = world.uploads('debian', 'one');
    expect(uploads.filter(({ build }) => promoted.includes(build))).toHaveLength(2);
    // The newest is the candidate; those before were never judged, and are superseded.
    expect(uploads).toHaveLength(3);
  });

  it('are kept as long as they are pinned, also if another one was pinned later', async () => {
    await world.builder(site({}, TESTS));
    const promoted: string[] = [];
    for (let count = 1; count <= 4; count += 1) {
      await world.until('a build is uploaded', () => world.uploads('debian', 'one').length === count);
      await world.until('it is ready', () => world.readyUploads('debian', 'one') === count);
      const upload = await newest();
      promoted.push(upload.build);
      await advance('promote', upload);
      if (count <= 2) await pin(await newest());
    }
    await world.after(6 * 3_600_000);
    const uploads = world.uploads('debian', 'one').map(({ build }) => build);
    expect(uploads).toEqual(expect.arrayContaining(promoted));
  });

  it('are tested without files with delete-after-upload; a rejected one is not uploaded or built again for them', async () => {
    const { machine, dib } = await world.builder(site({ rebuildAgeMs: 86_400_000, deleteAfterUpload: true }, TESTS));
    await world.until('a build is uploaded', () => world.readyUploads('debian', 'one') === 1);
    await world.after(600_000);
    expect(machine.disk.files.size).toBe(0);
    expect((await newest()).review?.stage).toBe('uploaded');
    await advance('reject', await newest());
    await world.after(6 * 3_600_000);
    expect([dib.jobs.length, world.cloud.startedUploads.length]).toEqual([1, 1]);
    expect((await newest()).review?.stage).toBe('rejected');
    await world.after(24 * 3_600_000);
    await world.until('the next build is uploaded', () => world.readyUploads('debian', 'one') === 1);
    expect((await newest()).review?.stage).toBe('uploaded');
  });

  it('keep a rejected build from being uploaded again, and are deleted once there is a newer build', async () => {
    await world.builder(site({}, TESTS));
    await world.until('a build is uploaded', () => world.readyUploads('debian', 'one') === 1);
    await advance('promote', await newest());
    await world.until('another build is uploaded', () => world.readyUploads('debian', 'one') === 2);
    const rejected = await newest();
    await advance('reject', rejected);
    const started = world.cloud.startedUploads.length;
    await world.after(1_800_000);
    expect(world.cloud.startedUploads).toHaveLength(started);
    await world.until('a newer build is uploaded', () => world.cloud.startedUploads.length > started);
    await world.until('the rejected upload is deleted', () =>
      world.uploads('debian', 'one').every(({ build }) => build !== rejected.build),
    );
  });
});

/** Images that no longer exist in their clouds. */

import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { NO_FAULTS } from './support/image-cloud.js';
import { World, type Site, type StoredRecord } from './support/world.js';

const MINUTE = 60_000;
const HOUR = 3_600_000;
const SITE: Site = { images: { debian: {} }, providers: { one: { images: ['debian'] }, two: { images: ['debian'] } } };

let world: World;
beforeEach(() => {
  world = new World();
});
afterEach(async () => {
  expect(await world.end()).toEqual([]);
});

const newest = (provider: string): StoredRecord | undefined => world.uploads('debian', provider).at(-1);

/** Deletes an image in the cloud, as an account owner can. */
function deleteInCloud(upload: StoredRecord | undefined): void {
  expect(world.cloud.images.delete(String(upload?.['external_id']))).toBe(true);
}

describe('an image that is missing in its cloud', () => {
  it('is uploaded again, and its upload is deleted once the new one is ready', async () => {
    const { dib } = await world.builder(SITE);
    await world.until('it is uploaded', () => newest('one')?.['listed'] === true && newest('two')?.['listed'] === true);
    const lost = newest('one');
    deleteInCloud(lost);
    await world.after(20 * MINUTE);
    expect(world.uploads('debian', 'one')).toMatchObject([{ state: 'ready', build: lost?.build }]);
    expect(newest('one')?.id).not.toBe(lost?.id);
    expect(world.cloud.ofProvider('one').map(({ id }) => id)).toEqual([newest('one')?.['external_id']]);
    expect(world.cloud.startedUploads.filter((provider) => provider === 'two')).toHaveLength(1);
    expect(dib.jobs).toHaveLength(1);
  });

  it('leaves the second newest for nodes meanwhile', async () => {
    await world.builder(SITE);
    const { images } = await world.operator();
    await world.until('it is uploaded', () => newest('one')?.['listed'] === true);
    const older = newest('one');
    await world.during(images.requestBuild('debian'));
    await world.until('a newer one is uploaded', () => newest('one')?.build !== older?.build);
    await world.until('it is listed', () => newest('one')?.['listed'] === true);
    expect(images.choose('debian', 'one')?.upload.build).not.toBe(older?.build);
    world.cloud.faults = { ...NO_FAULTS, uploadFails: 1 };
    deleteInCloud(newest('one'));
    await world.after(HOUR);
    expect(images.choose('debian', 'one')?.upload.build).toBe(older?.build);
    world.cloud.faults = NO_FAULTS;
    await world.after(HOUR);
    expect(images.choose('debian', 'one')?.upload.build).not.toBe(older?.build);
  });

  it('is not one of the uploads that are kept, so that the older one is kept', async () => {
    await world.builder({ ...SITE, providers: { one: { images: ['debian'] } } });
    const { images } = await world.operator();
    const build = async (): Promise<StoredRecord | undefined> => {
      const before = newest('one')?.build;
      await world.during(images.requestBuild('debian'));
      await world.until('the build is listed', () => {
        const latest = newest('one');
        return latest?.build !== before && latest?.['listed'] === true;
      });
      return newest('one');
    };
    await world.until('it is uploaded', () => newest('one')?.['listed'] === true);
    const older = newest('one');
    const lost = await build();
    world.cloud.faults = { ...NO_FAULTS, uploadFails: 1 };
    deleteInCloud(lost);
    await world.until('it is missing', () => world.uploads('debian', 'one').some(({ listed }) => listed === false));
    const builds = world.builds('debian').length;
    await world.during(images.requestBuild('debian'));
    await world.until('it is built', () => world.builds('debian').length > builds);
    await world.after(MINUTE);
    world.cloud.faults = NO_FAULTS;
    await world.after(HOUR);
    expect(world.uploads('debian', 'one').map((upload) => upload.build)).toEqual([older?.build, newest('one')?.build]);
    expect(newest('one')?.build).not.toBe(lost?.build);
  });

  it('is rebuilt if its file is missing too', async () => {
    const { dib } = await world.builder({ ...SITE, images: { debian: { deleteAfterUpload: true } } });
    await world.until('it is uploaded', () => newest('one')?.['listed'] === true);
    await world.after(MINUTE);
    const lost = newest('one');
    deleteInCloud(lost);
    await world.after(HOUR);
    expect(dib.jobs).toHaveLength(2);
    expect(newest('one')).toMatchObject({ state: 'ready', build: dib.jobs[1]?.build });
    expect(world.paths().some((path) => path.endsWith('/request-build'))).toBe(false);
  });

  it('is rebuilt if its file was missing for another provider before', async () => {
    const images = { debian: { deleteAfterUpload: true } };
    const { dib, apply } = await world.builder({ ...SITE, images });
    await world.until('it is uploaded', () => newest('one')?.['listed'] === true && newest('two')?.['listed'] === true);
    await world.after(MINUTE);
    apply({ images, providers: { ...SITE.providers, three: { images: ['debian'] } } });
    await world.after(MINUTE);
    deleteInCloud(newest('one'));
    await world.after(HOUR);
    expect(dib.jobs.length).toBe(2);
    expect(newest('one')).toMatchObject({ state: 'ready', build: dib.jobs[1]?.build });
  });

  it('is detected by the next builder on the machine', async () => {
    const { stop, machine } = await world.builder(SITE);
    await world.until('it is uploaded', () => newest('one')?.['listed'] === true);
    const lost = newest('one');
    await stop();
    deleteInCloud(lost);
    await world.builder(SITE, machine);
    await world.after(20 * MINUTE);
    expect(newest('one')?.id).not.toBe(lost?.id);
    expect(world.cloud.ofProvider('one')).toHaveLength(1);
  });
});

describe('an image', () => {
  it('that one list lacks remains in service', async () => {
    await world.builder(SITE);
    await world.until('it is uploaded', () => newest('one')?.['listed'] === true && newest('two')?.['listed'] === true);
    const ids = [newest('one')?.id, newest('two')?.id];
    let lists = 0;
    world.cloud.observer = {
      listing: () => {
        lists += 1;
        world.cloud.faults = lists <= 2 ? { ...NO_FAULTS, listEmpty: 1 } : NO_FAULTS;
      },
    };
    await world.after(2 * HOUR);
    expect(lists).toBeGreaterThan(4);
    expect([newest('one')?.id, newest('two')?.id]).toEqual(ids);
    expect(world.cloud.startedUploads).toHaveLength(2);
  });

  it('that the cloud never listed remains in service, because the list may not support it', async () => {
    world.cloud.faults = { ...NO_FAULTS, listEmpty: 1 };
    await world.builder(SITE);
    await world.until('it is uploaded', () => world.readyUploads('debian', 'one') === 1);
    await world.after(6 * HOUR);
    expect(world.cloud.startedUploads).toHaveLength(2);
    expect(newest('one')).toMatchObject({ state: 'ready' });
    expect(newest('one')).not.toHaveProperty('listed');
  });

  it('that is listed again after it was missing returns to service', async () => {
    await world.builder({ ...SITE, providers: { one: { images: ['debian'] } } });
    await world.until('it is uploaded', () => newest('one')?.['listed'] === true);
    const { id } = newest('one') ?? {};
    world.cloud.faults = { ...NO_FAULTS, listEmpty: 1, uploadFails: 1 };
    await world.until(
      'it is missing',
      () => newest('one')?.['listed'] === false || world.cloud.startedUploads.length > 1,
    );
    world.cloud.faults = { ...NO_FAULTS, uploadFails: 1 };
    await world.after(2 * HOUR);
    const { images } = await world.operator();
    expect(images.choose('debian', 'one')?.upload).toMatchObject({ id, listed: true });
  });

  it('that a launcher marked, and that is listed, returns to service if its builder is gone, too', async () => {
    const site = { ...SITE, providers: { one: { images: ['debian'] } } };
    const { stop } = await world.builder(site);
    await world.until('it is uploaded', () => newest('one')?.['listed'] === true);
    await stop();
    const { images } = await world.operator();
    const upload = images.choose('debian', 'one')!.upload;
    const marked = await world.during(images.tryLockUpload(upload, { change: { listed: false } }));
    await world.during(marked!.lock.release());
    expect(images.choose('debian', 'one')?.upload).toBeUndefined();
    await world.builder(site);
    await world.after(HOUR);
    expect(images.choose('debian', 'one')?.upload).toMatchObject({ id: upload.id, listed: true });
  });
});

/** Objects that cleanup deletes, and objects that it keeps. */

import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { NO_FAULTS } from './support/image-cloud.js';
import { World, type RunningBuilder, type Site } from './support/world.js';

const MINUTE = 60_000;
const HOUR = 3_600_000;

let world: World;
beforeEach(() => {
  world = new World();
});
afterEach(async () => {
  expect(await world.end()).toEqual([]);
});

const SITE: Site = {
  images: { debian: {} },
  providers: { one: { images: ['debian'] }, two: { images: ['debian'] } },
};

const WITHOUT_ONE: Site = { ...SITE, providers: { one: { images: [] }, two: { images: ['debian'] } } };

/** Starts a builder that builds and uploads `count` times. */
async function builder(count: number, site: Site = SITE): Promise<RunningBuilder> {
  const running = await world.builder(site);
  const { images } = await world.operator();
  for (let built = 1; built <= count; built += 1) {
    await world.until('it is built', () => running.dib.jobs.length === built && !world.paths().some(isContender));
    for (const [provider, { images: listed }] of Object.entries(site.providers)) {
      if (!listed.includes('debian')) continue;
      const id = running.dib.jobs.at(-1)?.build;
      await world.until(`it is uploaded to ${provider}`, () =>
        world.uploads('debian', provider).some(({ build, state }) => build === id && state === 'ready'),
      );
    }
    if (built < count) await world.during(images.requestBuild('debian'));
  }
  await world.after(10 * MINUTE);
  return running;
}

const isContender = (path: string): boolean => path.includes('__lock__');

/** Starts a builder whose builds fail, and waits until the record of the first one is deleted. */
async function failingBuilder(): Promise<RunningBuilder> {
  const running = await world.builder({ images: { debian: {} }, providers: { one: { images: ['debian'] } } });
  running.dib.ending = () => 'fails';
  await world.until('the first build has failed', () => imagePaths().some((path) => path.endsWith('/last-failure')));
  await world.until('its record is deleted', () => world.builds('debian').length === 0);
  return running;
}

const imagePaths = (): string[] => world.paths().filter((path) => path.startsWith('/nodepool/images/'));

const idsOnDisk = ({ machine }: RunningBuilder): string[] =>
  [...new Set([...machine.disk.files.values()].map(({ id }) => id))].sort();

describe('the cleanup of an image', () => {
  it('keeps the two newest builds and uploads per provider with their files', async () => {
    const running = await builder(4);
    const builds = world.builds('debian').map(({ id }) => id);
    expect(builds).toEqual(running.dib.jobs.slice(-2).map(({ build }) => build));
    expect(idsOnDisk(running)).toEqual([...builds].sort());
    for (const provider of ['one', 'two']) {
      expect(world.uploads('debian', provider).map(({ build }) => build)).toEqual(builds);
      expect(world.cloud.ofProvider(provider)).toHaveLength(2);
    }
  });

  it('keeps the uploads of a provider while it has no newer ones', async () => {
    const running = await builder(2);
    world.cloud.faultsOf.set('one', { ...NO_FAULTS, uploadFails: 1 });
    const { images } = await world.operator();
    for (let more = 1; more <= 3; more += 1) {
      await world.during(images.requestBuild('debian'));
      await world.until('it is built', () => running.dib.jobs.length === 2 + more);
      await world.after(3 * HOUR);
    }
    const old = running.dib.jobs.slice(0, 2).map(({ build }) => build);
    expect(
      world
        .uploads('debian', 'one')
        .filter(({ state }) => state === 'ready')
        .map(({ build }) => build),
    ).toEqual(old);
    expect(world.uploads('debian', 'two').map(({ build }) => build)).not.toContain(old[0]);
    // Their records stay because of the uploads; their files are deleted.
    expect(world.builds('debian').filter(({ id }) => old.includes(id))).toMatchObject([
      { state: 'ready' },
      { state: 'ready' },
    ]);
    expect(idsOnDisk(running)).toEqual(
      running.dib.jobs
        .slice(-2)
        .map(({ build }) => build)
        .sort(),
    );
    world.cloud.faultsOf.clear();
    await world.until('the provider takes one', () =>
      world.uploads('debian', 'one').some(({ build }) => !old.includes(build)),
    );
    await world.after(2 * HOUR);
    const kept = [old[1], ...running.dib.jobs.slice(-2).map(({ build }) => build)];
    expect(new Set(world.builds('debian').map(({ id }) => id))).toEqual(new Set(kept));
  });

  it('deletes all uploads of a build that an operator deletes, including the newest', async () => {
    const running = await builder(2);
    const newest = running.dib.jobs.at(-1)?.build ?? '';
    running.apply({ ...SITE, images: { debian: { pause: true } } });
    const { images } = await world.operator();
    const locked = await world.during(
      images.tryLockBuild({ image: 'debian', id: newest }, { change: { state: 'deleting' } }),
    );
    if (locked !== undefined) await world.during(locked.release());
    await world.until('it is gone', () => world.builds('debian').every(({ id }) => id !== newest));
    expect(world.cloud.images.size).toBe(2);
    expect(idsOnDisk(running)).toEqual([running.dib.jobs[0]?.build]);
    expect(world.readyUploads('debian', 'one')).toBe(1);
  });

  it('deletes all builds that are no longer configured', async () => {
    const running = await builder(2);
    running.apply({ images: {}, providers: { one: { images: [] }, two: { images: [] } } });
    await world.until('all builds are gone', () => world.builds('debian').length === 0);
    expect(world.cloud.images.size).toBe(0);
    expect(idsOnDisk(running)).toEqual([]);
    await world.after(MINUTE);
    expect(imagePaths()).toEqual([]);
  });

  it('deletes the failure of the last build of an image that is no longer configured and has no build', async () => {
    const running = await failingBuilder();
    running.apply({ images: {}, providers: {} });
    await world.until('it is gone', () => imagePaths().length === 0);
  });

  it('keeps the failure of a build that another builder recorded, and marks of operators', async () => {
    const running = await failingBuilder();
    await world.builder({ images: {}, providers: {} });
    await world.after(HOUR);
    expect(imagePaths()).toContain('/nodepool/images/debian/last-failure');
    await world.during((await world.operator()).images.pause('debian'));
    running.apply({ images: {}, providers: {} });
    await world.after(HOUR);
    expect(imagePaths()).toEqual(expect.arrayContaining(['/nodepool/images/debian/pause']));
  });

  it('keeps the pause of an image that another builder has configured', async () => {
    const running = await builder(2);
    const { images } = await world.operator();
    await world.during(images.pause('debian'));
    await world.builder(SITE);
    running.apply({ images: {}, providers: { one: { images: [] }, two: { images: [] } } });
    await world.until('all builds are gone', () => world.builds('debian').length === 0);
    await world.after(HOUR);
    expect(world.paths()).toContain('/nodepool/images/debian/pause');
    expect(world.builds('debian')).toEqual([]);
  });

  it('includes an empty record that a contender for a lock of a deleted build left behind', async () => {
    const running = await builder(1);
    const { zooKeeper } = await world.operator();
    const path = `/nodepool/images/debian/builds/${'a'.repeat(32)}`;
    for (const below of ['', '/providers', '/providers/one', '/providers/one/images']) {
      await world.during(zooKeeper.create(path + below));
    }
    await world.after(MINUTE);
    expect(world.paths()).toContain(path);
    await world.until('it is gone', () => !world.paths().includes(path));
    expect(world.readyBuilds('debian')).toBe(1);
    expect(idsOnDisk(running)).toHaveLength(1);
  });

  it.each([
    ['a znode of another program', ['/notes']],
    ['an upload', ['/providers', '/providers/one', '/providers/one/images', '/providers/one/images/0000000001']],
  ])('does not include an empty record of a build with %s', async (_what, below) => {
    await builder(1);
    const { zooKeeper } = await world.operator();
    const path = `/nodepool/images/debian/builds/${'a'.repeat(32)}`;
    const paths = ['', ...below].map((end) => path + end);
    for (const each of paths) await world.during(zooKeeper.create(each));
    await world.after(10 * MINUTE);
    expect(world.paths()).toEqual(expect.arrayContaining(paths));
  });

  it('deletes nothing on a builder that has neither the image configured nor its files', async () => {
    await builder(2);
    await world.builder({ images: { other: {} }, providers: { one: { images: ['other'] } } });
    await world.after(3 * HOUR);
    expect(world.readyBuilds('debian')).toBe(2);
    expect(world.readyUploads('debian', 'one')).toBe(2);
  });

  it('deletes uploads to a provider that no longer lists the image, and keeps the others', async () => {
    const running = await builder(2);
    running.apply({ ...SITE, providers: { one: { images: [] }, two: { images: ['debian'] } } });
    await world.until('they are gone', () => world.uploads('debian', 'one').length === 0);
    expect(world.cloud.ofProvider('one')).toEqual([]);
    expect(world.readyUploads('debian', 'two')).toBe(2);
    expect(world.readyBuilds('debian')).toBe(2);
  });

  it('keeps the record of an upload while the cloud rejects its deletion', async () => {
    world.cloud.faults = { ...NO_FAULTS, deleteFails: 1 };
    await builder(3);
    await world.after(3 * HOUR);
    expect(world.uploads('debian', 'one').map(({ state }) => state)).toEqual(['ready', 'ready', 'deleting']);
    expect(world.cloud.ofProvider('one')).toHaveLength(3);
    world.cloud.faults = NO_FAULTS;
    await world.until('it is gone', () => world.uploads('debian', 'one').length === 2);
    expect(world.cloud.ofProvider('one')).toHaveLength(2);
  });

  it('is delayed only for the image’s own cloud when that hangs', async () => {
    const running = await builder(2);
    world.cloud.faultsOf.set('one', { ...NO_FAULTS, hangs: 1 });
    const { images } = await world.operator();
    await world.during(images.requestBuild('debian'));
    await world.until('it is built', () => running.dib.jobs.length === 3);
    await world.after(10 * MINUTE);
    expect(world.uploads('debian', 'two')).toHaveLength(2);
  });
});

describe('an upload in progress', () => {
  it.each<[string, (running: RunningBuilder) => Promise<void>]>([
    [
      'its provider does not list the image any more',
      (running) => {
        running.apply(WITHOUT_ONE);
        return Promise.resolve();
      },
    ],
    [
      'an operator deletes its build',
      async (running) => {
        running.apply({ ...SITE, images: { debian: { pause: true } } });
        const build = { image: 'debian', id: running.dib.jobs[0]?.build ?? '' };
        const { images } = await world.operator();
        const locked = await world.during(images.tryLockBuild(build, { change: { state: 'deleting' } }));
        await world.during(locked?.release() ?? Promise.resolve());
      },
    ],
  ])('is not deleted before its end although %s', async (_reason, change) => {
    world.cloud.uploadMs = [30 * MINUTE, 30 * MINUTE];
    const running = await world.builder(SITE);
    await world.until('the upload is in progress', () => world.cloud.startedUploads.includes('one'));
    await change(running);
    await world.after(20 * MINUTE);
    expect(world.uploads('debian', 'one')).toMatchObject([{ state: 'uploading' }]);
    await world.after(2 * HOUR);
    expect(world.uploads('debian', 'one')).toEqual([]);
    expect(world.cloud.ofProvider('one')).toEqual([]);
  });
});

describe('an interrupted upload', () => {
  it('keeps its record if one list lacks its image', async () => {
    world.cloud.uploadMs = [HOUR, HOUR];
    const { zk } = await world.builder({ ...SITE, providers: { one: { images: ['debian'] } } });
    await world.until('it is being uploaded', () => world.cloud.images.size === 1);
    const [left = ''] = world.cloud.images.keys();
    world.cloud.faults = { ...NO_FAULTS, listFails: 1 };
    world.server.expireSession(zk);
    await world.after(10 * MINUTE);
    world.cloud.faults = { ...NO_FAULTS, listLacks: 1 };
    await world.until('its image is gone', () => !world.cloud.images.has(left));
  });
});

describe('the builder, with delete-after-upload,', () => {
  const deleting = (keepFormats: readonly string[]): Site => ({
    ...SITE,
    images: { debian: { deleteAfterUpload: true, formats: ['raw'], keepFormats } },
  });

  it('deletes files once every provider has the image, except formats to keep', async () => {
    world.cloud.faultsOf.set('two', { ...NO_FAULTS, uploadFails: 1 });
    const running = await world.builder(deleting(['raw']));
    await world.until('it is uploaded to one', () => world.readyUploads('debian', 'one') === 1);
    await world.after(HOUR);
    expect([...running.machine.disk.files.values()].map(({ format }) => format)).toEqual(['qcow2', 'raw']);
    world.cloud.faultsOf.clear();
    await world.until('it is uploaded to two', () => world.readyUploads('debian', 'two') === 1);
    await world.after(MINUTE);
    expect([...running.machine.disk.files.values()].map(({ format }) => format)).toEqual(['raw']);
    await world.after(HOUR);
    expect(running.dib.jobs).toHaveLength(1);
  });

  it('deletes each format once all its providers have the image', async () => {
    world.cloud.faultsOf.set('two', { ...NO_FAULTS, uploadFails: 1 });
    const running = await world.builder({
      images: { debian: { deleteAfterUpload: true } },
      providers: {
        one: { images: ['debian'], format: 'vhd' },
        two: { images: ['debian'] },
        three: { images: ['debian'] },
      },
    });
    const formats = (): string[] => [...running.machine.disk.files.values()].map(({ format }) => format);
    await world.until('the image is built', () => world.readyBuilds('debian') === 1);
    expect(formats()).toEqual(['qcow2', 'vhd']);
    await world.until('it is uploaded to one and three', () =>
      ['one', 'three'].every((provider) => world.readyUploads('debian', provider) === 1),
    );
    await world.after(MINUTE);
    expect(formats()).toEqual(['qcow2']);
    world.cloud.faultsOf.clear();
    await world.until('it is uploaded to two', () => world.readyUploads('debian', 'two') === 1);
    await world.after(MINUTE);
    expect(formats()).toEqual([]);
  });

  it('keeps the files of an image that no provider lists', async () => {
    const running = await world.builder({
      images: { debian: { deleteAfterUpload: true, formats: ['raw'] } },
      providers: {},
    });
    await world.until('the image is built', () => world.readyBuilds('debian') === 1);
    await world.after(HOUR);
    expect(running.machine.disk.files.size).toBe(1);
  });
});

it('images that differ in one tag are kept when a failed upload is deleted', async () => {
  world.cloud.faultsOf.set('one', { ...NO_FAULTS, answerLost: 1 });
  await world.builder({ ...SITE, providers: { one: { images: ['debian'] } } });
  await world.until('an image exists whose id is not known', () => world.cloud.ofProvider('one').length === 1);
  const [image] = world.cloud.ofProvider('one');
  const { nodepool_installation: _installation, ...unmarked } = image!.tags;
  const { nodepool_image_format: _format, ...withoutFormat } = image!.tags;
  const others = [
    { ...image!.tags, nodepool_installation: 'production' },
    { ...image!.tags, nodepool_provider_name: 'elsewhere' },
    { ...image!.tags, nodepool_image_name: 'suse' },
    { ...image!.tags, nodepool_build_id: 'c'.repeat(32) },
    { ...image!.tags, nodepool_upload_id: '0000009999' },
    { ...image!.tags, nodepool_image_format: 'vhd' },
    { ...unmarked, nodepool_build_id: '0000000001' },
    { ...unmarked, nodepool_image_name: 'suse' },
    withoutFormat,
  ];
  others.forEach((tags, index) => {
    world.cloud.images.set(`other-${index}`, { ...image!, provider: 'others', id: `other-${index}`, tags });
  });
  await world.until('the upload is deleted', () => !world.cloud.images.has(image!.id));
  await world.after(10 * MINUTE);
  expect(world.cloud.ofProvider('others')).toHaveLength(others.length);
});

describe('after a builder has died', () => {
  it('its unfinished build is deleted by it after a restart', async () => {
    const { dib, zk, store, machine } = await world.builder(SITE);
    await world.until('it is being built', () => dib.jobs.length === 1);
    const id = dib.jobs[0]?.build ?? '';
    machine.disk.write({ image: 'debian', id }, 'qcow2');
    dib.create = () => new Promise(() => undefined);
    store.close();
    world.server.partition(zk, 'cut');
    const again = await world.builder(SITE, machine);
    again.dib.durationMs = () => HOUR;
    await world.until('it is built anew', () => again.dib.jobs.length === 1);
    await world.until('its remains are gone', () => world.builds('debian').length === 1);
    expect(world.builds('debian')).toMatchObject([{ state: 'building', id: again.dib.jobs[0]?.build }]);
    await world.until('it is built', () => world.readyBuilds('debian') === 1);
    expect(idsOnDisk(again)).toEqual([world.builds('debian')[0]?.id]);
    world.server.heal(zk);
  });

  it('records of its builds are deleted by other builders after an hour, and its files after its restart', async () => {
    const first = await builder(1);
    await first.stop();
    const [old] = idsOnDisk(first);
    await world.builder({ ...SITE, images: { debian: { rebuildAgeMs: HOUR } } });
    const isMarked = (): boolean => world.builds('debian').some(({ id, state }) => id === old && state === 'deleting');
    await world.until('there are newer ones', isMarked);
    await world.after(50 * MINUTE);
    expect(isMarked()).toBe(true);
    await world.until('its build is gone', () => world.builds('debian').every(({ id }) => id !== old));
    expect(idsOnDisk(first)).toEqual([old]);
    const back = await world.builder(SITE, first.machine);
    await world.until('its files are gone', () => idsOnDisk(back).length === 0);
  });
});

describe('files', () => {
  it.each<[string, (running: Awaited<ReturnType<typeof world.builder>>) => Promise<void>]>([
    ['belong to another installation', async ({ machine }) => void (machine.disk.installationId = 'another')],
    ['may belong to lost records', ({ store }) => store.suspensions.suspend(null, 'a test')],
  ])('without a record are kept while they %s', async (_why, prepare) => {
    const running = await world.builder({ images: {}, providers: {} });
    await world.during(prepare(running));
    const lost = { image: 'debian', id: 'c'.repeat(32) };
    running.machine.disk.write(lost, 'qcow2');
    await world.after(HOUR);
    expect(running.machine.disk.files.size).toBe(1);
    running.machine.disk.installationId = undefined;
    await world.during(running.store.suspensions.resume(null));
    await world.until('the files are deleted', () => running.machine.disk.files.size === 0);
    expect(running.machine.disk.installationId).toBe(running.store.installation.id);
  });

  it('without a record are deleted after some time; those of an unreadable record are kept', async () => {
    const machine = world.machine();
    const known = 'a'.repeat(32);
    machine.disk.write({ image: 'debian', id: known }, 'qcow2');
    machine.disk.write({ image: 'debian', id: 'b'.repeat(32) }, 'qcow2');
    const { zooKeeper } = await world.operator();
    await world.during(zooKeeper.create('/nodepool/images/debian', undefined));
    await world.during(zooKeeper.create('/nodepool/images/debian/builds', undefined));
    await world.during(
      zooKeeper.create(`/nodepool/images/debian/builds/${known}`, new TextEncoder().encode('{"state":')),
    );
    const running = await world.builder({ images: {}, providers: {} }, machine);
    // The first check is after ten minutes.
    await world.after(10.5 * MINUTE);
    expect(idsOnDisk(running)).toEqual([known, 'b'.repeat(32)].sort());
    await world.after(30 * MINUTE);
    expect(idsOnDisk(running)).toEqual([known]);
  });
});

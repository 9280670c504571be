/** Writes and cleanup of builds and uploads by a builder. */

import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { HeldLock, ZooKeeper } from '@nodepool/zookeeper';
import {
  LostOwnershipError,
  type BuildHandle,
  type BuildingLock,
  type Store,
  type UploadingLock,
} from '@nodepool/store';
import type { ImageBuildData, ImageUploadData } from '@nodepool/core';
import { Simulation, given } from '../simulation.js';

let simulation: Simulation;
let zooKeeper: ZooKeeper;
let store: Store;
let other: Store;

beforeEach(async () => {
  simulation = new Simulation();
  zooKeeper = simulation.client();
  store = await simulation.store(zooKeeper);
  other = await simulation.store();
});

afterEach(() => simulation.close());

const BUILD: ImageBuildData = {
  state: 'building',
  state_time: 1000,
  builder: 'host',
  builder_id: 'builder-1',
  formats: ['raw', 'qcow2'],
  username: null,
  python_path: null,
  shell_type: null,
};

const UPLOAD: ImageUploadData = {
  state: 'uploading',
  state_time: 2000,
  external_id: null,
  external_name: null,
  format: null,
  username: 'zuul',
  python_path: 'auto',
  shell_type: null,
};

const BUILDS = '/nodepool/images/debian/builds';
const PLACE = { image: 'debian', build: 'b1', provider: 'cloud' };
const UPLOADS = `${BUILDS}/b1/providers/cloud/images`;

async function building(of = store): Promise<BuildingLock> {
  return given(await simulation.run(of.images.tryLockBuilding('debian')));
}

/** Creates a ready build and waits until every store has it. */
async function readyBuild(id = 'b1'): Promise<void> {
  const lock = await building();
  const handle = await simulation.run(lock.create(BUILD, { id }));
  await simulation.run(handle.release({ state: 'ready' }));
  await simulation.settled();
}

async function uploading(of = store): Promise<UploadingLock> {
  return given(await simulation.run(of.images.tryLockUploading(PLACE)));
}

/** Creates a ready upload. Resolves with its id. */
async function readyUpload(): Promise<string> {
  const handle = await simulation.run((await uploading()).create(UPLOAD));
  await simulation.run(handle.release({ state: 'ready', external_id: 'image-1', format: 'qcow2' }));
  await simulation.settled();
  return handle.upload.id;
}

describe('a build', () => {
  it('is created under the lock of its image, in the format of other programs', async () => {
    const lock = await building();
    const handle = await simulation.run(lock.create(BUILD));
    const { id } = handle.build;
    expect(id).toMatch(/^[0-9a-f]{32}$/);
    expect(simulation.json(`${BUILDS}/${id}`)).toEqual({ ...BUILD, formats: 'qcow2,raw' });
    expect(simulation.paths(`${BUILDS}/lock/`)).toEqual([lock.lock.contender]);
    expect(store.images.build({ image: 'debian', id })).toEqual(handle.build);
    expect(store.images.isBuilding('debian')).toBe(true);

    await simulation.run(handle.release({ state: 'ready', username: 'zuul' }));
    expect(simulation.json(`${BUILDS}/${id}`)).toMatchObject({ state: 'ready', username: 'zuul' });
    expect(handle.build.state_time).toBeGreaterThan(BUILD.state_time);
    expect(simulation.contenders()).toEqual([]);
    expect(lock.lock.lost.aborted).toBe(true);
  });

  it('is created by one builder at a time', async () => {
    const lock = await building();
    await simulation.settled();
    expect(await simulation.run(other.images.tryLockBuilding('debian'))).toBeUndefined();
    await simulation.run(lock.release());
    await simulation.settled();
    await building(other);
  });

  it('is locked by one of two concurrent builders', async () => {
    const both = [store.images.tryLockBuilding('debian'), other.images.tryLockBuilding('debian')];
    const locks = await simulation.run(Promise.all(both));
    expect(locks.filter((lock) => lock !== undefined)).toHaveLength(1);
    expect(simulation.contenders()).toHaveLength(1);
  });

  it('preserves fields of other programs in its record', async () => {
    await simulation.put(`${BUILDS}/b1`, { state: 'ready', state_time: 1, formats: 'qcow2', theirs: [1, { a: 2 }] });
    const handle = given(await simulation.run(store.images.tryLockBuild({ image: 'debian', id: 'b1' })));
    await simulation.run(handle.release({ state: 'deleting' }));
    expect(simulation.json(`${BUILDS}/b1`)).toMatchObject({
      state: 'deleting',
      formats: 'qcow2',
      theirs: [1, { a: 2 }],
    });
  });

  it('records its failure beside its image, where other stores and the next failure find it', async () => {
    const path = '/nodepool/images/debian/last-failure';
    const failure = { time: 5, build: 'b1', builder: 'host', reason: 'exit', message: 'status 1', log: '/logs/b1.log' };
    const lock = await building();
    await simulation.run(lock.recordFailure({ ...failure, build: null, log: null }));
    const handle = await simulation.run(lock.create(BUILD, { id: 'b1' }));
    await simulation.run(handle.recordFailure(failure));
    await simulation.run(handle.release({ state: 'failed' }));
    await simulation.settled();
    expect(simulation.json(path)).toEqual(failure);
    expect([store, other].map(({ images }) => images.lastBuildFailure('debian'))).toEqual([failure, failure]);
    await simulation.run(store.zooKeeper.delete(path));
    await simulation.settled();
    expect(other.images.lastBuildFailure('debian')).toBeUndefined();
  });

  it('records no failure when its lock is lost', async () => {
    const handle = await simulation.run((await building()).create(BUILD));
    await simulation.run(simulation.other.delete(handle.lock.contender));
    const failure = { time: 5, build: null, builder: null, reason: 'exit', message: '', log: null };
    await expect(simulation.run(handle.recordFailure(failure))).rejects.toBeInstanceOf(LostOwnershipError);
    expect(simulation.paths('/nodepool/images/debian/last-failure')).toEqual([]);
  });

  it.each([true, false])('deletes the build request that it fulfils: %j', async (fulfilsRequest) => {
    await simulation.run(store.images.requestBuild('debian'));
    const handle = await simulation.run((await building()).create(BUILD));
    await simulation.run(handle.release({ state: 'ready' }, { fulfilsRequest }));
    await simulation.settled();
    expect(store.images.buildRequested('debian')).toBe(!fulfilsRequest);
  });

  it('finishes although its build request was withdrawn at the same time', async () => {
    await simulation.run(store.images.requestBuild('debian'));
    const handle = await simulation.run((await building()).create(BUILD, { id: 'b1' }));
    const removal = simulation.other.delete('/nodepool/images/debian/request-build');
    // The server has applied it, but the store has not received the event.
    await simulation.clock.advance(1);
    expect(store.images.buildRequested('debian')).toBe(true);
    await simulation.run(Promise.all([removal, handle.release({ state: 'ready' }, { fulfilsRequest: true })]));
    expect(simulation.json(`${BUILDS}/b1`)).toMatchObject({ state: 'ready' });
    expect(simulation.contenders()).toEqual([]);
  });
});

describe('the deletion of a build', () => {
  it('includes all of its descendants, in one transaction', async () => {
    await readyBuild();
    const upload = await readyUpload();
    const locked = given(await simulation.run(store.images.tryLockUpload({ ...PLACE, id: upload })));
    expect(await simulation.run(locked.remove())).toBe(true);
    expect(simulation.paths(UPLOADS)).toEqual([UPLOADS, `${UPLOADS}/lock`]);
    await simulation.settled();
    const build = { image: 'debian', id: 'b1' };
    const handle = given(await simulation.run(store.images.tryLockBuild(build, { change: { state: 'deleting' } })));
    const before = zooKeeper.counters.writes;
    expect(await simulation.run(handle.remove())).toBe(true);
    expect(zooKeeper.counters.writes - before).toBe(1);
    expect(simulation.paths(BUILDS)).toEqual([BUILDS, `${BUILDS}/lock`]);
    await simulation.settled();
    expect(other.images.builds('debian')).toEqual([]);
  });

  it('waits for the deletion of its uploads', async () => {
    await readyBuild();
    await readyUpload();
    const handle = given(await simulation.run(store.images.tryLockBuild({ image: 'debian', id: 'b1' })));
    expect(await simulation.run(handle.remove())).toBe(false);
    expect(store.images.build({ image: 'debian', id: 'b1' })).toBeDefined();
    expect(handle.lock.lost.aborted).toBe(false);
    await simulation.run(handle.release());
    expect(simulation.contenders()).toEqual([]);
  });

  it('waits for a builder that locked it for an upload', async () => {
    await readyBuild();
    const lock = await uploading(other);
    const handle = given(await simulation.run(store.images.tryLockBuild({ image: 'debian', id: 'b1' })));
    expect(await simulation.run(handle.remove())).toBe(false);
    await simulation.run(lock.release());
    expect(await simulation.run(handle.remove())).toBe(true);
  });
});

describe('an upload', () => {
  it('is created under the lock of its path, with ids like those of other programs', async () => {
    await readyBuild();
    const lock = await uploading();
    const handle = await simulation.run(lock.create(UPLOAD));
    expect(handle.upload).toMatchObject({ ...PLACE, state: 'uploading' });
    expect(handle.upload.id).toMatch(/^\d{10}$/);
    const path = `${UPLOADS}/${handle.upload.id}`;
    expect(simulation.json(path)).toEqual(UPLOAD);
    await simulation.run(handle.update({ external_name: 'debian-1' }));
    await simulation.run(handle.release({ state: 'ready', external_id: 'image-1' }));
    await simulation.settled();
    expect(simulation.contenders()).toEqual([]);
    expect(other.images.choose('debian', 'cloud')?.upload).toMatchObject({
      id: handle.upload.id,
      external_id: 'image-1',
      external_name: 'debian-1',
    });
    expect(other.images.upload(handle.upload)).toEqual(handle.upload);
  });

  it('is created by one builder at a time, if its build is unchanged', async () => {
    await readyBuild();
    const lock = await uploading();
    await simulation.settled();
    expect(await simulation.run(other.images.tryLockUploading(PLACE))).toBeUndefined();
    await simulation.run(lock.release());
    await simulation.settled();
    const clean = given(await simulation.run(store.images.tryLockBuild({ image: 'debian', id: 'b1' })));
    const changing = clean.update({ state: 'deleting' });
    expect(await simulation.run(other.images.tryLockUploading(PLACE))).toBeUndefined();
    await simulation.run(changing);
    expect(simulation.contenders()).toEqual([clean.lock.contender]);
  });

  it('does not restore a build that was deleted at the same time', async () => {
    await readyBuild();
    const clean = given(await simulation.run(store.images.tryLockBuild({ image: 'debian', id: 'b1' })));
    const [removed, upload] = await simulation.run(
      Promise.all([clean.remove(), other.images.tryLockUploading(PLACE)] as const),
    );
    expect([removed, upload]).toEqual([true, undefined]);
    expect(simulation.paths(`${BUILDS}/b1`)).toEqual([]);
  });

  it('gets an id that no earlier upload of the build had', async () => {
    await readyBuild();
    const first = await readyUpload();
    const locked = given(await simulation.run(store.images.tryLockUpload({ ...PLACE, id: first })));
    await simulation.run(locked.remove());
    await simulation.settled();
    expect(await readyUpload()).not.toBe(first);
  });

  it('is deleted by one client at a time, and not while it is locked', async () => {
    await readyBuild();
    const ref = { ...PLACE, id: await readyUpload() };
    const both = [store, other].map(({ images }) => images.tryLockUpload(ref, { change: { state: 'deleting' } }));
    const locks = await simulation.run(Promise.all(both));
    const winner = given(locks.find((lock) => lock !== undefined));
    expect(locks).toContain(undefined);
    const rival = `${UPLOADS}/${ref.id}/lock/cccc__lock__0000000009`;
    await simulation.put(rival, '');
    expect(await simulation.run(winner.remove())).toBe(false);
    await simulation.run(simulation.other.delete(rival));
    expect(await simulation.run(winner.remove())).toBe(true);
    await simulation.settled();
    expect(other.images.upload(ref)).toBeUndefined();
    expect(simulation.contenders()).toEqual([]);
  });
});

describe('the build request and the pause of an image', () => {
  it('can be set repeatedly, and the pause be deleted', async () => {
    const before = simulation.clock.now() / 1000;
    for (const wanted of [true, true, false, false, true]) {
      const { images } = store;
      await simulation.run(images.requestBuild('new'));
      await simulation.run(wanted ? images.pause('new') : images.unpause('new'));
      expect([images.buildRequested('new'), images.paused('new')]).toEqual([true, wanted]);
    }
    expect(simulation.paths('/nodepool/images/new')).toEqual([
      '/nodepool/images/new',
      '/nodepool/images/new/pause',
      '/nodepool/images/new/request-build',
    ]);
    await simulation.settled();
    expect(given(other.images.buildRequestedAt('new'))).toBeGreaterThanOrEqual(before);
    expect(other.images.buildRequestedAt('debian')).toBeUndefined();
  });
});

describe('the progress of an upload', () => {
  it('is published during the upload, and deleted afterwards', async () => {
    await readyBuild();
    const handle = await simulation.run((await uploading()).create(UPLOAD));
    await simulation.run(handle.update({ progress: 42 }));
    await simulation.settled();
    expect(other.images.upload(handle.upload)?.progress).toBe(42);
    await simulation.run(handle.release({ state: 'ready', progress: null }));
    expect(simulation.json(`${UPLOADS}/${handle.upload.id}`)).not.toHaveProperty('progress');
  });
});

describe('the deletion of an image', () => {
  it('includes its pause and failure once it has no builds and none is in progress', async () => {
    await readyBuild();
    await simulation.run(store.images.pause('debian'));
    await simulation.run(store.images.requestBuild('debian'));
    const remove = (): Promise<boolean> => simulation.run(store.images.removeImage('debian'));
    expect(await remove()).toBe(false);
    const handle = given(await simulation.run(store.images.tryLockBuild({ image: 'debian', id: 'b1' })));
    await simulation.run(handle.remove());
    const lock = await building(other);
    expect(await remove()).toBe(false);
    await simulation.run(lock.release());
    expect(await remove()).toBe(true);
    expect(simulation.paths('/nodepool/images/')).toEqual([]);
    await simulation.settled();
    expect([...other.images.images()]).toEqual([]);
    expect(await remove()).toBe(true);
  });
});

describe('a builder that lost its session', () => {
  it.each<readonly [string, (handle: BuildHandle, lock: BuildingLock) => Promise<unknown>]>([
    ['changes no build', (handle) => handle.release({ state: 'ready' })],
    ['creates no build', (_handle, lock) => lock.create(BUILD)],
  ])('%s', async (_what, write) => {
    const lock = await building();
    const handle = await simulation.run(lock.create(BUILD, { id: 'b1' }));
    simulation.server.expireSession(zooKeeper);
    await expect(simulation.run(write(handle, lock))).rejects.toThrow(LostOwnershipError);
    await simulation.settled();
    expect(lock.lock.lost.aborted).toBe(true);
    expect(simulation.paths(`${BUILDS}/`)).toEqual([`${BUILDS}/b1`, `${BUILDS}/lock`]);
    expect(simulation.json(`${BUILDS}/b1`)).toMatchObject({ state: 'building' });
    expect(other.images.isBuilding('debian')).toBe(false);
  });

  it('neither creates nor changes an upload that another builder cleans up', async () => {
    await readyBuild();
    const lock = await uploading();
    const handle = await simulation.run(lock.create(UPLOAD));
    const { contender } = lock.lock;
    await simulation.run(simulation.other.delete(contender));
    await simulation.settled();
    const clean = await simulation.run(other.images.tryLockUpload(handle.upload, { change: { state: 'deleting' } }));
    expect(clean).toBeDefined();
    await expect(simulation.run(handle.update({ state: 'ready' }))).rejects.toThrow(LostOwnershipError);
    await expect(simulation.run(lock.create(UPLOAD))).rejects.toThrow(LostOwnershipError);
    expect(simulation.json(`${UPLOADS}/${handle.upload.id}`)).toMatchObject({ state: 'deleting' });
  });
});

describe('locking', () => {
  const ATTEMPTS: readonly [string, () => Promise<{ readonly lock: HeldLock } | undefined>][] = [
    ['for a build', () => store.images.tryLockBuilding('debian')],
    ['for an upload', () => store.images.tryLockUploading(PLACE)],
    ['of a build', () => store.images.tryLockBuild({ image: 'debian', id: 'b1' }, { change: { state: 'deleting' } })],
  ];

  it.each(ATTEMPTS)('%s leaves no lock when its answer is lost', async (_what, attempt) => {
    await readyBuild();
    for (const moment of ['before-applied', 'after-applied'] as const) {
      simulation.server.loseNextWrite(zooKeeper, moment);
      await expect(simulation.run(attempt())).rejects.toThrow(/sent, but not answered/);
      await simulation.clock.advance(5000);
      expect(simulation.contenders()).toEqual([]);
    }
    // Changes of the attempt, if any, are visible and do not block the next one.
    expect(store.images.build({ image: 'debian', id: 'b1' })).toEqual(
      other.images.build({ image: 'debian', id: 'b1' }),
    );
    expect(await simulation.run(attempt())).toBeDefined();
  });

  it.each(ATTEMPTS)('%s is not attempted while the lock is held', async (_what, attempt) => {
    await readyBuild();
    given(await simulation.run(attempt()));
    const before = zooKeeper.counters.writes;
    const isContended = (): boolean =>
      store.images.isBuilding('debian') ||
      store.images.isUploading(PLACE) ||
      store.images.isBuildLocked({ image: 'debian', id: 'b1' });
    expect(isContended()).toBe(true);
    expect(await simulation.run(attempt())).toBeUndefined();
    expect(zooKeeper.counters.writes).toBe(before);
  });
});

describe('a lost answer', () => {
  it.each(['before-applied', 'after-applied'] as const)('%s does not change the outcome', async (moment) => {
    const handle = await simulation.run((await building()).create(BUILD, { id: 'b1' }));
    await simulation.run(store.images.requestBuild('debian'));
    simulation.server.loseNextWrite(zooKeeper, moment);
    await simulation.run(handle.release({ state: 'ready' }, { fulfilsRequest: true }));
    await simulation.settled();
    expect(simulation.json(`${BUILDS}/b1`)).toMatchObject({ state: 'ready' });
    expect(other.images.buildRequested('debian')).toBe(false);
    const clean = given(await simulation.run(store.images.tryLockBuild({ image: 'debian', id: 'b1' })));
    simulation.server.loseNextWrite(zooKeeper, moment);
    expect(await simulation.run(clean.remove())).toBe(true);
    expect(simulation.paths(`${BUILDS}/b1`)).toEqual([]);
    expect(simulation.contenders()).toEqual([]);
  });
});

import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { openStore, type Store } from '@nodepool/store';
import { seededRandom, VirtualClock } from '@nodepool/core/testing';
import type { ImageBuildData, ImageReview, ImageUploadData } from '@nodepool/core';
import { SimulatedZooKeeperServer } from '@nodepool/zookeeper/simulated';
import type { ZooKeeper } from '@nodepool/zookeeper';
import { imageWait } from '../src/pool/pool-labels.js';

const clock = new VirtualClock();
let zooKeeper: ZooKeeper;
let store: Store;

beforeEach(async () => {
  zooKeeper = new SimulatedZooKeeperServer({ clock }).connect({ sessionTimeoutMs: 9000 });
  store = openStore(zooKeeper, { clock, random: seededRandom(1), identifier: 'test' });
  store.start();
  await clock.runUntil(() => store.complete, 10_000);
});

afterEach(async () => {
  store.close();
  await finish(zooKeeper.close());
});

async function finish<T>(promise: Promise<T>): Promise<T> {
  let settled = false;
  const settle = (): void => void (settled = true);
  promise.then(settle, settle);
  await clock.runUntil(() => settled, 10_000);
  return promise;
}

const BUILD: ImageBuildData = {
  state: 'building',
  state_time: 1,
  builder: 'nb01',
  builder_id: 'b',
  formats: ['qcow2'],
  username: null,
  python_path: null,
  shell_type: null,
};

const UPLOAD: ImageUploadData = {
  state: 'uploading',
  state_time: 2,
  external_id: null,
  external_name: null,
  format: 'qcow2',
  username: null,
  python_path: null,
  shell_type: null,
};

it('the wait reason shows the progress of an image to a provider', async () => {
  const said: string[] = [];
  const look = async (): Promise<void> => {
    await clock.advance(100);
    said.push(imageWait(store.images, 'debian', 'cloud'));
  };
  await look();
  await finish(store.images.pause('debian'));
  await look();
  await finish(store.images.unpause('debian'));
  await finish(store.images.requestBuild('debian'));
  await look();
  const failed = (await finish(store.images.tryLockBuilding('debian')))!;
  await finish((await finish(failed.create(BUILD, { id: 'b1' }))).release({ state: 'failed' }));
  await look();
  const building = (await finish(store.images.tryLockBuilding('debian')))!;
  const build = await finish(building.create(BUILD, { id: 'b2' }));
  await look();
  await finish(build.release({ state: 'ready' }));
  await look();
  const uploading = (await finish(store.images.tryLockUploading({ image: 'debian', build: 'b2', provider: 'cloud' })))!;
  await look();
  const upload = await finish(uploading.create(UPLOAD));
  const review: ImageReview = { stage: 'rejected', since: 1, by: 'ada', reason: 'no sshd', history: [] };
  await finish(upload.release({ state: 'ready', review }));
  await look();
  expect(said).toEqual([
    'no builder has built it',
    'it was never built and is paused; `nodepool image-unpause debian` ends that',
    'its build is asked for',
    'its last build failed; the log of the builder says why',
    'it is being built by nb01',
    'build b2 waits for nb01 to upload it',
    'build b2 is being uploaded',
    'build b2 is rejected, and another build is needed',
  ]);
});

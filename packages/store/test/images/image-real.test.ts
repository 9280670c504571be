/** The life of a build and its upload on a real server, with two builders. */

import { expect, it } from '@jest/globals';
import type { ImageBuildData, ImageUploadData } from '@nodepool/core';
import { exportImageData, importImageData, type Store } from '@nodepool/store';
import { realStores } from '../real-stores.js';
import { given } from '../simulation.js';

const start = realStores();

/** Resolves once the condition holds after a change of the store's images. */
function until(store: Store, holds: () => boolean): Promise<void> {
  return new Promise((resolve) => {
    if (holds()) {
      resolve();
      return;
    }
    const stop = store.images.onChange(() => {
      if (!holds()) return;
      stop();
      resolve();
    });
  });
}

const COMMON = { username: null, python_path: null, shell_type: null, state_time: 1 };
const BUILD: ImageBuildData = { ...COMMON, state: 'building', builder: 'a', builder_id: 'a', formats: ['qcow2'] };
const UPLOAD: ImageUploadData = {
  ...COMMON,
  state: 'uploading',
  external_id: null,
  external_name: null,
  format: 'qcow2',
};

it('two builders share build, upload and cleanup of an image, and no znode remains', async () => {
  const [a, b] = [await start(), await start()];
  await b.images.requestBuild('debian');
  await until(a, () => a.images.buildRequested('debian'));
  const right = await Promise.all([a, b].map(({ images }) => images.tryLockBuilding('debian')));
  expect(right.filter((lock) => lock !== undefined)).toHaveLength(1);
  const build = await given(right[0] ?? right[1]).create(BUILD);
  await build.release({ state: 'ready' }, { fulfilsRequest: true });

  const { id } = build.build;
  const ref = { image: 'debian', id };
  await Promise.all(
    [a, b].map((store) =>
      until(store, () => store.images.build(ref)?.state === 'ready' && !store.images.isBuilding('debian')),
    ),
  );
  const place = { image: 'debian', build: id, provider: 'cloud' };
  const places = await Promise.all([a, b].map(({ images }) => images.tryLockUploading(place)));
  expect(places.filter((lock) => lock !== undefined)).toHaveLength(1);
  const upload = await given(places[0] ?? places[1]).create(UPLOAD);
  await upload.release({ state: 'ready', external_id: 'image-1' });
  await until(b, () => b.images.choose('debian', 'cloud')?.upload.external_id === 'image-1');

  const first = given(await b.images.tryLockBuild(ref, { change: { state: 'deleting' } }));
  expect(await first.remove()).toBe(false);
  const locked = given(await b.images.tryLockUpload(upload.upload, { change: { state: 'deleting' } }));
  expect(await locked.remove()).toBe(true);
  expect(await first.remove()).toBe(true);
  await until(a, () => a.images.builds('debian').length === 0);
  const { children } = await a.zooKeeper.children('/nodepool/images/debian/builds');
  expect(children).toEqual(['lock']);
  expect(a.images.buildRequested('debian')).toBe(false);
});

it('a restored upload’s number is not assigned again', async () => {
  const store = await start();
  const build = '/nodepool/images/suse/builds/b1';
  const upload = `${build}/providers/cloud/images/0000000900`;
  const data = new Map([build, upload].map((path) => [path, '{"state": "ready", "state_time": 1}']));
  expect(await importImageData(store.zooKeeper, data)).toEqual([build, upload]);
  expect(await exportImageData(store.zooKeeper)).toEqual(data);
  await until(store, () => store.images.choose('suse', 'cloud') !== undefined);
  const lock = given(await store.images.tryLockUploading({ image: 'suse', build: 'b1', provider: 'cloud' }));
  const next = await lock.create(UPLOAD);
  expect(Number(next.upload.id)).toBeGreaterThan(900);
});

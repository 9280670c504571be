/** Reads of image builds and uploads from the store. */

import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { Store } from '@nodepool/store';
import { Simulation } from '../simulation.js';

let simulation: Simulation;
let store: Store;

beforeEach(async () => {
  simulation = new Simulation();
  store = await simulation.store();
});

afterEach(() => simulation.close());

const BUILDS = '/nodepool/images/debian/builds';
const upload = (build: string, provider: string, id: string): string =>
  `${BUILDS}/${build}/providers/${provider}/images/${id}`;

describe('the newest upload', () => {
  it('is the latest ready one of that provider', async () => {
    await simulation.put(`${BUILDS}/b1`, { state: 'ready', state_time: 1 });
    await simulation.put(`${BUILDS}/b2`, { state: 'ready', state_time: 2 });
    await simulation.put(upload('b2', 'cloud', '0000000001'), { state: 'ready', state_time: 10 });
    await simulation.put(upload('b1', 'cloud', '0000000007'), { state: 'ready', state_time: 20 });
    await simulation.put(upload('b2', 'cloud', '0000000002'), { state: 'uploading', state_time: 30 });
    await simulation.put(upload('b2', 'other', '0000000001'), { state: 'ready', state_time: 40 });
    expect(store.images.choose('debian', 'cloud')?.upload).toMatchObject({ build: 'b1', id: '0000000007' });
    expect(store.images.choose('debian', 'nowhere')?.upload).toBeUndefined();
    expect(store.images.choose('suse', 'cloud')?.upload).toBeUndefined();
    await simulation.put(upload('b1', 'cloud', '0000000007'), { state: 'deleting', state_time: 50 });
    expect(store.images.choose('debian', 'cloud')?.upload).toMatchObject({ build: 'b2', id: '0000000001' });
    expect([...store.images.uploads({ provider: 'cloud' })].map(({ state_time }) => state_time)).toEqual([10, 30, 50]);
    expect([...store.images.uploads({ image: 'suse' })]).toEqual([]);
  });
});

describe('an image', () => {
  it('has builds, and can be paused and requested', async () => {
    await simulation.put(`${BUILDS}/b1`, { state: 'building', state_time: 1, formats: 'vhd,qcow2', builder: 'host' });
    await simulation.put('/nodepool/images/debian/pause', '');
    await simulation.put('/nodepool/images/suse/request-build', '');
    expect([...store.images.images()]).toEqual(['debian', 'suse']);
    expect(store.images.builds('debian')).toMatchObject([
      { image: 'debian', id: 'b1', state: 'building', formats: ['qcow2', 'vhd'] },
    ]);
    expect([store.images.paused('debian'), store.images.paused('suse')]).toEqual([true, false]);
    expect([store.images.buildRequested('debian'), store.images.buildRequested('suse')]).toEqual([false, true]);
    await simulation.run(simulation.other.delete('/nodepool/images/debian/pause'));
    await simulation.settled();
    expect(store.images.paused('debian')).toBe(false);
  });

  it('disappears with its znodes', async () => {
    await simulation.put(`${BUILDS}/b1`, { state: 'ready', state_time: 1 });
    const changed: string[] = [];
    store.images.onChange((image) => changed.push(image));
    for (const path of [`${BUILDS}/b1`, BUILDS, '/nodepool/images/debian']) {
      await simulation.run(simulation.other.delete(path));
    }
    await simulation.settled();
    expect([...store.images.images()]).toEqual([]);
    expect(store.images.builds('debian')).toEqual([]);
    expect(changed).toEqual(['debian', 'debian']);
  });

  it('counts as in progress while one of its locks is contended', async () => {
    await simulation.put(`${BUILDS}/b1`, { state: 'ready', state_time: 1 });
    const changed: string[] = [];
    store.images.onChange((image) => changed.push(image));
    const images = `${BUILDS}/b1/providers/cloud/images`;
    const directories = [BUILDS, `${BUILDS}/b1`, images, `${images}/0000000001`].map((parent) => `${parent}/lock`);
    await simulation.put(`${images}/0000000001`, { state: 'ready', state_time: 1 });
    const place = { image: 'debian', build: 'b1', provider: 'cloud' };
    const state = (): boolean[] => [
      store.images.isBuilding('debian'),
      store.images.isBuildLocked({ image: 'debian', id: 'b1' }),
      store.images.isUploading(place),
      store.images.isUploadLocked({ ...place, id: '0000000001' }),
    ];
    changed.length = 0;
    for (const [index, directory] of directories.entries()) {
      await simulation.put(directory, '');
      expect([state(), changed]).toEqual([[false, false, false, false], []]);
      await simulation.put(`${directory}/aaaa__lock__0000000000`, '');
      await simulation.put(`${directory}/bbbb__lock__0000000001`, '');
      expect(state()).toEqual(directories.map((_directory, other) => other === index));
      await simulation.run(simulation.other.delete(`${directory}/aaaa__lock__0000000000`));
      await simulation.settled();
      expect(state()[index]).toBe(true);
      await simulation.run(simulation.other.delete(`${directory}/bbbb__lock__0000000001`));
      await simulation.settled();
      expect([state(), changed]).toEqual([
        [false, false, false, false],
        ['debian', 'debian'],
      ]);
      changed.length = 0;
    }
    expect(store.images.builds('debian')).toHaveLength(1);
  });

  it('is usable when one of its records is unreadable', async () => {
    await simulation.put(`${BUILDS}/b1`, { state: 'ready', state_time: 1 });
    await simulation.put(`${BUILDS}/b2`, 'broken');
    await simulation.put(upload('b1', 'cloud', '0000000001'), { state: 'floating' });
    expect(store.images.builds('debian').map(({ id }) => id)).toEqual(['b1']);
    expect([...store.images.corrupt()].map(({ path }) => path)).toEqual([
      `${BUILDS}/b2`,
      upload('b1', 'cloud', '0000000001'),
    ]);
    await simulation.put(`${BUILDS}/b2`, { state: 'ready', state_time: 2 });
    expect(store.images.builds('debian').map(({ id }) => id)).toEqual(['b1', 'b2']);
    expect([...store.images.corrupt()]).toHaveLength(1);
  });
});

/** Backing up and restoring the records of images. */

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { exportImageData, importImageData, parseImageData, type Store } from '@nodepool/store';
import { ImageDataError } from '../../src/errors.js';
import { Simulation, given } from '../simulation.js';

let simulation: Simulation;
let store: Store;

beforeEach(async () => {
  simulation = new Simulation();
  store = await simulation.store();
});

afterEach(() => simulation.close());

const BUILD = '/nodepool/images/debian/builds/b1';
const UPLOADS = `${BUILD}/providers/cloud/images`;
const READY = '{"state": "ready", "state_time": 1.25, "theirs": 18446744073709551615}';

/** Returns an export of a Python Nodepool. */
async function recorded(): Promise<string> {
  return readFile(join(__dirname, '../compat', 'export-image-data.json'), 'utf8');
}

/** Returns the znodes below the images of a Python Nodepool while one of them is paused. */
async function recordedTree(): Promise<ReadonlyMap<string, string>> {
  const text = await readFile(join(__dirname, '../compat', '11-image-paused-and-build-requested.txt'), 'utf8');
  const lines = text.split('\n').filter((line) => line.startsWith('/nodepool/images/'));
  return new Map(lines.map((line) => [line.slice(0, line.indexOf(' ')), line.slice(line.indexOf(' ') + 1)]));
}

function restore(text: string): Promise<readonly string[]> {
  return simulation.run(importImageData(store.zooKeeper, parseImageData(text)));
}

describe('an export', () => {
  it('contains builds, uploads, pauses and unknown data unchanged, but neither locks nor build requests', async () => {
    await simulation.put(BUILD, READY);
    await simulation.put(`${UPLOADS}/0000000003`, READY);
    await simulation.put(`${UPLOADS}/lock/aaaa__lock__0000000000`, '');
    await simulation.put('/nodepool/images/debian/pause', '');
    await simulation.put('/nodepool/images/debian/request-build', '');
    await simulation.put('/nodepool/images/debian/notes', 'by hand');
    await simulation.put(`${BUILD}/manifest/sha256`, 'abcdef');
    expect(Object.fromEntries(await simulation.run(exportImageData(store.zooKeeper)))).toEqual({
      [BUILD]: READY,
      [`${UPLOADS}/0000000003`]: READY,
      '/nodepool/images/debian/pause': '',
      '/nodepool/images/debian/notes': 'by hand',
      [`${BUILD}/manifest/sha256`]: 'abcdef',
    });
  });

  it('of a recorded tree equals that of the Python Nodepool, and restores the tree', async () => {
    const tree = await recordedTree();
    for (const [path, data] of tree) await simulation.put(path, data);
    const text = JSON.stringify(Object.fromEntries(await simulation.run(exportImageData(store.zooKeeper))));
    const empty = new Simulation();
    const other = await empty.store();
    await empty.run(importImageData(other.zooKeeper, parseImageData(text)));
    const restored = [...empty.server.dump()].map(
      ([path, { data }]) => [path, new TextDecoder().decode(data)] as const,
    );
    const isTransient = (path: string): boolean => /\/(lock|request-build)$/.test(path);
    expect(new Map(restored.filter(([path]) => path.startsWith('/nodepool/images/')))).toEqual(
      new Map([...tree].filter(([path]) => !isTransient(path))),
    );
    expect(Object.keys(JSON.parse(text) as object)).toContain('/nodepool/images/paused-image/pause');
    await empty.close();
  });

  it('is empty without images', async () => {
    expect((await simulation.run(exportImageData(store.zooKeeper))).size).toBe(0);
  });
});

describe('an import', () => {
  it('restores the pauses of a Python Nodepool’s export, and exports the same', async () => {
    const pause = '/nodepool/images/paused-image/pause';
    const text = JSON.stringify({ ...(JSON.parse(await recorded()) as object), [pause]: '' });
    expect(await restore(text)).toContain(pause);
    expect(store.images.paused('paused-image')).toBe(true);
    expect(Object.fromEntries(await simulation.run(exportImageData(store.zooKeeper)))).toEqual(JSON.parse(text));
    expect(await restore(text)).toEqual([]);
  });

  it('preserves unknown data', async () => {
    const entries = {
      [BUILD]: READY,
      [`${BUILD}/manifest/sha256`]: 'abcdef',
      '/nodepool/images/debian/notes': 'by hand',
      '/nodepool/images/suse/pause': '',
      '/nodepool/images/suse': 'not empty',
    };
    expect((await restore(JSON.stringify(entries))).length).toBe(5);
    expect(Object.fromEntries(await simulation.run(exportImageData(store.zooKeeper)))).toEqual(entries);
    await simulation.settled();
    expect([...store.images.corrupt()]).toEqual([]);
  });

  it('restores a Python Nodepool’s export, and exports the same', async () => {
    const text = await recorded();
    expect((await restore(text)).length).toBe(6);
    const again = await simulation.run(exportImageData(store.zooKeeper));
    expect(Object.fromEntries(again)).toEqual(JSON.parse(text));
    await simulation.settled();
    expect(store.images.choose('fake-image', 'fake-provider')?.upload).toMatchObject({
      external_id: 'bf3870c8215a451489623bece2f30a91',
    });
    expect([...store.images.corrupt()]).toEqual([]);
  });

  it.each([0, 1, 2, 41, 2500])(
    'prevents the next upload from getting a restored number, with %j as the highest',
    async (last) => {
      const id = String(last).padStart(10, '0');
      await restore(JSON.stringify({ [BUILD]: READY, [`${UPLOADS}/${id}`]: READY }));
      await simulation.settled();
      const place = { image: 'debian', build: 'b1', provider: 'cloud' };
      const lock = given(await simulation.run(store.images.tryLockUploading(place)));
      const upload = await simulation.run(
        lock.create({
          state: 'uploading',
          state_time: 1,
          external_id: null,
          external_name: null,
          format: null,
          username: null,
          python_path: null,
          shell_type: null,
        }),
      );
      expect(Number(upload.upload.id)).toBeGreaterThan(last);
    },
  );

  it('preserves existing records, and continues an interrupted import', async () => {
    const text = JSON.stringify({ [BUILD]: READY, [`${UPLOADS}/0000000002`]: READY });
    await simulation.put(BUILD, '');
    await simulation.put(`${UPLOADS}/lock`, '');
    expect(await restore(text)).toEqual([BUILD, `${UPLOADS}/0000000002`]);
    expect(await restore(text)).toEqual([]);
    expect(simulation.json(BUILD)).toEqual(JSON.parse(READY));
  });

  it('changes nothing when an existing record differs', async () => {
    await simulation.put(BUILD, { state: 'deleting' });
    const other = '/nodepool/images/suse/builds/b2';
    await expect(restore(JSON.stringify({ [BUILD]: READY, [other]: READY }))).rejects.toThrow(
      new ImageDataError(`nothing was imported: these records already exist with other contents:\n  ${BUILD}`),
    );
    expect(simulation.paths('/nodepool/images/suse')).toEqual([]);
  });

  it.each([
    ['{"a": ', 'it is not JSON'],
    ['[]', 'expected a JSON object'],
    [
      JSON.stringify({ '/nodepool/nodes/0000000001': READY }),
      '/nodepool/nodes/0000000001: is not the path of a znode below /nodepool/images',
    ],
    [JSON.stringify({ '/nodepool/images/x/builds/': READY }), 'is not the path of a znode'],
    [JSON.stringify({ '/nodepool/images//builds/b': READY }), 'is not the path of a znode'],
    [JSON.stringify({ '/nodepool/images/../nodes/0000000001': READY }), 'is not the path of a znode'],
    [JSON.stringify({ '/nodepool/images/x/builds/lock/a__lock__0000000000': '' }), 'is a lock'],
    [JSON.stringify({ [`${BUILD}/manifest`]: 'abcdef' }), 'the record of its build is missing'],
    [JSON.stringify({ [BUILD]: { state: 'ready' } }), `${BUILD}: its value is not a text`],
    [JSON.stringify({ [`${UPLOADS}/0000000001`]: READY }), 'the record of its build is missing'],
    [JSON.stringify({ [BUILD]: READY, [`${UPLOADS}/1`]: READY }), 'its last name is not the number of an upload'],
    [JSON.stringify({ [BUILD]: READY, [`${UPLOADS}/9999999999`]: READY }), 'at most 1000000'],
  ])('rejects %s', (text, reason) => {
    expect(() => parseImageData(text)).toThrow(ImageDataError);
    expect(() => parseImageData(text)).toThrow(reason);
  });
});

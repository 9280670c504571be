/** `nodepool export-image-data` and `nodepool import-image-data`. */

import { execFile } from 'node:child_process';
import { mkdir, open, readdir, readFile, readlink, stat, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { IMAGE_CONFIG, World } from './world.js';

let world: World;

beforeEach(async () => {
  world = new World();
  await world.start();
  await world.writeConfig(IMAGE_CONFIG);
});

afterEach(() => world.stop());

describe('nodepool export-image-data and import-image-data', () => {
  it('back up and restore the records', async () => {
    const file = join(dirname(world.configFile), 'images.json');
    const build = await world.build('debian-12', 'b1');
    const upload = await world.upload(build, 'cloud');
    const saved = await world.run('export-image-data', file);
    expect([saved.code, saved.out.noted]).toEqual([0, `Saved records of images: 2, in ${file}`]);
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    expect(Object.keys(Object(JSON.parse(await readFile(file, 'utf8'))) as object)).toEqual([
      '/nodepool/images/debian-12/builds/b1',
      `/nodepool/images/debian-12/builds/b1/providers/cloud/images/${upload.id}`,
    ]);
    expect((await world.run('erase', 'cloud', '--force')).code).toBe(0);
    await world.until(() => world.store.images.upload(upload) === undefined);
    const restored = await world.run('import-image-data', file);
    expect([restored.code, restored.out.noted]).toEqual([
      0,
      'Restored records of images: 1; records that existed already: 1',
    ]);
    await world.until(() => world.store.images.upload(upload)?.external_id === 'image-1');
  });

  it('reject an invalid file with the reason', async () => {
    const folder = dirname(world.configFile);
    const bad = join(folder, 'bad.json');
    await writeFile(bad, '{"/nodepool/nodes/1": ""}');
    const damaged = join(folder, 'damaged.json');
    await writeFile(damaged, '{');
    for (const [args, reason] of [
      [['import-image-data', join(folder, 'missing.json')], 'missing.json cannot be read: there is no such file; name'],
      [['import-image-data', bad], `${bad}: nothing can be imported:\n  /nodepool/nodes/1: is not the path of a znode`],
      [['import-image-data', damaged], `${damaged}: it is not JSON; expected the output of export-image-data`],
      [['export-image-data', folder], `${folder} cannot be written: it is a folder`],
      [
        ['export-image-data', join(folder, 'missing', 'images.json')],
        `${join(folder, 'missing', 'images.json')} cannot be written: its folder does not exist`,
      ],
    ] as const) {
      const { code, out } = await world.run(...args);
      expect([code, out.noted]).toEqual([1, expect.stringContaining(reason)]);
      expect(out.noted).not.toContain('-d for details');
    }
  });
});

describe('nodepool export-image-data', () => {
  it('replaces an earlier export at once, and retains its permissions and the link to it', async () => {
    const folder = join(dirname(world.configFile), 'backups');
    const [link, file] = [join(folder, 'latest.json'), join(folder, 'images.json')];
    await mkdir(folder);
    await writeFile(file, 'the earlier export', { mode: 0o640 });
    await symlink('images.json', link);
    const reader = await open(file);
    await world.build('debian-12', 'b1');

    expect((await world.run('export-image-data', link)).code).toBe(0);

    expect(await reader.readFile('utf8')).toBe('the earlier export');
    await reader.close();
    expect(Object.keys(Object(JSON.parse(await readFile(file, 'utf8'))) as object)).toHaveLength(1);
    expect((await stat(file)).mode & 0o777).toBe(0o640);
    expect(await readlink(link)).toBe('images.json');
    expect(await readdir(folder)).toEqual(['images.json', 'latest.json']);
  });

  it('exports to the target of a link to a missing file', async () => {
    const folder = dirname(world.configFile);
    await symlink('images.json', join(folder, 'latest.json'));

    expect((await world.run('export-image-data', join(folder, 'latest.json'))).code).toBe(0);

    expect(JSON.parse(await readFile(join(folder, 'images.json'), 'utf8'))).toEqual({});
    expect(await readlink(join(folder, 'latest.json'))).toBe('images.json');
  });

  it('exports to a pipe', async () => {
    const pipe = join(dirname(world.configFile), 'pipe');
    await promisify(execFile)('mkfifo', [pipe]);
    const content = readFile(pipe, 'utf8');

    expect((await world.run('export-image-data', pipe)).code).toBe(0);

    expect(JSON.parse(await content)).toEqual({});
    expect((await stat(pipe)).isFIFO()).toBe(true);
  });
});

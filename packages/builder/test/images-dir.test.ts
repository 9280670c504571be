/** The files of builds on disk. */

import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, readdir, readFile, rm, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { seededRandom } from '@nodepool/core/testing';
import { builderIdOf } from '../src/builder-id.js';
import { ImagesDir } from '../src/index.js';

const ONE = 'a'.repeat(32);
const TWO = '0000000042';
const { signal } = new AbortController();

let folder: string;
let files: ImagesDir;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'nodepool-images-'));
  files = new ImagesDir(folder);
  for (const name of [`debian-${ONE}.qcow2`, `debian-${ONE}.raw`, `debian-${TWO}.qcow2`, `debian-arm64-${ONE}.qcow2`]) {
    await writeFile(join(folder, name), name);
  }
  await mkdir(join(folder, `debian-${ONE}.d`));
  await writeFile(join(folder, `debian-${ONE}.d`, 'manifest'), '');
  await writeFile(join(folder, 'notes.txt'), '');
});
afterEach(() => rm(folder, { recursive: true }));

const hashOf = (kind: string, text: string): string => createHash(kind).update(text).digest('hex');

it('the images folder lists the builds with files', async () => {
  const builds = (await files.list()).map(({ image, id }) => `${image} ${id}`).sort();
  expect(builds).toEqual([`debian ${TWO}`, `debian ${ONE}`, `debian-arm64 ${ONE}`].sort());
});

it.each(['backup-1795487324.tar.gz', 'debian-2026112400.qcow2'])(
  'the images folder ignores a file with a time or a date in its name (%s)',
  async (name) => {
    const before = await files.list();
    await writeFile(join(folder, name), '');
    expect(await files.list()).toEqual(before);
  },
);

it('the images folder computes missing or unreadable checksums, and uses existing ones', async () => {
  const name = `debian-${ONE}.qcow2`;
  await writeFile(join(folder, `${name}.md5`), 'no checksum');
  await writeFile(join(folder, `${name}.sha256`), `${'c'.repeat(64)}  ${name}\n`);
  const [file] = await files.complete({ image: 'debian', id: ONE }, ['qcow2'], signal);
  expect(file && (await files.checksums(file))).toEqual({ md5: hashOf('md5', name), sha256: 'c'.repeat(64) });
  expect(await readFile(join(folder, `${name}.md5`), 'utf8')).toBe(`${hashOf('md5', name)}  ${name}\n`);
});

it('the images folder distinguishes the size of a sparse file from its disk usage', async () => {
  const build = { image: 'debian', id: ONE };
  await truncate(`${files.basePath(build)}.raw`, 2 ** 30);
  const file = await files.find(build, 'raw');
  expect(file?.bytes).toBe(2 ** 30);
  expect(file?.usedBytes).toBeLessThan(2 ** 20);
});

it('the images folder deletes all files of a build, and of no other', async () => {
  await files.complete({ image: 'debian', id: ONE }, ['qcow2', 'raw'], signal);
  await files.remove({ image: 'debian', id: ONE });
  expect((await readdir(folder)).sort()).toEqual([`debian-${TWO}.qcow2`, `debian-arm64-${ONE}.qcow2`, 'notes.txt']);
});

it('the images folder deletes images except in formats to keep, with their checksums', async () => {
  await files.complete({ image: 'debian', id: ONE }, ['qcow2', 'raw'], signal);
  await files.remove({ image: 'debian', id: ONE }, ['raw']);
  expect((await readdir(folder)).filter((name) => name.startsWith(`debian-${ONE}`)).sort()).toEqual([
    `debian-${ONE}.d`,
    `debian-${ONE}.raw`,
    `debian-${ONE}.raw.md5`,
    `debian-${ONE}.raw.sha256`,
  ]);
});

it('the images folder stores the id of the builder', async () => {
  const id = await builderIdOf(folder, seededRandom(1));
  expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  expect(await builderIdOf(folder, seededRandom(2))).toBe(id);
  expect(await readFile(join(folder, 'builder_id.txt'), 'utf8')).toBe(id);
});

it('the images folder explains why it is unusable', async () => {
  await expect(builderIdOf(join(folder, 'notes.txt', 'images'), seededRandom(1))).rejects.toThrow(
    /images-dir .*notes.txt.*this user can write/,
  );
});

/** The stand-in behaves as its users require. */

import { execFile } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { FAKE_DIB_COMMAND } from '../src/index.js';

const run = promisify(execFile);
let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'fake-dib-'));
});
afterEach(() => rm(folder, { recursive: true }));

async function build(mode: string, ...args: string[]): Promise<{ readonly stdout: string; readonly stderr: string }> {
  const all = ['-x', '-t', 'qcow2,raw', '--checksum', '--no-tmpfs', '-o', join(folder, 'image'), ...args];
  return run(FAKE_DIB_COMMAND, all, { env: { ...process.env, FAKE_DIB: mode } });
}

it('the fake disk-image-create creates an image in every format, with checksums and manifests', async () => {
  const { stderr } = await build('works', '--qemu-img-options', 'compat=0.10', 'debian-minimal');
  expect((await readdir(folder)).sort()).toEqual([
    'image.d',
    'image.qcow2',
    'image.qcow2.md5',
    'image.qcow2.sha256',
    'image.raw',
    'image.raw.md5',
    'image.raw.sha256',
  ]);
  expect(await readFile(join(folder, 'image.raw.md5'), 'utf8')).toMatch(/^[0-9a-f]{32} {2}\/.*image\.raw\n$/);
  expect(stderr).toContain('+ ');
});

it('the fake disk-image-create fails in the selected mode', async () => {
  await expect(build('fails', 'debian-minimal')).rejects.toMatchObject({ code: 100 });
  await expect(build('full', 'debian-minimal')).rejects.toMatchObject({ code: 1 });
  await expect(build('unheard-of', 'debian-minimal')).rejects.toMatchObject({ code: 2 });
});

it('the fake disk-image-create refuses the same arguments as the real program', async () => {
  await expect(build('works')).rejects.toMatchObject({ code: 1 });
  await expect(build('works', '--unknown', 'debian-minimal')).rejects.toMatchObject({ code: 1 });
});

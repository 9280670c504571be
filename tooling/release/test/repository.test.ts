/** The URL of the repository in published files. */

import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { repositoryUrl, withoutRepository, writeRepository } from '../src/repository.js';

const URL = 'git+https://example.org/nodepool/nodepool.git';

describe('the address of the repository', () => {
  let root: string;

  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), 'nodepool-repository-'));
    await mkdir(join(root, 'packages', 'x'), { recursive: true });
    await writeFile(join(root, 'package.json'), '{}');
    await writeFile(join(root, 'packages', 'x', 'package.json'), '{"name": "x", "version": "1.0.0"}');
    await writeFile(join(root, 'packages', 'x', 'README.md'), 'See [more](../../docs/x.md#more) and [here](#here).\n');
  });

  afterEach(async () => {
    await rm(root, { recursive: true, force: true });
  });

  it('is written once into every package, with the folder of the package', async () => {
    expect(await writeRepository(root, URL)).toEqual(['x']);
    expect(await writeRepository(root, URL)).toEqual([]);

    const manifest: unknown = JSON.parse(await readFile(join(root, 'packages', 'x', 'package.json'), 'utf8'));
    expect(manifest).toEqual({
      name: 'x',
      version: '1.0.0',
      repository: { type: 'git', url: URL, directory: 'packages/x' },
    });
  });

  it('completes the links of a README that leave the package', async () => {
    await writeRepository(root, URL);

    expect(await readFile(join(root, 'packages', 'x', 'README.md'), 'utf8')).toBe(
      'See [more](https://example.org/nodepool/nodepool/blob/HEAD/docs/x.md#more) and [here](#here).\n',
    );
  });

  it('is reported as missing before the publication', async () => {
    expect(await withoutRepository(root)).toEqual(['x']);
    await writeRepository(root, URL);
    expect(await withoutRepository(root)).toEqual([]);
  });

  it('is read from the environment of a public CI', () => {
    const env = { GITHUB_SERVER_URL: 'https://example.org', GITHUB_REPOSITORY: 'nodepool/nodepool' };

    expect(repositoryUrl(env)).toBe(URL);
    expect(repositoryUrl({})).toBeUndefined();
  });
});

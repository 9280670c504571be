/** The bill of materials of an installation. */

import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { missingLists, writeBill } from '../src/bill-of-materials.js';
import type { PackedPackage } from '../src/pack.js';

const BUNDLED = { type: 'library', name: 'inside', version: '2.0.0', purl: 'pkg:npm/inside@2.0.0' };
const INSTALLED = { type: 'library', name: 'outside', version: '1.0.0', purl: 'pkg:npm/outside@1.0.0' };

describe('the bill of materials', () => {
  let folder: string;

  async function write(file: string, content: unknown): Promise<void> {
    const path = join(folder, file);
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, JSON.stringify(content));
  }

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'nodepool-bill-'));
    const root = { name: 'site', version: '1.0.0', dependencies: { outside: '1.0.0' } };
    const outside = { name: 'outside', version: '1.0.0' };
    await write('installed/package.json', root);
    await write('installed/node_modules/outside/package.json', outside);
    const packages = { '': root, 'node_modules/outside': { version: '1.0.0' } };
    await write('installed/package-lock.json', { name: 'site', version: '1.0.0', lockfileVersion: 3, packages });
    // The second bundle lists a library that is also installed, and one that is in both bundles.
    await write('packed/dist/vendor/one.cdx.json', { components: [BUNDLED] });
    await write('packed/dist/vendor/two.cdx.json', { components: [BUNDLED, INSTALLED] });
  });

  afterEach(async () => {
    await rm(folder, { recursive: true, force: true });
  });

  it('lists what is installed and what is bundled, each once', async () => {
    const files = ['one', 'two'].flatMap((name) => [`dist/vendor/${name}.cjs`, `dist/vendor/${name}.cdx.json`]);
    const packed = { folder: join(folder, 'packed'), files } as unknown as PackedPackage;

    await writeBill(join(folder, 'installed'), [packed], join(folder, 'bill.cdx.json'));

    const bill: unknown = JSON.parse(await readFile(join(folder, 'bill.cdx.json'), 'utf8'));
    expect(bill).toMatchObject({ bomFormat: 'CycloneDX' });
    const { components } = bill as { readonly components: readonly { readonly purl: string }[] };
    expect(components.map(({ purl }) => purl).sort()).toEqual([BUNDLED.purl, INSTALLED.purl]);
  });

  it('is refused for a bundle without its list', () => {
    expect(missingLists({ files: ['dist/vendor/one.cjs', 'dist/vendor/one.notices.txt'] })).toEqual([
      expect.stringContaining('dist/vendor/one.cdx.json is not packed'),
    ]);
  });
});

/** Findings about the files of a package. */

import { mkdtempSync, rmSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { JsonObject } from '@nodepool/core';
import { checkFiles } from '../src/checks/files.js';

const GOOD: Readonly<Record<string, string>> = {
  'package.json': '{}',
  'README.md': '',
  LICENSE: '',
  'dist/index.js': '',
  'dist/index.d.ts': '',
  'dist/index.js.map': '{"sources": ["../src/index.ts"]}',
  'dist/bin.js': '#!/usr/bin/env node\n',
  'src/index.ts': '',
};

const MANIFEST: JsonObject = {
  main: './dist/index.js',
  types: './dist/index.d.ts',
  exports: { '.': { types: './dist/index.d.ts', default: './dist/index.js' } },
  bin: { x: './dist/bin.js' },
};

describe('the check of files', () => {
  let folder: string;
  let source: string;

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'nodepool-packed-'));
    source = mkdtempSync(join(tmpdir(), 'nodepool-source-'));
  });

  afterEach(() => {
    for (const each of [folder, source]) rmSync(each, { recursive: true, force: true });
  });

  async function found(files: Readonly<Record<string, string>>, manifest = MANIFEST): Promise<string> {
    for (const [path, content] of Object.entries(files)) {
      await mkdir(dirname(join(folder, path)), { recursive: true });
      await writeFile(join(folder, path), content);
    }
    const { name, version, directory } = { name: 'x', version: '1.0.0', directory: 'packages/x' };
    const findings = await checkFiles({
      source: { name, version, directory, folder: source, manifest, needs: [] },
      folder,
      manifest,
      files: Object.keys(files).sort(),
    });
    return findings.map(({ message }) => message).join('\n');
  }

  it('accepts a correct package', async () => {
    expect(await found(GOOD)).toBe('');
  });

  it.each(['README.md', 'LICENSE'])('reports that %s is missing', async (missing) => {
    const { [missing]: _without, ...files } = GOOD;

    expect(await found(files)).toBe(`${missing} is not packed`);
  });

  it('reports that the changelog is missing if the source has one', async () => {
    await writeFile(join(source, 'CHANGELOG.md'), '');

    expect(await found(GOOD)).toBe('CHANGELOG.md is not packed');
  });

  it.each([
    'test/x.test.ts',
    'dist/x.test.js',
    'dist/.tsbuildinfo',
    'tsconfig.json',
    'jest.config.cjs',
    '.npmrc',
    'node_modules/y/index.js',
    'run.log',
  ])('reports %s as unwanted', async (file) => {
    expect(await found({ ...GOOD, [file]: '' })).toContain(`${file} is `);
  });

  it('accepts additional files in templates', async () => {
    expect(await found({ ...GOOD, 'templates/x/test/x.test.ts': '', 'templates/x/tsconfig.json': '{}' })).toBe('');
  });

  it('reports missing entries and programs', async () => {
    const manifest = { ...MANIFEST, exports: { './y': './dist/y.js' }, bin: { z: './dist/z.js' } };

    const messages = await found(GOOD, manifest);

    expect(messages).toContain('package.json names ./dist/y.js, which is not packed');
    expect(messages).toContain('the program z refers to ./dist/z.js, which is not packed');
  });

  it('reports a program without interpreter line', async () => {
    expect(await found({ ...GOOD, 'dist/bin.js': "'use strict';\n" })).toContain(
      'must begin with "#!/usr/bin/env node"',
    );
  });

  it.each(['../src/gone.ts', '../../elsewhere/index.ts'])('reports a source map that points to %s', async (target) => {
    const map = JSON.stringify({ sources: [target] });

    expect(await found({ ...GOOD, 'dist/index.js.map': map })).toBe(
      `dist/index.js.map points to ${target}, which is not packed`,
    );
  });

  it('reports a bundle without its notices and the list of its parts', async () => {
    expect(await found({ ...GOOD, 'dist/vendor/x.cjs': '' })).toBe(
      'dist/vendor/x.cdx.json is not packed; tooling/setup/bundle.mjs writes it\n' +
        'dist/vendor/x.notices.txt is not packed; tooling/setup/bundle.mjs writes it',
    );
  });

  it('accepts a source map that contains its sources', async () => {
    const map = JSON.stringify({ sources: ['../src/gone.ts'], sourcesContent: [''] });

    expect(await found({ ...GOOD, 'dist/index.js.map': map })).toBe('');
  });
});

/** Findings from using an installed package. */

import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { chmod, mkdir, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { JsonObject } from '@nodepool/core';
import { checkExports, checkSmoke } from '../src/checks/smoke.js';
import { run } from '../src/command.js';
import type { Finding } from '../src/finding.js';
import { readWorkspace, workspaceRoot, type PublicPackage } from '../src/workspace.js';

const SMOKE_TESTS = join(__dirname, '..', 'smoke');
const EXPORTS = { '.': './index.js', './package.json': './package.json' };

describe('the check of an installed package', () => {
  let folder: string;

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'nodepool-installed-'));
  });

  afterEach(() => {
    rmSync(folder, { recursive: true, force: true });
  });

  async function installed(fields: JsonObject, files: Readonly<Record<string, string>>): Promise<PublicPackage> {
    const manifest = { name: 'x', version: '1.2.3', exports: EXPORTS, ...fields };
    const root = join(folder, 'node_modules', 'x');
    for (const [path, content] of Object.entries({ 'package.json': JSON.stringify(manifest), ...files })) {
      await mkdir(dirname(join(root, path)), { recursive: true });
      await writeFile(join(root, path), content);
    }
    return { name: 'x', version: '1.2.3', directory: 'packages/x', folder: root, manifest, needs: [] };
  }

  async function withProgram(script: string): Promise<PublicPackage> {
    const subject = await installed({ bin: { run: 'bin.js' } }, { 'bin.js': `#!/usr/bin/env node\n${script}` });
    await chmod(join(subject.folder, 'bin.js'), 0o755);
    await mkdir(join(folder, 'node_modules', '.bin'));
    await symlink(join('..', 'x', 'bin.js'), join(folder, 'node_modules', '.bin', 'run'));
    return subject;
  }

  const said = (findings: readonly Finding[]): string => findings.map(({ message }) => message).join('\n');

  it('accepts a package with the same names for require and import', async () => {
    const subject = await installed({}, { 'index.js': 'exports.a = 1; exports.b = 2;' });

    expect(said(await checkExports(subject, folder))).toBe('');
  });

  it('reports a name that require returns and import does not', async () => {
    const subject = await installed({}, { 'index.js': "exports.a = 1; exports['b' + 1] = 2;" });

    expect(said(await checkExports(subject, folder))).toContain('import of "x" lacks b1');
  });

  it('reports a package without exports', async () => {
    const subject = await installed({}, { 'index.js': '' });

    expect(said(await checkExports(subject, folder))).toContain('require("x") returns no names');
  });

  it('reports an entry that does not load', async () => {
    const subject = await installed(
      { exports: { ...EXPORTS, './y': './y.js' } },
      { 'index.js': 'exports.a = 1;', 'y.js': "require('not-there');" },
    );

    expect(said(await checkExports(subject, folder))).toContain("Cannot find module 'not-there'");
  });

  it('accepts a program that prints its version and its usage', async () => {
    const subject = await withProgram("console.log(process.argv[2] === '--version' ? '1.2.3' : 'Usage: run');");

    expect(said(await checkSmoke(subject, folder))).toBe('');
  });

  it.each([
    [
      "console.log(process.argv[2] === '--version' ? '1.2.2' : 'Usage: run');",
      'run --version prints "1.2.2", not 1.2.3',
    ],
    ["console.log('1.2.3');", 'run --help does not print its usage'],
    ['process.exit(3);', 'exit status 3'],
  ])('reports the program %s', async (script, message) => {
    const subject = await withProgram(script);

    expect(said(await checkSmoke(subject, folder))).toContain(message);
  });

  it('requires that a driver has the name in its package.json', async () => {
    const driver = "exports.driver = { name: 'd', schema: {}, getProviderConfig() {} };";
    const honest = await installed({ nodepool: { driver: 'd', api: 1 } }, { 'index.js': driver });
    expect(said(await checkSmoke(honest, folder))).toBe('');

    const other = await installed({ nodepool: { driver: 'e', api: 1 } }, { 'index.js': driver });
    expect(said(await checkSmoke(other, folder))).toContain('instead of {"name":"e"');

    const drivers = { d: 'one', e: 'two' };
    const two = await installed({ nodepool: { drivers, api: 1 } }, { 'index.js': driver.replace('driver', 'one') });
    expect(said(await checkSmoke(two, folder))).toContain("Cannot read properties of undefined (reading 'name')");
  });

  it('requires a smoke test for a library', async () => {
    const subject = await installed({}, { 'index.js': 'exports.a = 1;' });

    expect(said(await checkSmoke(subject, folder))).toContain('write tooling/release/smoke/x.cjs');
  });
});

it('the smoke tests of all libraries pass', async () => {
  const { packages } = await readWorkspace(workspaceRoot());
  const libraries = packages.filter(({ manifest }) => !('bin' in manifest) && !('nodepool' in manifest));
  expect(libraries.length).toBeGreaterThan(5);
  for (const { directory, folder } of libraries) {
    const program = readFileSync(join(SMOKE_TESTS, `${basename(directory)}.cjs`), 'utf8');
    await run(process.execPath, ['--eval', program], { cwd: folder, timeoutMs: 600_000 });
  }
});

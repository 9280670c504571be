/** A newly created driver: it compiles, fulfils the contract, passes its lint, and can be named in a configuration. */

import { execFile } from 'node:child_process';
import { mkdirSync, rmSync } from 'node:fs';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { delimiter, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, it } from '@jest/globals';
import { DRIVER_API } from '@nodepool/core';
import { loadConfig } from '@nodepool/config';
import { satisfies } from 'semver';
import { createDriver, FRAMEWORKS, namesOf, type Framework } from '../src/index.js';

const run = promisify(execFile);

/** Scratch folder inside this package, so that dependencies resolve; ignored by git. */
const SCRATCH = join(__dirname, '..', 'dist-test', 'created');
const BIN = join(__dirname, '..', '..', '..', 'node_modules', '.bin');
const TIMEOUT_MS = 600_000;
/**
 * Environment with the tools of this workspace, and without the variables of this test runner, which would affect the
 * driver's own test runner.
 */
const env = {
  ...process.env,
  PATH: `${BIN}${delimiter}${process.env['PATH'] ?? ''}`,
  NODE_TEST_CONTEXT: undefined,
  NODE_OPTIONS: undefined,
};

interface Manifest {
  readonly nodepool: { readonly driver: string; readonly api: number };
  readonly peerDependencies: Readonly<Record<string, string>>;
  readonly devDependencies: Readonly<Record<string, string>>;
}

async function manifestOf(folder: string): Promise<Manifest> {
  return JSON.parse(await readFile(join(folder, 'package.json'), 'utf8')) as Manifest;
}

async function versionOf(workspacePackage: string): Promise<string> {
  const file = join(__dirname, '..', '..', workspacePackage, 'package.json');
  return (JSON.parse(await readFile(file, 'utf8')) as { version: string }).version;
}

describe.each(Object.keys(FRAMEWORKS) as Framework[])('a new driver on the framework %s', (framework) => {
  // Package names must differ: jest combines all packages that it finds into one collection.
  const name = `moon-${framework}`;
  const folder = join(SCRATCH, name);

  beforeAll(async () => {
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(SCRATCH, { recursive: true });
    await createDriver({ names: namesOf(name), framework, folder });
    await run('npm', ['run', 'build'], { cwd: folder, env });
  }, TIMEOUT_MS);

  it(
    'passes its tests, including the driver contract, without the deleted ones',
    async () => {
      const compiled = join(folder, 'dist-test', 'test', 'deleted.test.js');
      await mkdir(dirname(compiled), { recursive: true });
      await writeFile(compiled, "require('node:test').test('deleted', () => { throw new Error('was run'); });");

      const { stdout } = await run('npm', ['test'], { cwd: folder, env });

      expect(stdout).toMatch(/life\.launch/);
      // The launcher configuration of the driver names the compiled driver.
      await run('npm', ['run', 'build'], { cwd: folder, env });
    },
    TIMEOUT_MS,
  );

  it(
    'passes its linter',
    async () => {
      await run(join(BIN, 'eslint'), ['.'], { cwd: folder });
    },
    TIMEOUT_MS,
  );

  it('is found by the configuration of the package', async () => {
    const loaded = await loadConfig({ file: join(folder, 'nodepool.yaml'), env: {} });

    if (!loaded.ok) throw new Error(JSON.stringify(loaded.problems));
    expect([...loaded.config.brokenProviders.values()]).toEqual([]);
    expect(loaded.config.providers.get(`${name}-1`)?.driver).toBe(name);
  });

  it('contains no names of the template', async () => {
    const names = await readdir(folder, { recursive: true, withFileTypes: true });
    const files = names.filter((entry) => entry.isFile() && !entry.parentPath.includes(join(folder, 'dist')));
    for (const entry of files) {
      expect(entry.name).not.toMatch(/mycloud/i);
      expect(await readFile(join(entry.parentPath, entry.name), 'utf8')).not.toMatch(/mycloud/i);
    }
    expect(files.length).toBeGreaterThan(10);
  });

  it('uses this driver API and the versions of this workspace', async () => {
    const { nodepool, peerDependencies, devDependencies } = await manifestOf(folder);

    expect(nodepool).toEqual({ driver: name, api: DRIVER_API });
    expect(satisfies(await versionOf('core'), peerDependencies['@nodepool/core'] ?? '')).toBe(true);
    for (const name of ['cli', 'core', 'driver-kit', 'launcher']) {
      expect(satisfies(await versionOf(name), devDependencies[`@nodepool/${name}`] ?? '')).toBe(true);
    }
  });
});

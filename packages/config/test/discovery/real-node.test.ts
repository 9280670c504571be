/** Loading by Node.js itself, whose module loader jest replaces, for both kinds of modules. */

import { execFile } from 'node:child_process';
import { readFileSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { transformSync } from '@swc/core';
import { DRIVER_BODY, Site } from './site.js';

const CONFIG = join(__dirname, '..', '..');
const CORE = dirname(require.resolve('@nodepool/core/package.json'));
const DISCOVERY = './packages/config/src/discovery/discovery.js';

/** The sources of config and core, compiled, with their dependencies. */
let compiled: Site;
let site: Site;

beforeAll(() => {
  compiled = new Site();
  compile(CONFIG, 'config', 'src/discovery/discovery.ts', new Set());
  compile(CORE, 'core', 'src/index.ts', new Set());
  compiled.write(
    'core/package.json',
    JSON.stringify({ name: '@nodepool/core', version: '0.0.0', main: 'src/index.js' }),
  );
  compiled.link('node_modules/@nodepool/core', 'core');
  symlinkSync(join(CONFIG, 'node_modules', 'semver'), join(compiled.path, 'node_modules', 'semver'));
});

beforeEach(() => {
  site = new Site();
  symlinkSync(compiled.path, join(site.path, 'packages'));
});

afterEach(() => site.remove());
afterAll(() => compiled.remove());

/** Compiles the file and its imports of the same package into a folder of the package's name. */
function compile(folder: string, name: string, file: string, done: Set<string>): void {
  if (done.has(file)) return;
  done.add(file);
  const { code } = transformSync(readFileSync(join(folder, file), 'utf8'), {
    filename: file,
    jsc: { target: 'es2022', parser: { syntax: 'typescript' } },
    module: { type: 'commonjs', ignoreDynamic: true },
  });
  compiled.write(join(name, file.replace(/\.ts$/, '.js')), code);
  for (const [, relative] of code.matchAll(/require\("(\.[^"]+)\.js"\)/g)) {
    compile(folder, name, join(dirname(file), `${relative ?? ''}.ts`), done);
  }
}

/** Loads a driver in a separate process. Resolves with its name or the error. */
async function load(name: string): Promise<string> {
  const program = `
    const { loadDriver } = require('${DISCOVERY}');
    loadDriver(${JSON.stringify(name)}, { aliases: new Map(), configFolder: process.cwd(), folders: [process.cwd()] }).then(
      (loaded) => console.log(loaded.driver.name),
      (error) => console.log(error.reason + ': ' + error.message),
    );`;
  const { stdout } = await promisify(execFile)(process.execPath, ['-e', program], { cwd: site.path });
  return stdout.trim();
}

function esModule(folder: string, exports: unknown, code: string, driver = 'esm'): void {
  const manifest = { name: '@acme/esm', type: 'module', nodepool: { driver, api: 1 }, exports };
  site.package(folder, manifest, 'lib/main.js', code);
}

describe('Node.js loads a driver', () => {
  const body = DRIVER_BODY.replace('NAME', 'esm');

  it('that is a CommonJS package', async () => {
    site.driver('node_modules/@nodepool/driver-x', '@nodepool/driver-x', 'x');
    expect(await load('x')).toBe('x');
  });

  it.each<[string, unknown]>([
    ['any condition', './lib/main.js'],
    ['the condition `import` only', { '.': { types: './lib/main.d.ts', import: './lib/main.js' } }],
    ['nested conditions', { '.': { browser: './no.js', node: { import: ['./lib/main.js'] } } }],
  ])('that is an ES module, exported for %s', async (_what, exports) => {
    esModule('node_modules/@acme/esm', exports, `export default ${body};`);
    expect(await load('@acme/esm')).toBe('esm');
  });

  it('that is an ES module which awaits something while it loads', async () => {
    esModule('node_modules/@acme/esm', './lib/main.js', `await null; export const driver = ${body};`);
    expect(await load('@acme/esm')).toBe('esm');
  });

  it('that is an ES module at a path', async () => {
    esModule('drivers/esm', './lib/main.js', `export const driver = ${body};`);
    expect(await load('./drivers/esm')).toBe('esm');
  });

  it('not when an ES module fails, and reports the failure', async () => {
    esModule('node_modules/@acme/esm', './lib/main.js', 'await null; throw new Error("no cloud today");');
    expect(await load('@acme/esm')).toMatch(/^broken: .*no cloud today/);
  });
});

describe('a driver that is installed while the program runs', () => {
  /**
   * Loads the driver, runs `change` in the same process, and loads it again. Resolves with names, versions and
   * warnings.
   */
  async function loadTwice(name: string, change: string): Promise<unknown> {
    const program = `
      const { readFileSync, renameSync, symlinkSync, unlinkSync, writeFileSync } = require('node:fs');
      const { loadDriver } = require('${DISCOVERY}');
      const search = { aliases: new Map(), configFolder: process.cwd(), folders: [process.cwd()] };
      const load = () => loadDriver(${JSON.stringify(name)}, search).then(
        ({ driver, version, warnings }) => [driver.name, version, warnings],
        ({ reason }) => reason,
      );
      const replace = (file, from, to) => writeFileSync(file, readFileSync(file, 'utf8').replace(from, to));
      (async () => {
        const first = await load();
        ${change}
        console.log(JSON.stringify([first, await load()]));
      })();`;
    const { stdout } = await promisify(execFile)(process.execPath, ['-e', program], { cwd: site.path });
    return JSON.parse(stdout);
  }

  const folder = 'node_modules/@acme/x';
  const oldRuns = [
    ['old', '1.2.3', []],
    ['old', '1.2.3', [expect.stringMatching(/^version 1\.3\.0 of @acme\/\w+ is installed, and 1\.2\.3 runs; restart/)]],
  ];

  it('for the first time is used', async () => {
    site.driver('node_modules/@acme/hidden', '@acme/x', 'x');
    expect(await loadTwice('@acme/x', `renameSync('node_modules/@acme/hidden', '${folder}');`)).toEqual([
      'not-installed',
      ['x', '1.2.3', []],
    ]);
  });

  it('in another version is not replaced, and a warning requests a restart', async () => {
    site.driver(folder, '@acme/x', 'old');
    const change = `replace('${folder}/package.json', '1.2.3', '1.3.0'); replace('${folder}/index.js', "'old'", "'new'");`;
    expect(await loadTwice('@acme/x', change)).toEqual(oldRuns);
  });

  it('in another version is not replaced, also as an ES module', async () => {
    esModule('node_modules/@acme/esm', './lib/main.js', `export default ${DRIVER_BODY.replace('NAME', 'old')};`, 'old');
    const change = `
      replace('node_modules/@acme/esm/package.json', '1.2.3', '1.3.0');
      replace('node_modules/@acme/esm/lib/main.js', "'old'", "'new'");`;
    expect(await loadTwice('@acme/esm', change)).toEqual(oldRuns);
  });

  it('in another version is not replaced, also behind a symbolic link, as pnpm installs packages', async () => {
    site.driver('store/old', '@acme/x', 'old');
    site.package('store/new', { name: '@acme/x', version: '1.3.0' }, 'index.js', 'throw new Error("not loaded");');
    site.link(folder, 'store/old');
    const change = `unlinkSync('${folder}'); symlinkSync('../../store/new', '${folder}');`;
    expect(await loadTwice('@acme/x', change)).toEqual(oldRuns);
  });
});

/** Loading by Node.js itself, whose treatment of modules jest replaces: both kinds of modules, as sites have them. */

import { execFile } from 'node:child_process';
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { transformSync } from '@swc/core';
import { DRIVER_BODY, Site } from './site.js';

const SOURCES = join(__dirname, '..', '..', 'src');

let site: Site;

beforeEach(() => {
  site = new Site();
  compile('driver/discovery/discovery.ts', new Set());
  symlinkSync(join(SOURCES, '..', 'node_modules'), join(site.path, 'core', 'node_modules'));
});

afterEach(() => site.remove());

/** Compiles the file and what it imports of ours into the site. */
function compile(file: string, done: Set<string>): void {
  if (done.has(file)) return;
  done.add(file);
  const { code } = transformSync(readFileSync(join(SOURCES, file), 'utf8'), {
    filename: file,
    jsc: { target: 'es2022', parser: { syntax: 'typescript' } },
    module: { type: 'commonjs', ignoreDynamic: true },
  });
  const output = join(site.path, 'core', file.replace(/\.ts$/, '.js'));
  mkdirSync(dirname(output), { recursive: true });
  writeFileSync(output, code);
  for (const [, relative] of code.matchAll(/require\("(\.[^"]+)\.js"\)/g)) {
    compile(join(dirname(file), `${relative ?? ''}.ts`), done);
  }
}

/** Loads a driver in a process of its own; gives its name, or what went wrong. */
async function load(name: string): Promise<string> {
  const program = `
    const { loadDriver } = require('./core/driver/discovery/discovery.js');
    loadDriver(${JSON.stringify(name)}, { aliases: new Map(), configFolder: process.cwd(), folders: [process.cwd()] }).then(
      (loaded) => console.log(loaded.driver.name),
      (error) => console.log(error.reason + ': ' + error.message),
    );`;
  const { stdout } = await promisify(execFile)(process.execPath, ['-e', program], { cwd: site.path });
  return stdout.trim();
}

function esModule(folder: string, exports: unknown, code: string): void {
  const manifest = { name: '@acme/esm', type: 'module', nodepool: { driver: 'esm', api: 1 }, exports };
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

  it('not when an ES module fails, and tells why', async () => {
    esModule('node_modules/@acme/esm', './lib/main.js', 'await null; throw new Error("no cloud today");');
    expect(await load('@acme/esm')).toMatch(/^broken: .*no cloud today/);
  });
});

describe('Node.js loads a driver again', () => {
  /** Loads it, runs `change` in the same process, loads it again; gives versions, names of the loaded drivers, warnings. */
  async function loadTwice(name: string, change: string): Promise<unknown> {
    const program = `
      const { writeFileSync, readFileSync } = require('node:fs');
      const { loadDriver } = require('./core/driver/discovery/discovery.js');
      const search = { aliases: new Map(), configFolder: process.cwd(), folders: [process.cwd()] };
      const told = ({ driver, version, warnings }) => [driver.name, version, warnings];
      const replace = (file, from, to) => writeFileSync(file, readFileSync(file, 'utf8').replace(from, to));
      (async () => {
        const first = await loadDriver(${JSON.stringify(name)}, search);
        ${change}
        const second = await loadDriver(${JSON.stringify(name)}, search);
        const third = await loadDriver(${JSON.stringify(name)}, search);
        console.log(JSON.stringify({ first: told(first), second: told(second), same: second.driver === third.driver, old: first.driver.name }));
      })();`;
    const { stdout } = await promisify(execFile)(process.execPath, ['-e', program], { cwd: site.path });
    return JSON.parse(stdout);
  }

  const folder = 'node_modules/@acme/x';
  const upgrade = `replace('${folder}/package.json', '1.2.3', '1.3.0');`;

  it('when another version lies in its place, with its own files and those that it brought along', async () => {
    site.driver(folder, '@acme/x', 'NAME');
    site.write(
      `${folder}/index.js`,
      `exports.driver = ${DRIVER_BODY.replace("'NAME'", "require('./name.js') + require('lib')")};`,
    );
    site.write(`${folder}/name.js`, 'module.exports = "old ";');
    site.package('node_modules/lib', { name: 'lib' }, 'index.js', 'module.exports = "lib 1";');
    const change = `${upgrade} replace('${folder}/name.js', 'old', 'new'); replace('node_modules/lib/index.js', 'lib 1', 'lib 2');`;
    expect(await loadTwice('@acme/x', change)).toEqual({
      first: ['old lib 1', '1.2.3', []],
      second: ['new lib 2', '1.3.0', []],
      same: true,
      old: 'old lib 1',
    });
  });

  it('not as long as its version is the same', async () => {
    site.driver(folder, '@acme/x', 'old');
    const change = `replace('${folder}/index.js', "'old'", "'new'");`;
    expect(await loadTwice('@acme/x', change)).toMatchObject({ second: ['old', '1.2.3', []], same: true });
  });

  it('not when it is an ES module, and says that a restart is needed', async () => {
    esModule('node_modules/@acme/esm', './lib/main.js', `export default ${DRIVER_BODY.replace('NAME', 'old')};`);
    const change = `
      replace('node_modules/@acme/esm/package.json', '1.2.3', '1.3.0');
      replace('node_modules/@acme/esm/lib/main.js', "'old'", "'new'");`;
    expect(await loadTwice('@acme/esm', change)).toMatchObject({
      second: ['old', '1.2.3', [expect.stringMatching(/1\.3\.0 is installed, and 1\.2\.3 still runs.*restart/)]],
    });
  });
});

// Runs the tests of packages on another Node.js, which npm brings: `pnpm test:node VERSION [PACKAGE…]`.
//
// VERSION is one that npm understands, e.g. 22 or 24.11.0. PACKAGE is a folder below packages/ or tooling/; default: all
// published packages, and the programs as processes.

import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = join(dirname(fileURLToPath(import.meta.url)), '..', '..');
const published = readdirSync(join(root, 'packages')).map((name) => join('packages', name));
const DEFAULT_FOLDERS = [...published, 'tooling/e2e'];

const [version, ...named] = process.argv.slice(2);
if (version === undefined || !/^[0-9]+(\.[0-9]+){0,2}$/.test(version)) {
  console.error('Usage: pnpm test:node VERSION [PACKAGE…]');
  process.exit(2);
}

/** Runs a command in sight. Returns true if it succeeded. */
function run(command, args, options) {
  const { status, error } = spawnSync(command, args, { stdio: 'inherit', cwd: root, ...options });
  if (error !== undefined) throw error;
  return status === 0;
}

const carrier = `node-${process.platform === 'win32' ? 'win' : process.platform}-${process.arch}`;
const folder = join(root, '.tools', `node-${version}`);
const bin = join(folder, 'node_modules', carrier, 'bin');
if (!existsSync(join(bin, 'node'))) {
  const options = ['--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'];
  if (!run('npm', ['install', '--prefix', folder, ...options, `${carrier}@${version}`])) process.exit(1);
}

const env = { ...process.env, PATH: `${bin}${delimiter}${process.env.PATH}` };
const jest = join(dirname(createRequire(join(root, 'package.json')).resolve('jest/package.json')), 'bin', 'jest.js');
const folderOf = (name) =>
  ['packages', 'tooling'].map((parent) => join(parent, name)).find((each) => existsSync(join(root, each))) ?? name;
const failed = (named.length === 0 ? DEFAULT_FOLDERS : named.map(folderOf)).filter((name) => {
  console.log(`\n${name} on ${spawnSync(join(bin, 'node'), ['--version'], { encoding: 'utf8' }).stdout.trim()}`);
  return !run(join(bin, 'node'), [jest, '--reporters=default'], { cwd: join(root, name), env });
});
if (failed.length > 0) {
  console.error(`failed on Node.js ${version}: ${failed.join(', ')}`);
  process.exitCode = 1;
}

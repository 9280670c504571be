/**
 * Implements `pnpm run draw [SEED]`: prints ten source files and five pages, drawn at random, for a review of their
 * language.
 */

import { execFileSync } from 'node:child_process';
import { seededRandom } from '@nodepool/core/testing';
import { REPOSITORY } from './repository.js';

const SOURCE_FILES = 10;
const PAGES = 5;
const MAX_SEED = 2 ** 32;

function main(argument = String(Math.floor(Math.random() * MAX_SEED))): void {
  const seed = Number(argument);
  if (argument.trim() === '' || !Number.isInteger(seed) || seed < 0 || seed >= MAX_SEED) {
    throw new Error(`the seed must be an integer from 0 to ${MAX_SEED - 1}, not ${JSON.stringify(argument)}`);
  }
  const random = seededRandom(seed);
  const draw = (count: number, files: readonly string[]): string[] => {
    const keyed = files.map((file) => ({ file, key: random.next() })).sort((a, b) => a.key - b.key);
    return keyed.slice(0, count).map(({ file }) => file);
  };
  const sources = draw(SOURCE_FILES, trackedFiles('packages/*/src/*.ts', 'tooling/*/src/*.ts'));
  const pages = draw(PAGES, trackedFiles('README.md', 'docs/*.md', 'packages/*/README.md', 'tooling/*/README.md'));
  process.stdout.write([`seed ${seed}`, '', ...sources, '', ...pages, ''].join('\n'));
}

/** Returns the tracked files that match any of git's patterns, in which `*` also matches slashes. */
function trackedFiles(...patterns: readonly string[]): string[] {
  const output = execFileSync('git', ['ls-files', '-z', '--', ...patterns], { cwd: REPOSITORY, encoding: 'utf8' });
  return output.split('\0').filter((file) => file !== '');
}

try {
  main(process.argv[2]);
} catch (error) {
  process.stderr.write(`Nothing was drawn: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
}

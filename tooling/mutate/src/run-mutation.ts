/** Runs the tests of one mutation. The mutation is applied while jest compiles the file, so no file changes. */

import { spawn } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { systemClock } from '@nodepool/core';
import { mutated, type Mutation } from './mutation.js';

export interface RunOptions {
  /** Root of the repository. */
  readonly root: string;
  /**
   * Limit of a test file, or of the tests of one package (ms). Tests that exceed it, e.g. in an endless loop, have seen
   * the defect.
   */
  readonly limitMs: number;
}

export interface MutationResult {
  readonly mutation: Mutation;
  /** The first package whose tests have failed, or were stopped; undefined if all tests pass. */
  readonly seenBy: string | undefined;
  readonly stopped: boolean;
  /** Output of the tests that failed, or of the last ones. */
  readonly output: string;
}

/** Resolves with the first package whose tests fail. Rejects if the mutation does not fit the sources. */
export async function runMutation(mutation: Mutation, options: RunOptions): Promise<MutationResult> {
  mutated(await readFile(join(options.root, mutation.file), 'utf8'), mutation);
  let output = '';
  // One after the other, because the first one usually sees the defect.
  for (const test of mutation.tests) {
    const { folder, path } = placeOf(test, options.root);
    const run = await runJest(mutation, folder, path, options);
    ({ output } = run);
    if (run.failed) return { mutation, seenBy: folder, stopped: run.stopped, output };
  }
  return { mutation, seenBy: undefined, stopped: false, output };
}

/** Returns the folder of the package of a test, and the test's path in it: empty for all tests of the package. */
function placeOf(test: string, root: string): { readonly folder: string; readonly path: string } {
  let folder = test;
  while (!existsSync(join(root, folder, 'package.json'))) folder = dirname(folder);
  return { folder, path: test.slice(folder.length + 1) };
}

interface JestRun {
  readonly failed: boolean;
  readonly stopped: boolean;
  readonly output: string;
}

function runJest(mutation: Mutation, folder: string, path: string, { root, limitMs }: RunOptions): Promise<JestRun> {
  const selection = path === '' ? ['--findRelatedTests', join(root, mutation.file)] : ['--runTestsByPath', path];
  const jest = join(root, 'node_modules', 'jest', 'bin', 'jest.js');
  const { file, find, replace } = mutation;
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [jest, '--reporters=default', '--bail=1', '--ci', ...selection], {
      cwd: join(root, folder),
      // A group of its own, so that the workers of jest end with it.
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, NODEPOOL_MUTATION: JSON.stringify({ file: join(root, file), find, replace }) },
    });
    let output = '';
    const collect = (data: Buffer): void => {
      output = (output + data.toString()).slice(-MAX_OUTPUT);
    };
    child.stdout.on('data', collect);
    child.stderr.on('data', collect);
    let stopped = false;
    const timer = systemClock.schedule(limitMs, () => {
      stopped = true;
      if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
    });
    child.once('error', reject);
    child.once('close', (code) => {
      timer.cancel();
      // A failure of jest itself proves nothing.
      if (stopped || /^Tests: /m.test(output)) resolve({ failed: code !== 0, stopped, output });
      else reject(new Error(`mutation ${mutation.id}: jest ran no tests in ${folder}: ${output}`));
    });
  });
}

const MAX_OUTPUT = 200_000;

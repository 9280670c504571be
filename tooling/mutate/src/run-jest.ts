/** Runs one test file, with a defect or without. The defect is applied while jest compiles the file. */

import { spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '@nodepool/core';
import { packageOf } from './places.js';

export interface JestOptions {
  /** Root of the repository. */
  readonly root: string;
  /** Limit of a test file (ms). */
  readonly limitMs: number;
  /** Ends the tests. */
  readonly signal?: AbortSignal | undefined;
}

/** A replacement of a text in a file, whose path starts at the root of the repository. */
export interface Change {
  readonly file: string;
  readonly find: string;
  readonly replace: string;
}

export interface JestRun {
  readonly failed: boolean;
  /** The tests did not end within the limit, or used up the memory. */
  readonly stopped: boolean;
  /** Name of the first failed test; undefined if none failed, or if the file failed as a whole. */
  readonly failedTest: string | undefined;
  readonly output: string;
}

/** Runs a test file until its first failed test. Rejects if jest runs no test. */
export async function runJest(change: Change | undefined, test: string, options: JestOptions): Promise<JestRun> {
  // The files that stopped tests leave behind are deleted with this folder.
  const temporary = await mkdtemp(join(tmpdir(), 'mutate-'));
  try {
    return await runIn(temporary, change, test, options);
  } finally {
    await rm(temporary, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
  }
}

function runIn(temporary: string, change: Change | undefined, test: string, options: JestOptions): Promise<JestRun> {
  const { root, limitMs, signal } = options;
  signal?.throwIfAborted();
  const folder = packageOf(test);
  const args = [
    join(root, 'node_modules', 'jest', 'bin', 'jest.js'),
    '--ci',
    `--cacheDirectory=${join(root, 'node_modules', '.cache', 'mutate')}`,
    '--reporters=default',
    `--reporters=${join(root, 'tooling', 'jest', 'first-failure-reporter.cjs')}`,
    '--runTestsByPath',
    test.slice(folder.length + 1),
  ];
  const defect = change === undefined ? null : { ...change, file: join(root, change.file) };
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, args, {
      cwd: join(root, folder),
      // A group of its own, so that the programs that tests have started end with them.
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, TMPDIR: temporary, NODEPOOL_MUTATION: JSON.stringify(defect) },
    });
    const kill = (): void => {
      if (child.pid !== undefined && child.exitCode === null && child.signalCode === null) {
        process.kill(-child.pid, 'SIGKILL');
      }
    };
    let output = '';
    let failedTest: string | undefined;
    const collect = (data: Buffer): void => {
      output = (output + data.toString()).slice(-MAX_OUTPUT);
      failedTest ??= /^First failed test: (.*)\n/m.exec(output)?.[1];
      if (failedTest !== undefined) kill();
    };
    child.stdout.on('data', collect);
    child.stderr.on('data', collect);
    let tooLong = false;
    const timer = systemClock.schedule(limitMs, () => {
      tooLong = true;
      kill();
    });
    signal?.addEventListener('abort', kill);
    child.once('error', reject);
    child.once('close', (code) => {
      timer.cancel();
      signal?.removeEventListener('abort', kill);
      const stopped = failedTest === undefined && (tooLong || output.includes('heap out of memory'));
      if (signal?.aborted === true) reject(signal.reason as Error);
      // A failure of jest itself proves nothing.
      else if (!stopped && failedTest === undefined && !/^Tests: /m.test(output)) {
        reject(new Error(`jest ran no tests of ${test}: ${output}`));
      } else resolve({ failed: stopped || code !== 0, stopped, failedTest, output });
    });
  });
}

const MAX_OUTPUT = 200_000;

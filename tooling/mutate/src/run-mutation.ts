/** Runs the tests of one defect. */

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { systemClock } from '@nodepool/core';
import type { Mutation } from './mutation.js';
import { placesOf } from './places.js';
import { runJest, type JestOptions } from './run-jest.js';

export interface MutationResult {
  readonly mutation: Mutation;
  /** The first test file that fails, or that was stopped; undefined if all tests pass. */
  readonly seenBy: string | undefined;
  /** The first failed test; undefined if all pass, or if the file failed as a whole or was stopped. */
  readonly failedTest: string | undefined;
  readonly stopped: boolean;
  /** Duration of the tests (ms). */
  readonly ms: number;
  /** Output of the tests that failed, or of the last ones. */
  readonly output: string;
}

/** Resolves with the first test file that fails. Rejects if the defect does not fit the sources. */
export async function runMutation(mutation: Mutation, options: JestOptions): Promise<MutationResult> {
  const { file, tests } = placesOf(mutation, options.root);
  const change = { file, find: mutation.find, replace: mutation.replace };
  const since = systemClock.monotonic();
  let output = '';
  // One after the other, because the first one usually sees the defect.
  for (const test of tests) {
    let run = await runJest(change, test, options);
    if (run.stopped) {
      const passMs = await durationOf(test, options);
      // The machine is too busy for the limit, which then proves nothing.
      if (passMs > options.limitMs / 2) run = await runJest(change, test, { ...options, limitMs: 4 * passMs });
    }
    const { failed, failedTest, stopped } = run;
    ({ output } = run);
    if (failed) {
      return { mutation, seenBy: test, failedTest, stopped, ms: systemClock.monotonic() - since, output };
    }
  }
  const ms = systemClock.monotonic() - since;
  return { mutation, seenBy: undefined, failedTest: undefined, stopped: false, ms, output };
}

/** Resolves with the duration of a test file without a defect (ms). Rejects if it fails, or takes very long. */
async function durationOf(test: string, options: JestOptions): Promise<number> {
  const since = systemClock.monotonic();
  const { failed, stopped, output } = await runJest(undefined, test, { ...options, limitMs: 10 * options.limitMs });
  if (stopped) throw new Error(`${test} takes much longer than the limit without a defect, too; see --limit`);
  if (failed) throw new Error(`${test} fails without a defect, too: ${output}`);
  return systemClock.monotonic() - since;
}

/** Returns the file's text with the defect. */
export async function mutated(mutation: Mutation, root: string): Promise<string> {
  const text = await readFile(join(root, placesOf(mutation, root).file), 'utf8');
  return text.replace(mutation.find, () => mutation.replace);
}

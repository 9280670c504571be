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
    const { failed, failedTest, stopped, output: printed } = await runJest(change, test, options);
    output = printed;
    if (stopped) await expectEnd(test, options);
    if (failed) {
      return { mutation, seenBy: test, failedTest, stopped, ms: systemClock.monotonic() - since, output };
    }
  }
  const ms = systemClock.monotonic() - since;
  return { mutation, seenBy: undefined, failedTest: undefined, stopped: false, ms, output };
}

/** Rejects if a test file does not pass without a defect: its end within the limit would prove nothing. */
async function expectEnd(test: string, options: JestOptions): Promise<void> {
  const { failed, stopped, output } = await runJest(undefined, test, options);
  if (stopped) throw new Error(`${test} takes longer than the limit without a defect, too; see --limit`);
  if (failed) throw new Error(`${test} fails without a defect, too: ${output}`);
}

/** Returns the file's text with the defect. */
export async function mutated(mutation: Mutation, root: string): Promise<string> {
  const text = await readFile(join(root, placesOf(mutation, root).file), 'utf8');
  return text.replace(mutation.find, () => mutation.replace);
}

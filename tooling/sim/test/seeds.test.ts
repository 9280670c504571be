/** Launchers satisfy all rules under faults: `pnpm sim` as a test. */

import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';

/** The built program: jest's module system makes a seed twice as slow. */
const PROGRAM = join(__dirname, '..', 'dist', 'main.js');
/** `pnpm test:long` sets `NODEPOOL_SIM_SEEDS` to a larger number. */
const SEEDS = process.env['NODEPOOL_SIM_SEEDS'] ?? '20';
const WORKERS = '2';
const TIMEOUT_MS = 7_200_000;
const MAX_OUTPUT_BYTES = 64 * 1024 * 1024;

it(
  `launchers keep all rules in ${SEEDS} worlds with faults`,
  async () => {
    const args = [PROGRAM, '--seeds', SEEDS, '--workers', WORKERS];
    const { status, found } = await new Promise<{ status: number; found: string }>((resolve) => {
      const child = execFile(process.execPath, args, { maxBuffer: MAX_OUTPUT_BYTES }, (_error, output, errors) => {
        // Progress, and errors of the simulation itself, go to standard error.
        const status = child.exitCode ?? -1;
        resolve({ status, found: status === 1 && output === '' ? errors : output });
      });
    });
    expect({ status, found }).toEqual({ status: 0, found: '' });
  },
  TIMEOUT_MS,
);

/** Runs some test files of a package in another process, for tests on services that are not always there. */

import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { isJsonObject } from '@nodepool/core';
import { Program } from './process.js';

const ROOT = resolve(__dirname, '..', '..', '..');
const TIMEOUT_MS = 1_800_000;

export interface TestTotals {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
}

export interface TestFiles {
  /** Folder of the package, from the root of the repository. */
  readonly folder: string;
  /** Regular expression of their paths. */
  readonly pattern: string;
  /** Variables that name the services. */
  readonly env: Readonly<Record<string, string>>;
  /** True if the files share a service that only one of them can use at a time. */
  readonly inBand?: boolean;
  readonly interrupted: AbortSignal;
}

/** Prints what the tests print, and resolves with their numbers. A run without results counts as a failed test. */
export async function runTestFiles({
  folder,
  pattern,
  env,
  inBand = true,
  interrupted,
}: TestFiles): Promise<TestTotals> {
  const output = mkdtempSync(join(tmpdir(), 'nodepool-tests-'));
  const results = join(output, 'results.json');
  const order = inBand ? ['--runInBand'] : [];
  try {
    const jest = await Program.start({
      name: `the tests of ${folder}`,
      command: join(ROOT, 'node_modules', '.bin', 'jest'),
      args: ['--testPathPatterns', pattern, ...order, '--reporters=default', '--json', `--outputFile=${results}`],
      logFile: join(output, 'log'),
      cwd: join(ROOT, folder),
      env,
    });
    await jest.ends(TIMEOUT_MS, interrupted);
    // Jest may also print the results.
    const lines = readFileSync(join(output, 'log'), 'utf8').split('\n');
    const messages = lines.filter((line) => !line.startsWith('{"')).join('\n');
    process.stdout.write(`${messages.trimEnd()}\n`);
    if (!existsSync(results)) return { passed: 0, failed: 1, skipped: 0 };
    const found: unknown = JSON.parse(readFileSync(results, 'utf8'));
    const count = (key: string): number => (isJsonObject(found) ? Number(found[key] ?? 0) : 0);
    const failed = count('numFailedTests') + count('numRuntimeErrorTestSuites');
    return { passed: count('numPassedTests'), failed, skipped: count('numPendingTests') };
  } finally {
    rmSync(output, { recursive: true, force: true });
  }
}

/** Prints the sum as `./test` does, and sets the exit status. */
export function reportTotals(totals: readonly TestTotals[]): void {
  const sum = (key: keyof TestTotals): number => totals.reduce((all, each) => all + each[key], 0);
  process.stdout.write(`${sum('passed')} passed, ${sum('failed')} failed, ${sum('skipped')} skipped\n`);
  if (sum('failed') > 0) process.exitCode = 1;
}

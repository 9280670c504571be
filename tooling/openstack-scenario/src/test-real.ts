/**
 * Runs the tests of the simulation and of the driver that also run on real services (`*.cloud.test.ts`) on real
 * OpenStack services. The last line is the sum, in the format of `./test`. Without services it prints SKIPPED and exits
 * with status 0.
 */

import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { isJsonObject, untilAborted, type JsonObject } from '@nodepool/core';
import { REAL_CLOUD_VARIABLE } from '@nodepool/simulated-openstack';
import { interruption, Narrator, Program, runCommandLine } from '@nodepool/harness';
import { openRealOpenStack, volumesPossible } from './real-openstack.js';

const ROOT = resolve(__dirname, '..', '..', '..');
const PACKAGES = ['tooling/simulated-openstack', 'packages/driver-openstack'];
const CLOUD_TESTS = '\\.cloud\\.test\\.ts$';
const TIMEOUT_MS = 1_800_000;

interface TestTotals {
  passed: number;
  failed: number;
  skipped: number;
}

interface TestRun {
  readonly sum: TestTotals;
  readonly say: (line: string) => void;
  readonly interrupted: AbortSignal;
}

const HELP = `Usage: pnpm test:openstack

Runs the tests that can run on real OpenStack services on such services. Starts services unless OS_CLIENT_CONFIG_FILE
names running ones; takes minutes. Has no options but --help.

Exit status: 0 no test failed, or there are no services (SKIPPED); 1 a test failed; 2 wrong usage;
130 the run was interrupted.
`;

async function main(): Promise<void> {
  const { values } = parseArgs({ options: { help: { type: 'boolean', short: 'h', default: false } } });
  if (values.help) {
    process.stdout.write(HELP);
    return;
  }
  const interrupted = interruption();
  const narrator = new Narrator((line) => process.stderr.write(`${line}\n`));
  const say = (line: string): void => narrator.say(line);
  const sum: TestTotals = { passed: 0, failed: 0, skipped: 0 };
  const cloud = await openRealOpenStack(say, interrupted);
  if (typeof cloud === 'string') {
    process.stdout.write(`SKIPPED: ${cloud}\n`);
    sum.skipped = countTestFiles();
  } else {
    try {
      await untilAborted(volumesPossible(cloud.cloudsYaml), interrupted);
      for (const folder of PACKAGES) await runTests(folder, cloud.cloudsYaml, { sum, say, interrupted });
    } finally {
      await cloud.release();
    }
  }
  process.stdout.write(`${sum.passed} passed, ${sum.failed} failed, ${sum.skipped} skipped\n`);
  if (sum.failed > 0) process.exitCode = 1;
}

async function runTests(folder: string, cloudsYaml: string, { sum, say, interrupted }: TestRun): Promise<void> {
  if (cloudTestsIn(folder).length === 0) return;
  const output = mkdtempSync(join(tmpdir(), 'openstack-tests-'));
  const results = join(output, 'results.json');
  say(`${folder}: tests that can run on real services`);
  try {
    const jest = await Program.start({
      name: `the tests of ${folder}`,
      command: join(ROOT, 'node_modules', '.bin', 'jest'),
      args: [
        '--testPathPatterns',
        CLOUD_TESTS,
        '--runInBand',
        '--reporters=default',
        '--json',
        `--outputFile=${results}`,
      ],
      logFile: join(output, 'log'),
      cwd: join(ROOT, folder),
      env: { [REAL_CLOUD_VARIABLE]: cloudsYaml },
    });
    await jest.ends(TIMEOUT_MS, interrupted);
    process.stdout.write(`${withoutJson(readFileSync(join(output, 'log'), 'utf8'))}\n`);
    if (existsSync(results)) add(sum, JSON.parse(readFileSync(results, 'utf8')));
    else sum.failed += 1;
  } finally {
    rmSync(output, { recursive: true, force: true });
  }
}

function add(sum: TestTotals, results: unknown): void {
  const counts: JsonObject = isJsonObject(results) ? results : {};
  const count = (key: string): number => Number(counts[key] ?? 0);
  sum.passed += count('numPassedTests');
  sum.failed += count('numFailedTests') + count('numRuntimeErrorTestSuites');
  sum.skipped += count('numPendingTests');
}

function countTestFiles(): number {
  return PACKAGES.reduce((count, folder) => count + cloudTestsIn(folder).length, 0);
}

function cloudTestsIn(folder: string): string[] {
  const tests = join(ROOT, folder, 'test');
  return existsSync(tests) ? readdirSync(tests).filter((name) => new RegExp(CLOUD_TESTS).test(name)) : [];
}

/** Returns jest's messages without the results, which `--json` may also print to standard output. */
function withoutJson(text: string): string {
  return text
    .split('\n')
    .filter((line) => !line.startsWith('{"'))
    .join('\n')
    .trimEnd();
}

runCommandLine(HELP, main);

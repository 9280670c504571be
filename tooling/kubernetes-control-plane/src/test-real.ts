/**
 * Runs the tests of the Kubernetes drivers (`*.cluster.test.ts`) on a real control plane, and then launchers that are
 * killed again and again, with `kubectl` as the witness. The last line is the sum, as `./test` prints it. The program
 * prints SKIPPED and ends with status 0 if the programs of the control plane are missing.
 */

import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { isJsonObject, untilAborted } from '@nodepool/core';
import { interruption, Narrator, Program, runCommandLine } from '@nodepool/harness';
import { findBinaries } from './binaries.js';
import { startControlPlane } from './control-plane.js';
import { killStorm } from './kill-storm.js';
import { Kubelet } from './kubelet.js';

const ROOT = resolve(__dirname, '..', '..', '..');
const DRIVER_FOLDER = join(ROOT, 'packages', 'driver-kubernetes');
const TIMEOUT_MS = 1_800_000;

const HELP = `Usage: pnpm test:kubernetes

Runs the tests of the Kubernetes drivers on a real control plane, and then launchers that are killed again and again.
The first run builds the control plane, which takes minutes. Has no options but --help.

Exit status: 0 no test failed, or there is no control plane (SKIPPED); 1 a test failed; 2 wrong usage;
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
  const binaries = await findBinaries(say, interrupted);
  if (typeof binaries === 'string') {
    process.stdout.write(`SKIPPED: ${binaries}\n0 passed, 0 failed, 1 skipped\n`);
    return;
  }
  const plane = await startControlPlane(binaries, interrupted);
  const kubelet = new Kubelet(plane, say);
  kubelet.start();
  const sum = { passed: 0, failed: 0, skipped: 0 };
  try {
    say(`a control plane runs at ${plane.url}`);
    await runTests(plane.kubeconfig, sum, interrupted);
    say('launching 200 nodes while 20 launchers are killed');
    const problems = await untilAborted(killStorm(plane, say), interrupted);
    for (const problem of problems) process.stdout.write(`FAILED: ${problem}\n`);
    if (problems.length === 0) sum.passed += 1;
    else sum.failed += 1;
  } finally {
    await kubelet.stop();
    await plane.stop();
  }
  process.stdout.write(`${sum.passed} passed, ${sum.failed} failed, ${sum.skipped} skipped\n`);
  if (sum.failed > 0) process.exitCode = 1;
}

async function runTests(
  kubeconfig: string,
  sum: { passed: number; failed: number; skipped: number },
  interrupted: AbortSignal,
): Promise<void> {
  const output = mkdtempSync(join(tmpdir(), 'kubernetes-tests-'));
  const results = join(output, 'results.json');
  try {
    const jest = await Program.start({
      name: 'the tests',
      command: join(ROOT, 'node_modules', '.bin', 'jest'),
      args: [
        '--testPathPatterns',
        '\\.cluster\\.test\\.ts$',
        '--reporters=default',
        '--json',
        `--outputFile=${results}`,
      ],
      logFile: join(output, 'log'),
      cwd: DRIVER_FOLDER,
      env: { NODEPOOL_TEST_KUBECONFIG: kubeconfig },
    });
    await jest.ends(TIMEOUT_MS, interrupted);
    const lines = readFileSync(join(output, 'log'), 'utf8').split('\n');
    process.stdout.write(
      `${lines
        .filter((line) => !line.startsWith('{"'))
        .join('\n')
        .trimEnd()}\n`,
    );
    const found: unknown = existsSync(results) ? JSON.parse(readFileSync(results, 'utf8')) : undefined;
    const count = (key: string): number => (isJsonObject(found) ? Number(found[key] ?? 0) : 0);
    sum.passed += count('numPassedTests');
    sum.failed += found === undefined ? 1 : count('numFailedTests') + count('numRuntimeErrorTestSuites');
    sum.skipped += count('numPendingTests');
  } finally {
    rmSync(output, { recursive: true, force: true });
  }
}

runCommandLine(HELP, main);

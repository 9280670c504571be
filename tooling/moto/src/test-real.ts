/**
 * Runs the tests of the AWS driver that can run on moto (`*.moto.test.ts`). The last line is the sum, as `./test` prints
 * it. The program prints SKIPPED and ends with status 0 if there is no moto and none can be unpacked.
 */

import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { isJsonObject } from '@nodepool/core';
import { interruption, Narrator, Program, runCommandLine } from '@nodepool/harness';
import { findMoto, MOTO_PACKAGES, type MotoInstallation } from './find-moto.js';
import { startMoto } from './start-moto.js';

const DRIVER_FOLDER = resolve(__dirname, '..', '..', '..', 'packages', 'driver-aws');
const UNPACK_TIMEOUT_MS = 600_000;
const TEST_TIMEOUT_MS = 1_800_000;

const HELP = `Usage: pnpm test:aws

Runs the contract and the launches of the AWS driver on moto, a simulated AWS by other people. The first run unpacks
moto from Debian's packages. Has no options but --help.

Exit status: 0 no test failed, or there is no moto (SKIPPED); 1 a test failed; 2 wrong usage;
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
  const found = await findOrUnpack(say, interrupted);
  if (typeof found === 'string') {
    process.stdout.write(`SKIPPED: ${found}\n0 passed, 0 failed, 1 skipped\n`);
    return;
  }
  const moto = await startMoto(found);
  try {
    say(`moto runs at ${moto.url}`);
    await runTests(moto.url, interrupted);
  } finally {
    await moto.stop();
  }
}

async function findOrUnpack(say: (line: string) => void, interrupted: AbortSignal): Promise<MotoInstallation | string> {
  const found = findMoto();
  if (typeof found !== 'string') return found;
  if (!existsSync('/usr/bin/apt-get') || existsSync(MOTO_PACKAGES)) return found;
  say(`unpacking moto in ${MOTO_PACKAGES}`);
  const output = mkdtempSync(join(tmpdir(), 'nodepool-moto-'));
  try {
    const unpacking = await Program.start({
      name: 'the unpacking of moto',
      command: join(__dirname, '..', 'unpack.sh'),
      args: [MOTO_PACKAGES],
      logFile: join(output, 'log'),
    });
    const { code } = await unpacking.ends(UNPACK_TIMEOUT_MS, interrupted);
    if (code !== 0) return `moto could not be unpacked: ${readFileSync(unpacking.logFile, 'utf8').trim()}`;
  } finally {
    rmSync(output, { recursive: true });
  }
  return findMoto();
}

async function runTests(url: string, interrupted: AbortSignal): Promise<void> {
  const output = mkdtempSync(join(tmpdir(), 'moto-tests-'));
  const results = join(output, 'results.json');
  try {
    const jest = await Program.start({
      name: 'the tests',
      command: resolve(__dirname, '..', '..', '..', 'node_modules', '.bin', 'jest'),
      args: [
        '--testPathPatterns',
        '\\.moto\\.test\\.ts$',
        '--runInBand',
        '--reporters=default',
        '--json',
        `--outputFile=${results}`,
      ],
      logFile: join(output, 'log'),
      cwd: DRIVER_FOLDER,
      env: { NODEPOOL_TEST_MOTO: url },
    });
    await jest.ends(TEST_TIMEOUT_MS, interrupted);
    const lines = readFileSync(join(output, 'log'), 'utf8').split('\n');
    const shown = lines.filter((line) => !line.startsWith('{"')).join('\n');
    process.stdout.write(`${shown.trimEnd()}\n`);
    const found: unknown = existsSync(results) ? JSON.parse(readFileSync(results, 'utf8')) : undefined;
    const count = (key: string): number => (isJsonObject(found) ? Number(found[key] ?? 0) : 0);
    const failed = found === undefined ? 1 : count('numFailedTests') + count('numRuntimeErrorTestSuites');
    process.stdout.write(`${count('numPassedTests')} passed, ${failed} failed, ${count('numPendingTests')} skipped\n`);
    if (failed > 0) process.exitCode = 1;
  } finally {
    rmSync(output, { recursive: true, force: true });
  }
}

runCommandLine(HELP, main);

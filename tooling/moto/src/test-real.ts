/**
 * Runs the tests of the AWS driver that can run on moto (`*.moto.test.ts`). The last line is the sum, as `./test`
 * prints it. The program prints SKIPPED and ends with status 0 if there is no moto and none can be unpacked.
 */

import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { interruption, Narrator, Program, reportTotals, runCommandLine, runTestFiles } from '@nodepool/harness';
import { findMoto, MOTO_PACKAGES, type MotoInstallation } from './find-moto.js';
import { startMoto } from './start-moto.js';

const DRIVER_FOLDER = 'packages/driver-aws';
const MOTO_TESTS = '\\.moto\\.test\\.ts$';
const UNPACK_TIMEOUT_MS = 600_000;

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
    process.stdout.write(`SKIPPED: ${found}\n`);
    reportTotals([{ passed: 0, failed: 0, skipped: 1 }]);
    return;
  }
  const moto = await startMoto(found);
  try {
    say(`moto runs at ${moto.url}`);
    const env = { NODEPOOL_TEST_MOTO: moto.url };
    reportTotals([await runTestFiles({ folder: DRIVER_FOLDER, pattern: MOTO_TESTS, env, interrupted })]);
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

runCommandLine(HELP, main);

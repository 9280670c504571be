/**
 * Runs the tests of the simulation and of the driver that also run on real services (`*.cloud.test.ts`) on real
 * OpenStack services. The last line is the sum, in the format of `./test`. Without services it prints SKIPPED and exits
 * with status 0.
 */

import { existsSync, readdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { untilAborted } from '@nodepool/core';
import { REAL_CLOUD_VARIABLE } from '@nodepool/simulated-openstack';
import { interruption, Narrator, reportTotals, runCommandLine, runTestFiles, type TestTotals } from '@nodepool/harness';
import { openRealOpenStack, volumesPossible } from './real-openstack.js';

const ROOT = resolve(__dirname, '..', '..', '..');
const PACKAGES = ['tooling/simulated-openstack', 'packages/driver-openstack'];
const CLOUD_TESTS = '\\.cloud\\.test\\.ts$';

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
  const totals: TestTotals[] = [];
  const cloud = await openRealOpenStack(say, interrupted);
  if (typeof cloud === 'string') {
    process.stdout.write(`SKIPPED: ${cloud}\n`);
    totals.push({ passed: 0, failed: 0, skipped: countTestFiles() });
  } else {
    try {
      await untilAborted(volumesPossible(cloud.cloudsYaml), interrupted);
      const env = { [REAL_CLOUD_VARIABLE]: cloud.cloudsYaml };
      for (const folder of PACKAGES.filter((each) => cloudTestsIn(each).length > 0)) {
        say(`${folder}: tests that can run on real services`);
        totals.push(await runTestFiles({ folder, pattern: CLOUD_TESTS, env, interrupted }));
      }
    } finally {
      await cloud.release();
    }
  }
  reportTotals(totals);
}

function countTestFiles(): number {
  return PACKAGES.reduce((count, folder) => count + cloudTestsIn(folder).length, 0);
}

function cloudTestsIn(folder: string): string[] {
  const tests = join(ROOT, folder, 'test');
  return existsSync(tests) ? readdirSync(tests).filter((name) => new RegExp(CLOUD_TESTS).test(name)) : [];
}

runCommandLine(HELP, main);

/**
 * Applies the manifests of deploy/kubernetes to a real control plane, runs the tests of the Kubernetes drivers
 * (`*.cluster.test.ts`) on it, and then launchers that are killed again and again, with `kubectl` as the witness. The
 * last line is the sum, as `./test` prints it. Prints SKIPPED, with status 0, if the control plane is missing.
 */

import { parseArgs } from 'node:util';
import { untilAborted } from '@nodepool/core';
import { interruption, Narrator, reportTotals, runCommandLine, runTestFiles, type TestTotals } from '@nodepool/harness';
import { findBinaries } from './binaries.js';
import { startControlPlane } from './control-plane.js';
import { killStorm } from './kill-storm.js';
import { Kubelet } from './kubelet.js';
import { checkManifests, checkMonitoring } from './manifests.js';

const DRIVER_FOLDER = 'packages/driver-kubernetes';
const CLUSTER_TESTS = '\\.cluster\\.test\\.ts$';

const HELP = `Usage: pnpm test:kubernetes [--manifests]

Applies the manifests of deploy/kubernetes to a real control plane, runs the tests of the Kubernetes drivers on it, and
then launchers that are killed again and again. The first run builds the control plane, which takes minutes.

  --manifests  apply the manifests only
  --help       this text

Exit status: 0 no test failed, or there is no control plane (SKIPPED); 1 a test failed; 2 wrong usage;
130 the run was interrupted.
`;

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: { manifests: { type: 'boolean', default: false }, help: { type: 'boolean', short: 'h', default: false } },
  });
  if (values.help) {
    process.stdout.write(HELP);
    return;
  }
  const interrupted = interruption();
  const narrator = new Narrator((line) => process.stderr.write(`${line}\n`));
  const say = (line: string): void => narrator.say(line);
  const binaries = await findBinaries(say, interrupted);
  if (typeof binaries === 'string') {
    process.stdout.write(`SKIPPED: ${binaries}\n`);
    reportTotals([{ passed: 0, failed: 0, skipped: 1 }]);
    return;
  }
  const plane = await startControlPlane(binaries, interrupted);
  const kubelet = new Kubelet(plane, say);
  kubelet.start();
  const totals: TestTotals[] = [];
  try {
    say(`a control plane runs at ${plane.url}`);
    say('applying the manifests of deploy/kubernetes');
    totals.push(reportProblems(await checkManifests(plane, interrupted)));
    say('applying them with the component for the Prometheus operator');
    totals.push(reportProblems(await checkMonitoring(plane, binaries.apiServer, interrupted)));
    if (!values.manifests) {
      const env = { NODEPOOL_TEST_KUBECONFIG: plane.kubeconfig };
      const tests = { folder: DRIVER_FOLDER, pattern: CLUSTER_TESTS, env, inBand: false, interrupted };
      totals.push(await runTestFiles(tests));
      say('launching 200 nodes while 20 launchers are killed');
      totals.push(reportProblems(await untilAborted(killStorm(plane, say), interrupted)));
    }
  } finally {
    await kubelet.stop();
    await plane.stop();
  }
  reportTotals(totals);
}

function reportProblems(problems: readonly string[] | undefined): TestTotals {
  if (problems === undefined) {
    process.stdout.write('SKIPPED: this kube-apiserver cannot store custom resources; build.sh builds one that can\n');
    return { passed: 0, failed: 0, skipped: 1 };
  }
  for (const problem of problems) process.stdout.write(`FAILED: ${problem}\n`);
  const hasPassed = problems.length === 0;
  return { passed: hasPassed ? 1 : 0, failed: hasPassed ? 0 : 1, skipped: 0 };
}

runCommandLine(HELP, main);

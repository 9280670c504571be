#!/usr/bin/env node
/** The program `nodepool-gitlab`. */

import { systemClock, systemRandom } from '@nodepool/core';
import { ignoreBrokenPipes } from '@nodepool/daemon/process-setup';
import { run } from './program.js';

/** Time (ms) between looks at the parent process. */
const PARENT_CHECK_MS = 5000;

/** The reason of an interruption; `signal` is passed to the processes of the job. */
class StoppedError extends Error {
  constructor(
    readonly signal: string,
    reason: string,
  ) {
    super(reason);
    this.name = 'StoppedError';
  }
}

const interruption = new AbortController();
const abandonment = new AbortController();
// GitLab Runner sends SIGTERM, and SIGKILL after its `graceful_kill_timeout`.
for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) {
  process.on(signal, () => interruption.abort(new StoppedError('SIGTERM', `stopped by ${signal}`)));
}
ignoreBrokenPipes();

const parent = process.ppid;
/** Notices the end of the runner, which leaves its processes behind when it is killed. */
function watchParent(): void {
  if (process.ppid === parent) {
    systemClock.schedule(PARENT_CHECK_MS, watchParent, { background: true });
    return;
  }
  const reason = new StoppedError('SIGTERM', 'the runner has ended');
  abandonment.abort(reason);
  interruption.abort(reason);
}
watchParent();

async function main(): Promise<void> {
  const { stdin, stdout, stderr } = process;
  const code = await run(process.argv.slice(2), {
    ...{ env: process.env, streams: { stdin, stdout, stderr }, clock: systemClock, random: systemRandom },
    ...{ interrupted: interruption.signal, abandoned: abandonment.signal },
  });
  // The output of a lost node may stay open.
  process.exit(code);
}

void main();

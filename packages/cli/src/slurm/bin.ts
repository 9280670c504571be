#!/usr/bin/env node
/** The program `nodepool-slurm`. */

// First, because it checks the version of Node.js.
import { ignoreBrokenPipes } from '@nodepool/daemon/process-setup';
import { systemClock, systemRandom } from '@nodepool/core';
import { run } from './program.js';

const interruption = new AbortController();
for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) {
  process.on(signal, () => interruption.abort(new Error(`stopped by ${signal}`)));
}
ignoreBrokenPipes();

async function main(): Promise<void> {
  const { stdin, stdout, stderr } = process;
  process.exitCode = await run(process.argv.slice(2), {
    ...{ env: process.env, streams: { stdin, stdout, stderr }, clock: systemClock, random: systemRandom },
    interrupted: interruption.signal,
  });
}

void main();

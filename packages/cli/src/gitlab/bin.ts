#!/usr/bin/env node
/** The program `nodepool-gitlab`. */

// First, because it checks the version of Node.js.
import { ignoreBrokenPipes } from '@nodepool/daemon/process-setup';
import { systemClock, systemRandom } from '@nodepool/core';
import { watchCaller } from '../caller.js';
import { run } from './program.js';

// GitLab Runner sends SIGTERM, and SIGKILL after its `graceful_kill_timeout`.
const signals = watchCaller({ name: 'the runner', program: /runner/ });
ignoreBrokenPipes();

async function main(): Promise<void> {
  const { stdin, stdout, stderr } = process;
  const code = await run(process.argv.slice(2), {
    ...{ env: process.env, streams: { stdin, stdout, stderr }, clock: systemClock, random: systemRandom },
    ...signals,
  });
  // The output of a lost node may stay open.
  process.exit(code);
}

void main();

#!/usr/bin/env node
/** The program `nodepool-garm`. */

// First, because it checks the version of Node.js.
import { ignoreBrokenPipes } from '@nodepool/daemon/process-setup';
import { systemClock, systemRandom } from '@nodepool/core';
import { watchCaller } from '../caller.js';
import { run } from './program.js';

// GARM kills a call when its time is over. The end of GARM itself also ends its calls.
const { interrupted } = watchCaller({ name: 'GARM', program: /garm/ });
ignoreBrokenPipes();

async function main(): Promise<void> {
  const { stdin, stdout, stderr } = process;
  process.exitCode = await run(process.argv.slice(2), {
    ...{ env: process.env, streams: { stdin, stdout, stderr }, clock: systemClock, random: systemRandom, interrupted },
  });
}

void main();

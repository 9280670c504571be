#!/usr/bin/env node
/** The program `nodepool-github`. */
import { createRequire } from 'node:module';
import { ignoreBrokenPipes, ProcessSignals } from '@nodepool/daemon/process-setup';
import type * as Main from './main.js';

// Created before the rest of the program is loaded, which takes a while.
const signals = new ProcessSignals();
ignoreBrokenPipes();

async function start(): Promise<void> {
  // `import()` would also read all files for the names of their exports, which takes longer.
  const { main } = createRequire(__filename)('./main.js') as typeof Main;
  process.exitCode = await main(process.argv, signals);
}

void start();

#!/usr/bin/env node
/** The program `nodepool-launcher`. */
import { setFlagsFromString } from 'node:v8';
import { ignoreBrokenPipes, ProcessSignals } from '@nodepool/daemon/process-setup';

// Installs the signal handlers before the rest of the program is loaded, because loading takes a while.
const signals = new ProcessSignals();
ignoreBrokenPipes();

// Collects garbage sooner: otherwise a burst of work would double the memory of a daemon that is usually idle.
setFlagsFromString('--optimize-for-size');
// By default, that flag lets the heap grow by only 30 % between collections, which then take a third of the processor
// time.
setFlagsFromString('--heap-growing-percent=60');

async function start(): Promise<void> {
  const { main } = await import('./main.js');
  process.exitCode = await main(process.argv, signals);
}

void start();

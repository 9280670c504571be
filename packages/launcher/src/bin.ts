#!/usr/bin/env node
/** The program `nodepool-launcher`. */
import { setFlagsFromString } from 'node:v8';
import { ignoreBrokenPipes, ProcessSignals } from '@nodepool/daemon/process-setup';

// Installs the signal handlers before the rest of the program is loaded, because loading takes a while.
const signals = new ProcessSignals();
ignoreBrokenPipes();

// V8 optimizes functions later than by default (132 kB): bursts are short, and compiling for them did not pay.
setFlagsFromString('--interrupt-budget=500000');

async function start(): Promise<void> {
  // Loading everything in one turn of the event loop would delay signals by 150 ms.
  const { nextTurn } = await import('@nodepool/core');
  await nextTurn();
  await import('@nodepool/zookeeper');
  await nextTurn();
  await import('@nodepool/store');
  await nextTurn();
  await import('@nodepool/config');
  await nextTurn();
  await import('@nodepool/daemon');
  await nextTurn();
  await import('./launcher.js');
  await nextTurn();
  const { main } = await import('./main.js');
  process.exitCode = await main(process.argv, signals);
}

void start();

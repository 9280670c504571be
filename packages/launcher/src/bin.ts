#!/usr/bin/env node
/** The program `nodepool-launcher`. */
import { ignoreBrokenPipes, ProcessSignals } from '@nodepool/daemon/process-setup';

// Installs the signal handlers before the rest of the program is loaded, because loading takes a while.
const signals = new ProcessSignals();
ignoreBrokenPipes();

async function start(): Promise<void> {
  const { main } = await import('./main.js');
  process.exitCode = await main(process.argv, signals);
}

void start();

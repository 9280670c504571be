#!/usr/bin/env node
/** The program `nodepool-launcher`. */
import { setFlagsFromString } from 'node:v8';
import { ignoreBrokenPipes, ProcessSignals } from '@nodepool/daemon/process-setup';

// Before the rest of the program is loaded, which takes a while.
const signals = new ProcessSignals();
ignoreBrokenPipes();

// A daemon that is idle most of the time: garbage is collected sooner, instead of letting a burst double its memory.
setFlagsFromString('--optimize-for-size');

async function start(): Promise<void> {
  const { main } = await import('./main.js');
  process.exitCode = await main(process.argv, signals);
}

void start();

#!/usr/bin/env node
/** The program `nodepool-launcher`. */
import { createRequire } from 'node:module';
import { setImmediate } from 'node:timers/promises';
import { startProgram } from '@nodepool/daemon/process-setup';
import type * as Main from './main.js';

/** `import()` would also read every file for the names of its exports, which takes 90 ms and 9 MiB more. */
const load = createRequire(__filename);
const PACKAGES = ['core', 'zookeeper', 'store', 'config', 'daemon'].map((name) => `@nodepool/${name}`);
const OWN_PARTS = ['./provider/provider-runtime.js', './launcher.js', './main.js'];

startProgram(async () => {
  // Loading everything in one turn of the event loop would delay signals by 150 ms.
  // The packages need TLS, which has a turn of its own.
  for (const part of ['node:tls', ...PACKAGES, ...OWN_PARTS]) {
    await setImmediate();
    load(part);
  }
  await setImmediate();
  return load('./main.js') as typeof Main;
});

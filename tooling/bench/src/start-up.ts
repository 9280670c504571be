/** The start of the programs on an empty site. */

import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { systemClock } from '@nodepool/core';
import { freePorts, startZooKeeper } from '@nodepool/dev-zookeeper';
import { configFileOf, exampleConfig, labelsOffered, programPath, startLauncher } from '@nodepool/harness';
import { connect } from '@nodepool/zookeeper';
import { LABEL } from './environment.js';
import { cpuSeconds } from './process-facts.js';
import { median } from './scenarios.js';

const RUNS = 5;
const DEADLINE_MS = 120_000;

export interface StartUp {
  /** Time of `nodepool list`, median, milliseconds. */
  readonly listMs: number;
  /** Time until a launcher offers its label, median, milliseconds. */
  readonly launcherMs: number;
  /** Processor time of the launcher until then, median, milliseconds. */
  readonly launcherCpuMs: number;
}

export async function measureStartUp(dataFolder: string): Promise<StartUp> {
  const folder = mkdtempSync(join(tmpdir(), 'nodepool-bench-'));
  const server = await startZooKeeper({ parentFolder: dataFolder });
  const zooKeeper = connect({ servers: server.servers });
  const [webappPort = 0] = await freePorts(1);
  const config = exampleConfig({ zooKeeper: { servers: server.servers }, webappPort, labels: [LABEL] });
  const list: number[] = [];
  const start: number[] = [];
  const cpu: number[] = [];
  try {
    for (let run = 0; run < RUNS; run += 1) {
      const began = systemClock.monotonic();
      const launcher = await startLauncher({ folder, config });
      try {
        const offered = (signal: AbortSignal): Promise<void> => labelsOffered(zooKeeper, [LABEL], signal);
        await launcher.while('offers its label', DEADLINE_MS, offered);
        start.push(systemClock.monotonic() - began);
        cpu.push(cpuSeconds(launcher.pid) * 1000);
      } finally {
        await launcher.stop();
      }
      const listBegan = systemClock.monotonic();
      await promisify(execFile)(process.execPath, [programPath('nodepool'), '-c', configFileOf({ folder }), 'list']);
      list.push(systemClock.monotonic() - listBegan);
    }
    return { listMs: median(list), launcherMs: median(start), launcherCpuMs: median(cpu) };
  } finally {
    await zooKeeper.close();
    await server.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

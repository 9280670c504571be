/** From the command line of a daemon to its exit code: logging, configuration, the connection, and then its own work. */

import { rmSync, writeFileSync } from 'node:fs';
import type { ZooKeeper } from '@nodepool/zookeeper';
import { loadConfig, type LoadOptions, type LoadResult } from '../config/load.js';
import { formatProblem } from '../config/problems.js';
import type { RootLogger } from '../observe/create-logger.js';
import { reasonOf } from '../observe/error-text.js';
import type { Logger } from '../observe/logger.js';
import type { MetricsRegistry } from '../observe/metrics-registry.js';
import { setUpLogging } from '../observe/set-up-logging.js';
import { systemClock } from '../runtime/clock.js';
import { connectToZooKeeper } from '../store/connect.js';
import type { DaemonOptions } from './command-line.js';
import { openMetrics } from './open-metrics.js';

/** What a daemon begins with. */
export interface DaemonSetup {
  /** Closed by `Daemon.stop`. */
  readonly zooKeeper: ZooKeeper;
  readonly load: LoadOptions;
  /** What `load` gave. */
  readonly loaded: Extract<LoadResult, { ok: true }>;
  readonly log: Logger;
  readonly metrics: MetricsRegistry;
  /** Where CPU profiles are written. */
  readonly folder: string;
}

/** A program that runs until it is told to stop. */
export interface Daemon {
  start(): Promise<void>;
  /** Lets go of everything, so that it can be taken up again. */
  stop(): Promise<void>;
  /** Told by a second signal that comes before `stop` is done. Absent: the process ends at once. */
  abort?(): void;
}

export interface DaemonRun {
  /** e.g. `nodepool-launcher`. */
  readonly name: string;
  readonly options: DaemonOptions;
  /** Whether there is an endpoint to read metrics from. */
  readonly prometheus: boolean;
  /** Logged with the signal. */
  readonly stopMessage: string;
  readonly complain: (text: string) => void;
  /** Rejects when it cannot be started. */
  readonly make: (setup: DaemonSetup) => Daemon | Promise<Daemon>;
}

/** Runs until a signal says stop. Exit codes: 0 stopped, 1 could not start. */
export async function runDaemon(run: DaemonRun): Promise<number> {
  const { name, options, complain } = run;
  const { pidFile } = options;
  let log: RootLogger;
  try {
    log = await setUpLogging({ file: options.logging, debug: options.debug });
  } catch (error) {
    complain(`${name}: ${reasonOf(error)}\n`);
    return 1;
  }
  try {
    if (pidFile !== undefined) writeFileSync(pidFile, `${process.pid}\n`);
    return await loadAndServe(run, log);
  } catch (error) {
    log.error(`${name} cannot go on`, error);
    return 1;
  } finally {
    if (pidFile !== undefined) rmSync(pidFile, { force: true });
    await log.close();
  }
}

async function loadAndServe(run: DaemonRun, log: RootLogger): Promise<number> {
  const { options, complain } = run;
  const load: LoadOptions = { file: options.config, secureFile: options.secure, env: process.env };
  const loaded = await loadConfig(load);
  if (!loaded.ok) {
    complain(
      `The configuration cannot be used:\n${loaded.problems.map((found) => `  ${formatProblem(found)}\n`).join('')}`,
    );
    return 1;
  }
  for (const problem of loaded.warnings) log.warn('Problem of the configuration', { problem: formatProblem(problem) });
  const stop = new StopSignals(log, run.stopMessage);
  log.info('Connecting to ZooKeeper', { servers: loaded.config.zookeeper.servers });
  const metrics = openMetrics({ clock: systemClock, log, env: process.env, prometheus: run.prometheus });
  try {
    await serve(run, { load, loaded, log, metrics, folder: log.folder ?? process.cwd() }, stop);
  } finally {
    await metrics.close();
  }
  log.info('Stopped');
  return 0;
}

async function serve({ make }: DaemonRun, setup: Omit<DaemonSetup, 'zooKeeper'>, stop: StopSignals): Promise<void> {
  const { loaded, log } = setup;
  let daemon: Daemon;
  try {
    const { signal } = stop;
    const zooKeeper = await connectToZooKeeper(loaded.config.zookeeper, { clock: systemClock, log, signal });
    daemon = await make({ ...setup, zooKeeper });
  } catch (error) {
    if (stop.signal.aborted) return;
    throw error;
  }
  if (daemon.abort !== undefined) stop.onSecond = () => daemon.abort?.();
  await daemon.start();
  await stop.first;
  await daemon.stop();
}

/** Hears SIGINT and SIGTERM: the first asks the daemon to stop, the second to be quick, the next ends the process. */
class StopSignals {
  readonly first: Promise<void>;
  onSecond: (() => void) | undefined;
  private readonly stop = new AbortController();

  constructor(
    private readonly log: Logger,
    private readonly message: string,
  ) {
    this.first = new Promise((resolve) => {
      this.stop.signal.addEventListener('abort', () => resolve(), { once: true });
    });
    process.on('SIGINT', (signal) => this.heard(signal));
    process.on('SIGTERM', (signal) => this.heard(signal));
  }

  /** Aborts with the first one. */
  get signal(): AbortSignal {
    return this.stop.signal;
  }

  private heard(signal: NodeJS.Signals): void {
    if (!this.stop.signal.aborted) {
      this.log.info(this.message, { signal });
      this.stop.abort(new Error(`stopped by ${signal}`));
      return;
    }
    this.log.warn('Stopping at once', { signal });
    const { onSecond } = this;
    this.onSecond = undefined;
    if (onSecond === undefined) process.exit(1);
    onSecond();
  }
}

/** From the command line to the exit code: configuration, logging, the connection, and then the daemon. */

import { rmSync, writeFileSync } from 'node:fs';
import {
  connectToZooKeeper,
  formatProblem,
  loadConfig,
  setUpLogging,
  systemClock,
  type LoadOptions,
  type RootLogger,
} from '@nodepool/core';
import { Daemon, type DaemonOptions } from './daemon.js';
import { openMetrics } from './observe/open-metrics.js';
import { parseCommandLine, type ProgramOptions } from './program.js';

const complain = (text: string): void => void process.stderr.write(text);

/** Runs until a signal says stop. Exit codes: 0 stopped, 1 could not start, 2 wrong usage. */
export async function main(argv: readonly string[]): Promise<number> {
  const options = parseCommandLine(argv, { out: (text) => void process.stdout.write(text), err: complain });
  if (typeof options === 'number') return options;
  let log: RootLogger;
  try {
    log = await setUpLogging({ file: options.logging, debug: options.debug });
  } catch (error) {
    complain(`nodepool-launcher: ${error instanceof Error ? error.message : String(error)}\n`);
    return 1;
  }
  const { pidFile } = options;
  try {
    if (pidFile !== undefined) writeFileSync(pidFile, `${process.pid}\n`);
    return await run(options, log);
  } catch (error) {
    log.error('The launcher cannot go on', error);
    return 1;
  } finally {
    if (pidFile !== undefined) rmSync(pidFile, { force: true });
    await log.close();
  }
}

async function run(options: ProgramOptions, log: RootLogger): Promise<number> {
  const load: LoadOptions = { file: options.config, secureFile: options.secure, env: process.env };
  const loaded = await loadConfig(load);
  if (!loaded.ok) {
    complain(
      `The configuration cannot be used:\n${loaded.problems.map((found) => `  ${formatProblem(found)}\n`).join('')}`,
    );
    return 1;
  }
  for (const problem of loaded.warnings) log.warn('Problem of the configuration', { problem: formatProblem(problem) });
  const stop = stopSignal(log);
  const { servers } = loaded.config.zookeeper;
  log.info('Connecting to ZooKeeper', { servers });
  const metrics = openMetrics({ clock: systemClock, log, env: process.env, prometheus: options.webapp });
  try {
    await serve({ load, loaded, log, metrics, webapp: options.webapp, folder: log.folder ?? process.cwd() }, stop);
  } finally {
    await metrics.close();
  }
  log.info('Stopped');
  return 0;
}

async function serve(options: Omit<DaemonOptions, 'zooKeeper'>, stop: AbortSignal): Promise<void> {
  const { loaded, log } = options;
  let daemon: Daemon;
  try {
    const zooKeeper = await connectToZooKeeper(loaded.config.zookeeper, { clock: systemClock, log, signal: stop });
    daemon = new Daemon({ ...options, zooKeeper });
  } catch (error) {
    if (stop.aborted) return;
    throw error;
  }
  await daemon.start();
  await aborted(stop);
  await daemon.stop();
}

/** Aborts with the first SIGINT or SIGTERM; the second one ends the process at once. */
function stopSignal(log: RootLogger): AbortSignal {
  const stop = new AbortController();
  const onSignal = (signal: NodeJS.Signals): void => {
    if (stop.signal.aborted) {
      log.warn('Stopping at once', { signal });
      process.exit(1);
    }
    log.info('Stopping; launches in progress are left to be taken up again', { signal });
    stop.abort(new Error(`stopped by ${signal}`));
  };
  process.on('SIGINT', onSignal);
  process.on('SIGTERM', onSignal);
  return stop.signal;
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}

/** Runs a daemon from its command line to its exit code: logging, configuration, connection, and its own work. */

import type { ZooKeeper } from '@nodepool/zookeeper';
import { formatProblem, loadConfig, type LoadOptions, type LoadResult, type NodepoolConfig } from '@nodepool/config';
import type { RootLogger } from '../logging/create-logger.js';
import {
  errorCodeOf,
  nextTurn,
  packageVersion,
  reasonOf,
  systemClock,
  type Logger,
  type Tracing,
} from '@nodepool/core';
import type { MetricsRegistry } from '../metrics/metrics-registry.js';
import type { EndpointAddress } from '../web/http-server.js';
import { setUpLogging } from '../logging/set-up-logging.js';
import { processOutput, type DaemonOptions } from './command-line.js';
import { DaemonControl, type ControlledDaemon } from './daemon-control.js';
import { Diagnostics } from '../diagnostics/diagnostics.js';
import { FirstConnection, type Connect } from './first-connection.js';
import { openTracing } from '../traces/open-tracing.js';
import { openMetrics } from '../metrics/open-metrics.js';
import { writePidFile } from './pid-file.js';
import type { ProcessSignals } from './process-setup.js';

export interface DaemonSetup {
  /** Closed by `Daemon.stop`. */
  readonly zooKeeper: ZooKeeper;
  readonly load: LoadOptions;
  /** The result of `load`. */
  readonly loaded: Extract<LoadResult, { ok: true }>;
  readonly log: Logger;
  readonly metrics: MetricsRegistry;
  /** Undefined while tracing is off. */
  readonly tracing?: Tracing | undefined;
  /** Undefined if the web endpoint is disabled. */
  readonly endpoint: EndpointAddress | undefined;
}

/** A program that runs until a signal stops it. */
export interface Daemon extends ControlledDaemon {
  start(): Promise<void>;
  /** Stops and releases everything, so that work can be resumed after a restart. */
  stop(): Promise<void>;
  /** Logs the running work and what it waits for. */
  dump(log: Logger): void;
}

export interface DaemonRun {
  /** e.g. `nodepool-launcher`. */
  readonly name: string;
  readonly options: DaemonOptions;
  readonly signals: Pick<ProcessSignals, 'deliverTo'>;
  /** Logged at the stop signal. */
  readonly stopMessage: string;
  /** Default: writes to the standard error. */
  readonly printError?: (text: string) => void;
  /** Connects to the ensemble of the configuration. */
  readonly connect: Connect;
  /** Returns the address of the web endpoint; undefined if it is disabled. */
  readonly webEndpoint: (config: NodepoolConfig) => EndpointAddress | undefined;
  /** Creates the daemon. Rejects if it cannot be started. */
  readonly make: (setup: DaemonSetup) => Daemon | Promise<Daemon>;
}

/** Codes of errors whose messages contain the remedy; they are logged without a stack. */
const EXPECTED_ERRORS: ReadonlySet<string | undefined> = new Set([
  'zookeeper-chroot',
  'tls-files',
  'web-endpoint',
  'images-dir',
  'statsd-address',
  'pid-file',
]);

/** Runs until a stop signal. Exit codes: 0 stopped, 1 could not start. */
export async function runDaemon(run: DaemonRun): Promise<number> {
  const { name, options, printError = processOutput.err } = run;
  const { pidFile } = options;
  let log: RootLogger;
  // The library that logs takes tens of milliseconds to load, so that it has a turn of its own.
  await nextTurn();
  try {
    log = await setUpLogging({ file: options.logging, debug: options.debug });
  } catch (error) {
    printError(`${name}: ${reasonOf(error)}\n`);
    return 1;
  }
  const running: Running = { daemon: undefined, waitsFor: 'the configuration' };
  const diagnostics = new Diagnostics({
    program: name,
    clock: systemClock,
    log,
    folder: log.folder ?? process.cwd(),
    dump: (to) => dump(running, to),
  });
  const control = new DaemonControl(log, run.stopMessage, diagnostics);
  run.signals.deliverTo(control.receive);
  let endPidFile = (): void => undefined;
  try {
    if (pidFile !== undefined) endPidFile = writePidFile(pidFile, log);
    return await loadAndServe(run, log, control, running);
  } catch (error) {
    if (EXPECTED_ERRORS.has(errorCodeOf(error))) log.error(`${name} cannot start: ${reasonOf(error)}`);
    else log.error(`${name} cannot continue`, error);
    return 1;
  } finally {
    await diagnostics.stop();
    run.signals.deliverTo(() => undefined);
    endPidFile();
    await log.close();
  }
}

/** The progress of the program's start. */
interface Running {
  daemon: Daemon | undefined;
  /** Description of the current step while there is no daemon. */
  waitsFor: string;
}

function dump({ daemon, waitsFor }: Running, log: Logger): void {
  if (daemon !== undefined) daemon.dump(log);
  else log.named('nodepool.stack_dump').info('The program is starting', { waits_for: waitsFor });
}

async function loadAndServe(
  run: DaemonRun,
  log: RootLogger,
  control: DaemonControl,
  running: Running,
): Promise<number> {
  const { options, webEndpoint, printError = processOutput.err } = run;
  const load: LoadOptions = { file: options.config, secureFile: options.secure, env: process.env };
  const loaded = await loadConfig(load);
  if (!loaded.ok) {
    printError(
      `The configuration cannot be used:\n${loaded.problems.map((found) => `  ${formatProblem(found)}\n`).join('')}`,
    );
    return 1;
  }
  for (const problem of loaded.warnings) log.warn('Problem of the configuration', { problem: formatProblem(problem) });
  running.waitsFor = 'ZooKeeper';
  log.info('Connecting to ZooKeeper', { servers: loaded.config.zookeeper.servers });
  // Loading the drivers and the metrics takes tens of milliseconds each, so that each has a turn of its own.
  await nextTurn();
  const prometheus = webEndpoint(loaded.config) !== undefined;
  const metrics = openMetrics({ clock: systemClock, log, env: process.env, prometheus });
  const tracing = openTracing({ service: run.name, version: packageVersion(__dirname), log, env: process.env });
  await nextTurn();
  try {
    await serve(run, { load, loaded, log, metrics, tracing }, control, running);
  } finally {
    await tracing?.stop();
    await metrics.close();
  }
  log.info('Stopped');
  return 0;
}

async function serve(
  { name, connect, make, webEndpoint }: DaemonRun,
  setup: Omit<DaemonSetup, 'zooKeeper' | 'endpoint'>,
  control: DaemonControl,
  running: Running,
): Promise<void> {
  const { signal } = control;
  let daemon: Daemon;
  try {
    const connection = new FirstConnection({ ...setup, connect, webEndpoint, name, clock: systemClock, signal });
    control.connects(connection);
    const connected = await connection.connected();
    const endpoint = webEndpoint(connected.loaded.config);
    daemon = await makeOrClose(() => make({ ...setup, ...connected, endpoint }), connected.zooKeeper);
  } catch (error) {
    if (signal.aborted) return;
    throw error;
  }
  running.daemon = daemon;
  control.made(daemon);
  try {
    await daemon.start();
    control.hasStarted();
    await control.stopped;
  } finally {
    // Runs after a failed start, too, because open connections would keep the process alive.
    await daemon.stop();
  }
}

/** Closes the connection if the daemon cannot be created: it would keep the process alive. */
async function makeOrClose(make: () => Daemon | Promise<Daemon>, zooKeeper: ZooKeeper): Promise<Daemon> {
  try {
    return await make();
  } catch (error) {
    await zooKeeper.close();
    throw error;
  }
}

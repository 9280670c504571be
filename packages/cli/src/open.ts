import { createRequire } from 'node:module';
import { hostname } from 'node:os';
import { connectToZooKeeper, openStore } from '@nodepool/store';
import type { DiscoverDriver, LoadOptions, LoadResult, NodepoolConfig } from '@nodepool/config';
import { DriverLoadError, formatProblem, loadConfig } from '@nodepool/config';
import type * as Daemon from '@nodepool/daemon';
import { silentLogger, systemClock, systemRandom, type Logger } from '@nodepool/core';
import { CommandError, type StoreContext } from './command-context.js';
import type { CommonOptions, ProcessIo } from './process-io.js';

const load = createRequire(__filename);

const READ_TIMEOUT_MS = 30_000;

/** Reads the configuration, drivers included. */
export function readConfig(
  options: CommonOptions,
  io: ProcessIo,
  change: Omit<LoadOptions, 'file' | 'secureFile' | 'env'> = {},
): Promise<LoadResult> {
  return loadConfig({ file: options.config, secureFile: options.secure, env: io.env, ...change });
}

export interface StoreNeeds {
  /** True to load the drivers of the configured providers, which takes a while. */
  readonly drivers?: boolean;
  /** False to leave the caches of the store empty; reads of single records work. Default true. */
  readonly records?: boolean;
}

/**
 * Runs a command on the store of the configured ensemble, and closes everything after it. Rejects with `CommandError`
 * if the configuration is wrong, and with the errors of the store and the command.
 */
export async function withStore(
  options: CommonOptions,
  io: ProcessIo,
  command: (context: StoreContext) => Promise<void> | void,
  { drivers = false, records = true }: StoreNeeds = {},
): Promise<void> {
  await withLog(options, async (log) => {
    const config = await configOf(options, io, drivers ? undefined : withoutDriver);
    const clock = io.clock ?? systemClock;
    const connect = io.connect ?? connectToZooKeeper;
    const { out, interrupted, random = systemRandom } = io;
    const zooKeeper = await connect(config.zookeeper, {
      clock,
      log,
      timeoutMs: options.connectTimeout * 1000,
      signal: interrupted,
    });
    const store = openStore(zooKeeper, {
      ...{ clock, random, log, identifier: `${hostname()}-${process.pid}` },
      readOnly: true,
    });
    try {
      if (records) {
        store.start();
        await store.ready({ timeoutMs: Math.max(READ_TIMEOUT_MS, options.connectTimeout * 1000), signal: interrupted });
      }
      await command({ store, config, log, clock, random, out, interrupted, ask: io.ask });
    } finally {
      store.close();
      await zooKeeper.close();
    }
  });
}

/** Runs a command that needs only the configuration. Rejects with `CommandError` if that is wrong. */
export async function withConfig(
  options: CommonOptions,
  io: ProcessIo,
  command: (config: NodepoolConfig) => void,
): Promise<void> {
  command(await configOf(options, io, withoutDriver));
}

/** Runs `work` with a log. Without `-d` and `-l` nothing is logged, because commands print their results and errors. */
export async function withLog(options: CommonOptions, work: (log: Logger) => Promise<void>): Promise<void> {
  const { loggingConfig, debug = false } = options;
  if (loggingConfig === undefined && !debug) {
    await work(silentLogger);
    return;
  }
  // Most commands log nothing, and winston takes long to load.
  const { setUpLogging } = load('@nodepool/daemon') as typeof Daemon;
  const log = await setUpLogging({ file: loggingConfig, debug, name: 'nodepool.cli' });
  try {
    await work(log);
  } finally {
    await log.close();
  }
}

async function configOf(
  options: CommonOptions,
  io: ProcessIo,
  discoverDriver: DiscoverDriver | undefined,
): Promise<NodepoolConfig> {
  const result = await readConfig(options, io, { discoverDriver });
  if (result.ok) return result.config;
  const problems = result.problems.map((problem) => `  ${formatProblem(problem)}`);
  throw new CommandError(`the configuration cannot be used:\n${problems.join('\n')}`);
}

/** Replaces drivers for commands that only access ZooKeeper, which saves loading the SDKs of clouds. */
const withoutDriver: DiscoverDriver = (name) =>
  Promise.reject(
    new DriverLoadError({
      reason: 'not-installed',
      driver: name,
      problem: 'drivers are not loaded by this command',
      remedy: 'nothing to do',
    }),
  );

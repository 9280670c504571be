/** One run: a launcher, its regions and a stream of jobs on a virtual clock. */

import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadConfig, type NodepoolConfig } from '@nodepool/config';
import { silentLogger, TaskSupervisor, type Driver, type Logger, type RandomSource } from '@nodepool/core';
import { seededRandom, VirtualClock } from '@nodepool/core/testing';
import { Launcher, type CapacityOptions } from '@nodepool/launcher';
import { openRequestor } from '@nodepool/requestor';
import { openStore } from '@nodepool/store';
import { SimulatedZooKeeperServer } from '@nodepool/zookeeper/simulated';
import { calm, type Disturbance } from './disturbances.js';
import { runJob } from './job.js';
import { driverOf, Region, REGION_INSTANCES } from './region.js';
import type { Wait } from './statistics.js';

/** The periods of a run in their order (ms); the disturbance lasts for `disturbedMs`. */
export interface Periods {
  readonly calmMs: number;
  readonly disturbedMs: number;
  readonly afterMs: number;
}

export interface RunOptions extends Periods {
  readonly seed: number;
  readonly regions: number;
  /** Part of the full number of instances and requests, for a short run. Default 1. */
  readonly scale?: number | undefined;
  /** Affects the first region. Default: none. */
  readonly disturbance?: Disturbance | undefined;
  /** Default: everything is enabled, as in operation. */
  readonly capacity?: CapacityOptions | undefined;
  /** Default: no log. The clock is the one of the run. */
  readonly log?: ((clock: VirtualClock) => Logger) | undefined;
}

export interface RunResult {
  readonly waits: readonly Wait[];
  /** Maximum number of instances at the same time. */
  readonly maxInstances: number;
  /** Calls that created instances, per region. */
  readonly creations: readonly number[];
}

const LABEL = 'job';
const REQUESTS_PER_MINUTE = 50;
const JOB_MS = 600_000;
const SESSION_TIMEOUT_MS = 10_000;
const MAX_LATENCY_MS = 5;
/** Interval at which instances are counted (ms). */
const SAMPLE_INTERVAL_MS = 60_000;
/** Time for requests to end after the last one was written (ms). A request that takes longer counts as not ended. */
const FINAL_WAIT_MS = 8 * 3_600_000;

export async function run(options: RunOptions): Promise<RunResult> {
  const { seed, calmMs, disturbedMs, afterMs, disturbance, scale = 1 } = options;
  const seeds = seededRandom(seed);
  // Each part has its own source, so that runs with the same seed have the same jobs.
  const random = (): RandomSource => seededRandom(Math.floor(seeds.next() * 2 ** 32));
  const clock = new VirtualClock();
  const arrivals = random();
  const network = random();
  const launcherRandom = random();
  const requestorRandom = random();
  const latencyMs = (): number => Math.floor(network.next() * MAX_LATENCY_MS);
  const server = new SimulatedZooKeeperServer({ clock, latencyMs });
  const regions = Array.from(
    { length: options.regions },
    (_, index) => new Region(`region-${index + 1}`, { clock, random: random() }),
  );
  const config = await configOf(regions, REGION_INSTANCES * scale);
  const log = options.log?.(clock) ?? silentLogger;
  const failures: unknown[] = [];
  const fail = (error: unknown): void => void failures.push(error);

  const client = { sessionTimeoutMs: SESSION_TIMEOUT_MS, clock };
  const zooKeeper = server.connect({ ...client, random: launcherRandom });
  const store = openStore(zooKeeper, { clock, random: launcherRandom, identifier: 'launcher', log });
  const tasks = new TaskSupervisor(clock, (_task, error) => fail(error));
  const scanner = { scan: () => Promise.resolve([]) };
  const identity = { hostname: 'launcher', version: '0.0.0' };
  const switches = options.capacity === undefined ? {} : { capacity: options.capacity };
  const launcher = new Launcher({
    store,
    clock,
    random: launcherRandom,
    log,
    tasks,
    scanner,
    ...identity,
    ...switches,
  });
  store.start();
  launcher.start(config).catch(fail);

  const requestor = openRequestor(server.connect({ ...client, random: requestorRandom }), {
    name: 'zuul',
    clock,
    random: requestorRandom,
    log,
  });
  const waits: Wait[] = [];
  const endMs = calmMs + disturbedMs + afterMs;
  let submitted = 0;
  const submitNext = (): void => {
    const delayMs = (-Math.log(1 - arrivals.next()) * 60_000) / (REQUESTS_PER_MINUTE * scale);
    clock.schedule(delayMs, () => {
      if (clock.monotonic() >= endMs) return;
      submitted += 1;
      const job = { requestor, clock, label: LABEL, durationMs: JOB_MS };
      runJob(job, (wait) => waits.push(wait)).catch(fail);
      submitNext();
    });
  };
  submitNext();

  const [disturbed] = regions;
  if (disturbance !== undefined && disturbed !== undefined) {
    clock.schedule(calmMs, () => disturbance.begin(disturbed));
    clock.schedule(calmMs + disturbedMs, () => calm(disturbed));
  }
  let maxInstances = 0;
  while (clock.monotonic() < endMs) {
    await clock.advance(SAMPLE_INTERVAL_MS);
    const instances = regions.reduce((sum, { cloud }) => sum + cloud.usage().instances, 0);
    maxInstances = Math.max(maxInstances, instances);
    if (failures.length > 0) throw failures[0];
  }
  await clock.runUntil(() => waits.length === submitted || failures.length > 0, FINAL_WAIT_MS);
  if (failures.length > 0) throw failures[0];
  server.stop();
  for (const { cloud } of regions) cloud.close();
  return { waits, maxInstances, creations: regions.map(({ creations }) => creations) };
}

/** Reads the configuration from a file, as the launcher does. */
async function configOf(regions: readonly Region[], maxServers: number): Promise<NodepoolConfig> {
  const folder = await mkdtemp(join(tmpdir(), 'nodepool-capacity-'));
  try {
    const file = join(folder, 'nodepool.yaml');
    await writeFile(file, JSON.stringify(configFile(regions, maxServers)));
    const driver: Driver = driverOf(regions);
    const result = await loadConfig({ file, env: {}, discoverDriver: () => Promise.resolve(driver) });
    if (!result.ok) throw new Error(`the configuration is invalid: ${JSON.stringify(result.problems)}`);
    return result.config;
  } finally {
    await rm(folder, { recursive: true });
  }
}

function configFile(regions: readonly Region[], maxServers: number): object {
  return {
    'zookeeper-servers': [{ host: 'localhost' }],
    labels: [{ name: LABEL }],
    providers: regions.map(({ name }) => ({
      name,
      driver: 'example',
      'cloud-images': [{ name: 'debian', username: 'zuul' }],
      pools: [
        { name: 'main', 'max-servers': maxServers, labels: [{ name: LABEL, 'cloud-image': 'debian', size: 'small' }] },
      ],
    })),
  };
}

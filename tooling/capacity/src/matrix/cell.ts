/** One cell of the matrix: a driver whose cloud is disturbed, beside a healthy provider, on simulated time. */

import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadConfig, type NodepoolConfig } from '@nodepool/config';
import { silentLogger, TaskSupervisor, type Driver, type JsonObject, type Logger } from '@nodepool/core';
import { seededRandom, type VirtualClock } from '@nodepool/core/testing';
import { ExampleCloud, exampleDriver, readCloudSettings } from '@nodepool/driver-example';
import { simulatedTime } from '@nodepool/driver-kit';
import { Launcher } from '@nodepool/launcher';
import { openRequestor } from '@nodepool/requestor';
import { openStore } from '@nodepool/store';
import { SimulatedZooKeeperServer } from '@nodepool/zookeeper/simulated';
import { runJob } from '../job.js';
import type { Wait } from '../statistics.js';
import { BOOT_MS, DELETE_MS, LABEL, mainPool, NO_LOGIN, type OpenTarget, type Target } from './target.js';
import type { Trouble } from './troubles.js';

/** Periods of a cell (ms). */
export interface CellPeriods {
  readonly calmMs: number;
  readonly disturbedMs: number;
  readonly afterMs: number;
}

export interface CellOptions extends CellPeriods {
  readonly seed: number;
  readonly open: OpenTarget;
  /** Default: none. */
  readonly trouble?: Trouble | undefined;
  /** True if the disturbed provider is preferred by `priority`. */
  readonly isPreferred: boolean;
  /** Default: no log. */
  readonly log?: ((clock: VirtualClock) => Logger) | undefined;
}

const REQUEST_INTERVAL_MS = 4000;
const JOB_MS = 60_000;
/** Time for requests to end after the last one was written (ms). */
const FINAL_WAIT_MS = 2 * 3_600_000;
const START_LIMIT_MS = 300_000;

export async function runCell(options: CellOptions): Promise<readonly Wait[]> {
  const { seed, calmMs, disturbedMs, afterMs, trouble } = options;
  const time = simulatedTime();
  const { clock } = time;
  const random = seededRandom(seed);
  const target = await options.open({ clock, random });
  const healthy = new ExampleCloud({ clock, random, settings: HEALTHY });
  const server = new SimulatedZooKeeperServer({ clock });
  const log = options.log?.(clock) ?? silentLogger;
  const failures: unknown[] = [];
  const fail = (error: unknown): void => void failures.push(error);
  const run = async <T>(work: Promise<T>): Promise<T> => {
    const ended = { value: false };
    const settled = work.finally(() => (ended.value = true));
    settled.catch(() => undefined);
    await time.until(() => ended.value, START_LIMIT_MS);
    return settled;
  };

  const store = openStore(server.connect({ clock, random }), { clock, random, identifier: 'launcher', log });
  const tasks = new TaskSupervisor(clock, (_task, error) => fail(error));
  const scanner = { scan: () => Promise.resolve([]) };
  const launcher = new Launcher({ store, clock, random, log, tasks, scanner, hostname: 'launcher', version: '0.0.0' });
  store.start();
  launcher.start(await configOf(target, healthy, options.isPreferred)).catch(fail);
  await time.until(() => launcher.ready, START_LIMIT_MS);

  const requestor = openRequestor(server.connect({ clock, random }), { name: 'zuul', clock, random, log });
  const waits: Wait[] = [];
  const beganAt = clock.monotonic();
  const endAt = beganAt + calmMs + disturbedMs + afterMs;
  let submitted = 0;
  const submit = (): void => {
    if (clock.monotonic() >= endAt) return;
    submitted += 1;
    runJob({ requestor, clock, label: LABEL, durationMs: JOB_MS }, (wait) =>
      waits.push({ ...wait, writtenAt: wait.writtenAt - beganAt }),
    ).catch(fail);
    clock.schedule(REQUEST_INTERVAL_MS, submit);
  };
  submit();
  await time.until(() => failures.length > 0, calmMs);
  trouble?.begin(target);
  await time.until(() => failures.length > 0, disturbedMs);
  await target.calm();
  await time.until(() => failures.length > 0, afterMs + REQUEST_INTERVAL_MS);
  await time.until(() => waits.length === submitted || failures.length > 0, FINAL_WAIT_MS);
  if (waits.length < submitted)
    waits.push(...Array.from({ length: submitted - waits.length }, () => unfinished(endAt)));
  await run(launcher.stop());
  server.stop();
  healthy.close();
  await run(target.close());
  if (failures.length > 0) throw failures[0];
  return waits;
}

const HEALTHY = {
  ...readCloudSettings({}),
  bootTimeMs: [BOOT_MS, BOOT_MS] as const,
  deleteTimeMs: [DELETE_MS, DELETE_MS] as const,
  quota: { instances: Infinity, cores: Infinity, ram: Infinity },
};

function unfinished(writtenAt: number): Wait {
  return { writtenAt, waitMs: undefined, failure: 'it has not ended', provider: undefined };
}

/** Reads the configuration from a file, as the launcher does. */
async function configOf(target: Target, healthy: ExampleCloud, isPreferred: boolean): Promise<NodepoolConfig> {
  const folder = await mkdtemp(join(tmpdir(), 'nodepool-capacity-'));
  const drivers: Readonly<Record<string, Driver>> = {
    example: exampleDriver({ cloud: healthy }),
    [target.name]: target.driver,
  };
  try {
    const file = join(folder, 'nodepool.yaml');
    await writeFile(file, JSON.stringify(configFile(target.section, isPreferred)));
    const discoverDriver = async (name: string): Promise<Driver> => {
      const driver = drivers[name];
      if (driver === undefined) throw new Error(`there is no driver ${name}`);
      return driver;
    };
    const result = await loadConfig({ file, env: {}, discoverDriver });
    if (!result.ok) throw new Error(`the configuration is invalid: ${JSON.stringify(result.problems)}`);
    return result.config;
  } finally {
    await rm(folder, { recursive: true });
  }
}

function configFile(section: JsonObject, isPreferred: boolean): object {
  return {
    'zookeeper-servers': [{ host: 'localhost' }],
    labels: [{ name: LABEL }],
    providers: [
      { name: 'disturbed', ...section, ...(isPreferred ? { priority: 10 } : {}) },
      {
        name: 'healthy',
        driver: 'example',
        'cloud-images': [{ name: 'debian', username: 'zuul' }],
        pools: [mainPool({ 'cloud-image': 'debian', size: 'small' }, NO_LOGIN)],
      },
    ],
  };
}

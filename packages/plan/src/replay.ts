/** One replay of a day: the launcher's own code on a virtual clock, with a ZooKeeper in memory and modelled clouds. */

import type { NodepoolConfig } from '@nodepool/config';
import { silentLogger, TaskSupervisor, type RandomSource } from '@nodepool/core';
import { seededRandom, VirtualClock } from '@nodepool/core/testing';
import { Launcher } from '@nodepool/launcher';
import { openStore } from '@nodepool/store';
import { SimulatedZooKeeperServer } from '@nodepool/zookeeper/simulated';
import type { Day } from './day/day.js';
import { ASSUMED_TIMES, Draws, type AssumedTimes } from './model/draws.js';
import { ModelClouds } from './model/model-cloud.js';
import { modelConfig, type PoolLimits } from './model/model-config.js';
import { Requestors } from './model/requestors.js';
import { Measures, type RunMeasures } from './result/measures.js';
import { NodeMeter } from './result/node-meter.js';

export interface ReplayOptions {
  readonly day: Day;
  readonly config: NodepoolConfig;
  readonly seed: number;
  /** Limits of pools that differ from the configuration, by `provider/pool`. */
  readonly limits?: PoolLimits | undefined;
  readonly assumed?: Partial<AssumedTimes> | undefined;
  /** Aborts when the user interrupts the program. */
  readonly signal?: AbortSignal | undefined;
}

/** Time before the day in which the launcher starts and supplies its ready nodes (ms). */
const WARM_UP_MS = 900_000;
/** Time after the day in which requests may still be answered (ms). Later ones count as unanswered. */
const AFTERMATH_MS = 24 * 3_600_000;
/** No connection is ever lost; a long timeout saves pings. */
const SESSION_TIMEOUT_MS = 40_000;

/** Resolves with the measures. Rejects if the replay itself fails, or with the reason of the signal. */
export async function replay(options: ReplayOptions): Promise<RunMeasures> {
  const { day, config, seed, signal } = options;
  const clock = new VirtualClock({ startMs: day.fromMs - WARM_UP_MS });
  const seeds = seededRandom(seed);
  // Each part has its own source, so that the uses of nodes are the same with every configuration.
  const source = (): RandomSource => seededRandom(Math.floor(seeds.next() * 2 ** 32));
  const ofRequestors = source();
  const ofClouds = source();
  const random = source();
  const failures: unknown[] = [];
  const onError = (error: unknown): void => void failures.push(error);

  const draws = new Draws(day, { ...ASSUMED_TIMES, ...options.assumed });
  const clouds = new ModelClouds({ clock, random: ofClouds, day, draws });
  const modelled = modelConfig(config, clouds, options.limits);
  const server = new SimulatedZooKeeperServer({ clock });
  const zooKeeper = server.connect({ clock, random, sessionTimeoutMs: SESSION_TIMEOUT_MS });
  const store = openStore(zooKeeper, { clock, random, identifier: 'plan', log: silentLogger });
  const launcher = new Launcher({
    ...{ store, clock, random, log: silentLogger, hostname: 'plan', version: '0.0.0' },
    tasks: new TaskSupervisor(clock, (_name, error) => onError(error)),
    scanner: clouds.scanner(),
  });
  const cloudLimit = (provider: string): number | undefined => day.limits.get(provider)?.['instances'];
  const meter = new NodeMeter({ store, clock, period: day, config: modelled, cloudLimit });
  const measures = new Measures(meter, clouds.launches);
  const requestors = new Requestors({
    ...{ clock, store, random: ofRequestors, draws, onError },
    onOutcome: (outcome) => measures.ended(outcome),
  });

  store.start();
  launcher.start(modelled).catch(onError);
  const hasEnded = (): boolean => failures.length > 0 || signal?.aborted === true;
  await clock.runUntil(() => store.complete || hasEnded(), WARM_UP_MS);
  requestors.start(day.requests);
  const limitMs = day.toMs - clock.now() + AFTERMATH_MS;
  await clock.runUntil(() => (requestors.open === 0 && clock.now() >= day.toMs) || hasEnded(), limitMs);
  signal?.throwIfAborted();
  if (failures.length > 0) throw failures[0];
  const result = measures.result(day.requests, draws.assumptions);
  server.stop();
  store.close();
  return result;
}

/** Records the journal of a launcher with the example cloud on a virtual clock: the truth that replays must meet. */

import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import { silentLogger, silentMetrics, sleep, TaskSupervisor, type RandomSource } from '@nodepool/core';
import { seededRandom, VirtualClock } from '@nodepool/core/testing';
import { ExampleCloud, exampleDriver, readCloudSettings, type CloudSettings } from '@nodepool/driver-example';
import { Launcher } from '@nodepool/launcher';
import { openRequestor, RequestFailedError } from '@nodepool/requestor';
import { Recorder } from '@nodepool/status';
import { openStore } from '@nodepool/store';
import { SimulatedZooKeeperServer } from '@nodepool/zookeeper/simulated';
import { siteConfig, type SiteOptions } from './site.js';

const decompress = promisify(gunzip);

export interface RecordedDayOptions extends SiteOptions {
  readonly seed: number;
  readonly cloud: Partial<CloudSettings>;
  /** Probability that an instance fails, 0 to 1. */
  readonly failedInstances: number;
  readonly requests: number;
  /** Mean time between requests, and mean use of a node (ms); both exponential. */
  readonly intervalMs: number;
  readonly heldMs: number;
  readonly labelOf: (chance: number) => string;
}

export interface RecordedDay {
  /** Lines of the journal. */
  readonly lines: readonly string[];
  /** Waits of the requestors by label (ms). */
  readonly waits: ReadonlyMap<string, readonly number[]>;
}

const MAX_LATENCY_MS = 5;
const MAX_LOGIN_MS = 3000;

export async function recordDay(options: RecordedDayOptions): Promise<RecordedDay> {
  const { seed, requests, intervalMs, heldMs, labelOf } = options;
  const seeds = seededRandom(seed);
  const source = (): RandomSource => seededRandom(Math.floor(seeds.next() * 2 ** 32));
  const clock = new VirtualClock();
  const network = source();
  const random = source();
  const logins = source();
  const defaults = readCloudSettings({});
  const faults = { ...defaults.faults, 'failed-instances': options.failedInstances };
  const settings: CloudSettings = { ...defaults, ...options.cloud, faults };
  const cloud = new ExampleCloud({ clock, random: source(), settings });
  const config = await siteConfig({ ...options, driver: exampleDriver({ cloud }) });
  const server = new SimulatedZooKeeperServer({ clock, latencyMs: () => Math.floor(network.next() * MAX_LATENCY_MS) });
  const store = openStore(server.connect({ clock, random }), { clock, random, identifier: 'launcher' });
  const recorder = new Recorder({
    ...{ store, clock, log: silentLogger, metrics: silentMetrics, stateDir: undefined },
    activity: () => launcher.activity(),
  });
  const failures: unknown[] = [];
  const fail = (error: unknown): void => void failures.push(error);
  const launcher: Launcher = new Launcher({
    ...{ store, clock, random, log: silentLogger, hostname: 'launcher', version: '0.0.0' },
    tasks: new TaskSupervisor(clock, (_name, error) => fail(error)),
    timelines: recorder.timelines,
    scanner: {
      scan: async ({ signal, onConnected }) => {
        onConnected?.();
        await sleep(clock, logins.next() * MAX_LOGIN_MS, signal);
        return ['ssh-ed25519 AAAA'];
      },
    },
  });
  await recorder.start();
  store.start();
  launcher.start(config).catch(fail);
  await clock.advance(60_000);

  const requestor = openRequestor(server.connect({ clock, random }), { name: 'zuul', clock, random });
  const arrivals = source();
  const exponential = (mean: number): number => -Math.log(1 - arrivals.next()) * mean;
  const waits = new Map<string, number[]>();
  let ended = 0;
  const job = async (label: string, ms: number): Promise<void> => {
    const startedAt = clock.monotonic();
    const request = await requestor.request({ labels: [label], durable: true });
    try {
      await request.fulfilled();
    } catch (error) {
      if (!(error instanceof RequestFailedError)) throw error;
      // Every attempt to launch its node has failed.
      await request.cancel();
      ended += 1;
      return;
    }
    waits.set(label, [...(waits.get(label) ?? []), clock.monotonic() - startedAt]);
    const lease = await request.take();
    await sleep(clock, ms);
    await lease.return();
    ended += 1;
  };
  let submitted = 0;
  const submitNext = (): void => {
    if (submitted === requests) return;
    clock.schedule(exponential(intervalMs), () => {
      submitted += 1;
      job(labelOf(arrivals.next()), exponential(heldMs)).catch(fail);
      submitNext();
    });
  };
  submitNext();
  await clock.runUntil(() => ended === requests || failures.length > 0);
  if (failures.length > 0) throw failures[0];
  const members = await recorder.exportJournal();
  const text = (await Promise.all(members.map((member) => decompress(member)))).join('');
  server.stop();
  cloud.close();
  return { lines: text.trimEnd().split('\n'), waits };
}

/** Measurements of the launcher. Durations are in milliseconds. */

import type { SubmittedRequest } from '@nodepool/requestor';
import { sleep, systemClock } from '@nodepool/core';
import type { BenchmarkEnvironment } from './environment.js';
import { cpuSeconds, residentBytes } from './process-facts.js';
import { documentOf } from './request-document.js';

const WARM_UP_REQUESTS = 20;
/** V8 returns memory in rounds of 8 s. */
const IDLE_SETTLE_MS = 30_000;
const IDLE_MEASURED_MS = 10_000;

/**
 * Measures sequential requests on an idle launcher, each until it is fulfilled, and the transactions per node
 * lifecycle.
 */
export async function singleRequests(
  environment: BenchmarkEnvironment,
  count: number,
  signal: AbortSignal,
): Promise<{ readonly medianMs: number; readonly transactionsPerLife: number }> {
  for (let i = 0; i < WARM_UP_REQUESTS; i++) await life(environment, signal);
  const durations: number[] = [];
  const transactions = await transactionsOfLauncher(environment, async () => {
    for (let i = 0; i < count; i++) durations.push(await life(environment, signal));
  });
  return { medianMs: median(durations), transactionsPerLife: transactions / count };
}

/** Figures of a burst. */
export interface BurstFigures {
  readonly fulfilledMs: number;
  readonly deletedMs: number;
  readonly transactionsPerLife: number;
  /** Processor time of the launcher per node, from the request to the deletion. */
  readonly cpuMsPerLife: number;
}

/** Measures concurrent requests, followed by the concurrent use and release of their nodes. */
export async function burst(
  environment: BenchmarkEnvironment,
  count: number,
  signal: AbortSignal,
): Promise<BurstFigures> {
  let fulfilledMs = 0;
  let deletedMs = 0;
  const cpuBefore = cpuSeconds(environment.launcher.pid);
  const transactions = await transactionsOfLauncher(environment, async () => {
    const began = systemClock.monotonic();
    const requests = await requestAll(environment, count);
    fulfilledMs = systemClock.monotonic() - began;
    const leases = await Promise.all(requests.map((request) => request.take()));
    await Promise.all(leases.map((lease) => lease.return()));
    const released = systemClock.monotonic();
    await environment.clean(signal);
    deletedMs = systemClock.monotonic() - released;
  });
  const cpuMsPerLife = ((cpuSeconds(environment.launcher.pid) - cpuBefore) * 1000) / count;
  return { fulfilledMs, deletedMs, transactionsPerLife: transactions / count, cpuMsPerLife };
}

/**
 * Measures the resident memory of the launcher without nodes, and with each of the given numbers of ready nodes, once
 * the garbage of their launches has been collected.
 */
export async function residentMemory(
  environment: BenchmarkEnvironment,
  counts: readonly number[],
  signal: AbortSignal,
): Promise<readonly number[]> {
  const measured: number[] = [];
  let nodes = 0;
  for (const count of [0, ...counts]) {
    for (; nodes < count; nodes += 1000) {
      const requests = await requestAll(environment, Math.min(1000, count - nodes));
      // The nodes are not allocated, so the launcher keeps them ready.
      await Promise.all(requests.map((request) => request.cancel()));
    }
    await sleep(systemClock, IDLE_SETTLE_MS, signal);
    measured.push(residentBytes(environment.launcher.pid));
  }
  return measured;
}

/** Latencies of requests at a constant rate (ms), in ascending order. */
export interface LatenciesAtRate {
  /** From the creation of the request by its requestor until the launcher passes the create call to the driver. */
  readonly decision: readonly number[];
  /** From the write of the request until it is fulfilled. */
  readonly fulfilled: readonly number[];
}

/** Measures the latencies of requests at a constant rate. */
export async function latenciesAtRate(
  environment: BenchmarkEnvironment,
  options: { readonly perSecond: number; readonly seconds: number },
  signal: AbortSignal,
): Promise<LatenciesAtRate> {
  const { ids, fulfilled } = await requestsAtRate(environment, options, signal);
  const decision: number[] = [];
  for (const id of ids) decision.push(await decisionLatency(environment, id));
  const ascending = (a: number, b: number): number => a - b;
  return { decision: decision.sort(ascending), fulfilled: fulfilled.sort(ascending) };
}

/** Submits requests at a constant rate. Resolves with their ids and latencies (ms) when all nodes are returned. */
export async function requestsAtRate(
  environment: BenchmarkEnvironment,
  options: { readonly perSecond: number; readonly seconds: number },
  signal: AbortSignal,
): Promise<{ readonly ids: readonly string[]; readonly fulfilled: number[] }> {
  const { perSecond, seconds } = options;
  const fulfilled: number[] = [];
  const ids: string[] = [];
  const lives: Promise<void>[] = [];
  const began = systemClock.monotonic();
  const one = async (): Promise<void> => {
    const request = await environment.submit();
    const written = systemClock.monotonic();
    await request.fulfilled();
    fulfilled.push(systemClock.monotonic() - written);
    ids.push(request.id);
    const lease = await request.take();
    await lease.return();
  };
  for (let index = 0; index < perSecond * seconds; index += 1) {
    const due = began + (index * 1000) / perSecond;
    const early = due - systemClock.monotonic();
    if (early > 1) await sleep(systemClock, early, signal);
    lives.push(one());
  }
  await Promise.all(lives);
  return { ids, fulfilled };
}

export async function decisionLatency(environment: BenchmarkEnvironment, id: string): Promise<number> {
  const { request, timeline } = await documentOf(environment, id);
  const creating = timeline.find(({ phase }) => phase === 'creating');
  if (creating === undefined) throw new Error(`no node was launched for request ${id}`);
  return (creating.from - request.created) * 1000;
}

/** Measures concurrent requests to a launcher with a lower node limit. Every node is released immediately. */
export async function throughBottleneck(
  environment: BenchmarkEnvironment,
  count: number,
  signal: AbortSignal,
): Promise<number> {
  const began = systemClock.monotonic();
  await Promise.all(
    Array.from({ length: count }, async () => {
      const request = await environment.submit();
      const lease = await request.take();
      await lease.return();
    }),
  );
  const took = systemClock.monotonic() - began;
  await environment.clean(signal);
  return took;
}

/**
 * Returns the share of one core that the launcher uses with this many unchanged ready nodes, once it has returned the
 * memory of their launches.
 */
export async function idleShare(
  environment: BenchmarkEnvironment,
  count: number,
  signal: AbortSignal,
): Promise<number> {
  await fillWithReadyNodes(environment, count, signal);
  const before = cpuSeconds(environment.launcher.pid);
  const began = systemClock.monotonic();
  await sleep(systemClock, IDLE_MEASURED_MS, signal);
  const seconds = (systemClock.monotonic() - began) / 1000;
  return (cpuSeconds(environment.launcher.pid) - before) / seconds;
}

/** Launches ready nodes that no request has. Resolves once the launcher has returned the memory of their launches. */
export async function fillWithReadyNodes(
  environment: BenchmarkEnvironment,
  count: number,
  signal: AbortSignal,
): Promise<void> {
  const requests = await requestAll(environment, count);
  // The nodes are not allocated, so the launcher keeps them ready.
  await Promise.all(requests.map((request) => request.cancel()));
  await sleep(systemClock, IDLE_SETTLE_MS, signal);
  const nodes = (await environment.zooKeeper.children('/nodepool/nodes')).children.length;
  if (nodes !== count) throw new Error(`there are ${nodes} ready nodes instead of ${count}`);
}

/** Runs one request until its nodes are deleted. Returns the time until it was fulfilled. */
async function life(environment: BenchmarkEnvironment, signal: AbortSignal): Promise<number> {
  const began = systemClock.monotonic();
  const request = await environment.submit();
  await request.fulfilled();
  const took = systemClock.monotonic() - began;
  const lease = await request.take();
  await lease.return();
  await environment.clean(signal);
  return took;
}

/** Submits requests concurrently. Resolves when all are fulfilled. */
async function requestAll(environment: BenchmarkEnvironment, count: number): Promise<SubmittedRequest[]> {
  return await Promise.all(
    Array.from({ length: count }, async () => {
      const request = await environment.submit();
      await request.fulfilled();
      return request;
    }),
  );
}

/**
 * Counts the launcher's transactions during `work`: all of the server's except the requestor's. Every write increments
 * the zxid, even a refused one.
 */
async function transactionsOfLauncher(environment: BenchmarkEnvironment, work: () => Promise<void>): Promise<number> {
  const [zxid, own] = [await environment.lastTransaction(), environment.zooKeeper.counters.writes];
  await work();
  return (await environment.lastTransaction()) - zxid - (environment.zooKeeper.counters.writes - own);
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length / 2;
  const [low, high] = [sorted[Math.ceil(middle) - 1], sorted[Math.floor(middle)]];
  if (low === undefined || high === undefined) throw new Error('an empty list has no median');
  return (low + high) / 2;
}

/** Durations of a working provider while another one may hang (ms). */
export interface WorkingProviderFigures {
  readonly singleRequestMs: number;
  readonly burstMs: number;
}

/** Measures requests to a working provider while `others` requests wait for one that never answers. */
export async function measureWorkingProvider(
  environment: BenchmarkEnvironment,
  otherLabel: string,
  others: number,
  signal: AbortSignal,
): Promise<WorkingProviderFigures> {
  await Promise.all(Array.from({ length: others }, async () => environment.submit(otherLabel)));
  const durations: number[] = [];
  for (let i = 0; i < WARM_UP_REQUESTS + 50; i++) {
    const began = systemClock.monotonic();
    const request = await environment.submit();
    await request.fulfilled();
    if (i >= WARM_UP_REQUESTS) durations.push(systemClock.monotonic() - began);
    const lease = await request.take();
    await lease.return();
  }
  const began = systemClock.monotonic();
  const requests = await requestAll(environment, 100);
  const burstMs = systemClock.monotonic() - began;
  const leases = await Promise.all(requests.map((request) => request.take()));
  await Promise.all(leases.map((lease) => lease.return()));
  signal.throwIfAborted();
  return { singleRequestMs: median(durations), burstMs };
}

/**
 * Compares the phases that the launcher reports of its requests with the waits that a requestor in another process
 * measures. Durations are in milliseconds.
 */

import { setMaxListeners } from 'node:events';
import { systemClock } from '@nodepool/core';
import { LABEL, type BenchmarkEnvironment } from './environment.js';
import { documentOf } from './request-document.js';

/** More requests are in flight than the pool has servers, so that some wait for its limit and for each other. */
export const PHASES_SITE = {
  labels: [LABEL],
  providers: [{ maxServers: 20, cloud: { 'boot-time': [0.1, 0.4], 'api-latency': [0.005, 0.02] } }],
};
const IN_FLIGHT = 25;

export interface PhaseComparison {
  /** Waits as the requestor measured them, in ascending order. */
  readonly measured: readonly number[];
  /** Absolute differences between those waits and the sums of the phases, in ascending order. */
  readonly differences: readonly number[];
  /** Largest difference between the sum of the phases of a request and its whole as the launcher reports it. */
  readonly inexact: number;
  /** Means by phase, over all requests. */
  readonly means: ReadonlyMap<string, number>;
}

/** Measures this many requests. */
export async function comparePhases(
  environment: BenchmarkEnvironment,
  count: number,
  signal: AbortSignal,
): Promise<PhaseComparison> {
  const waits = new Map<string, number>();
  let left = count;
  // Every request in flight has a listener.
  setMaxListeners(0, signal);
  const worker = async (): Promise<void> => {
    while (left > 0 && !signal.aborted) {
      left -= 1;
      const began = systemClock.monotonic();
      const request = await environment.submit();
      await request.fulfilled({ signal });
      waits.set(request.id, systemClock.monotonic() - began);
      const lease = await request.take();
      await lease.return();
    }
  };
  await Promise.all(Array.from({ length: IN_FLIGHT }, worker));
  const sums = new Map<string, number>();
  const differences: number[] = [];
  let inexact = 0;
  for (const [id, measured] of waits) {
    const { request, timeline } = await documentOf(environment, id);
    const total = timeline.reduce((sum, { from, to }) => sum + (to - from) * 1000, 0);
    for (const { phase, from, to } of timeline) sums.set(phase, (sums.get(phase) ?? 0) + (to - from) * 1000);
    inexact = Math.max(inexact, Math.abs(total - (request.ended - request.created) * 1000));
    differences.push(Math.abs(measured - total));
  }
  return {
    measured: ascending(waits.values()),
    differences: ascending(differences),
    inexact,
    means: new Map([...sums].map(([phase, sum]) => [phase, sum / waits.size])),
  };
}

/** Returns the value below which this part of the ascending values is. */
export function quantile(values: readonly number[], part: number): number {
  return values[Math.min(values.length - 1, Math.ceil(part * values.length) - 1)] ?? NaN;
}

function ascending(values: Iterable<number>): number[] {
  return [...values].sort((a, b) => a - b);
}

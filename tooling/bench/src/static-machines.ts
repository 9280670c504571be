/** Machines that nothing creates: 1,000 slots requested at once. */

import { systemClock } from '@nodepool/core';
import { conditionMet } from '@nodepool/harness';
import { LABEL, type BenchmarkEnvironment } from './environment.js';
import { cpuSeconds } from './process-facts.js';

const MACHINES = 500;
const SLOTS = 2;
const NODES = '/nodepool/nodes';

/** A provider of 500 machines with two slots each, whose logins are not checked. */
export const STATIC_MACHINES: readonly object[] = [
  {
    name: 'rack',
    driver: 'static',
    pools: [
      {
        name: 'main',
        nodes: Array.from({ length: MACHINES }, (_, index) => ({
          name: `192.0.${2 + Math.floor(index / 250)}.${1 + (index % 250)}`,
          labels: [LABEL],
          'max-parallel-jobs': SLOTS,
          'host-key-checking': false,
        })),
      },
    ],
  },
];

/** Durations in milliseconds. */
export interface StaticFigures {
  /** Time from the process start until all slots are ready. */
  readonly registeredMs: number;
  /** Time until 1,000 concurrent requests are fulfilled. */
  readonly fulfilledMs: number;
  /** Time from the return of 1,000 nodes until all slots are ready again. */
  readonly readyAgainMs: number;
  /** Processor time of the launcher per use of a slot. */
  readonly cpuMsPerUse: number;
}

export async function measureStatic(environment: BenchmarkEnvironment, signal: AbortSignal): Promise<StaticFigures> {
  const count = MACHINES * SLOTS;
  await slotsReady(environment, count, 0, signal);
  const registeredMs = systemClock.monotonic() - environment.startedAt;
  const cpuBefore = cpuSeconds(environment.launcher.pid);
  const began = systemClock.monotonic();
  const requests = await Promise.all(Array.from({ length: count }, () => environment.submit()));
  await Promise.all(requests.map((request) => request.fulfilled()));
  const fulfilledMs = systemClock.monotonic() - began;
  const leases = await Promise.all(requests.map((request) => request.take()));
  const used = systemClock.monotonic();
  await Promise.all(leases.map((lease) => lease.return()));
  await slotsReady(environment, count, count, signal);
  const readyAgainMs = systemClock.monotonic() - used;
  const cpuMsPerUse = ((cpuSeconds(environment.launcher.pid) - cpuBefore) * 1000) / count;
  return { registeredMs, fulfilledMs, readyAgainMs, cpuMsPerUse };
}

/** Resolves once there are `count` nodes, all with ids from `firstId` on. */
async function slotsReady(
  { zooKeeper }: BenchmarkEnvironment,
  count: number,
  firstId: number,
  signal: AbortSignal,
): Promise<void> {
  await conditionMet(zooKeeper, NODES, signal, async () => {
    const { children } = await zooKeeper.children(NODES);
    return children.length === count && children.every((id) => Number(id) >= firstId);
  });
}

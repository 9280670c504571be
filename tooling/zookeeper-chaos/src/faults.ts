/** The faults of servers, connections and processes, and their order. */

import { type RandomSource, sleep, systemClock } from '@nodepool/core';
import type { RunningZooKeeper } from '@nodepool/dev-zookeeper';
import type { Proxy, ProxyMode } from './proxy.js';
import { below } from './random.js';
import type { WorkerProcess } from './worker-process.js';

export const FAULT_KINDS = [
  'restart-server',
  'pause-server',
  'kill-leader',
  'cut',
  'halve',
  'delay',
  'half-open',
  'silent',
  'stop-process',
] as const;

export type FaultKind = (typeof FAULT_KINDS)[number];

/** Number of occurrences of each fault in a round. */
export type FaultCounts = Readonly<Record<FaultKind, number>>;

/** Returns the faults of a round in order. */
export function faultPlan(counts: FaultCounts, random: RandomSource): FaultKind[] {
  const plan = FAULT_KINDS.flatMap((kind) => Array.from({ length: counts[kind] }, () => kind));
  for (let last = plan.length - 1; last > 0; last--) {
    const other = below(random, last + 1);
    const [a, b] = [plan[last], plan[other]];
    if (a !== undefined && b !== undefined) [plan[last], plan[other]] = [b, a];
  }
  return plan;
}

/** The targets of faults. */
export interface Targets {
  readonly servers: RunningZooKeeper;
  /** One per server, in the same order. */
  readonly proxies: readonly Proxy[];
  readonly workers: readonly WorkerProcess[];
  readonly sessionTimeoutMs: number;
  readonly random: RandomSource;
}

const RECOVERY_MS = 1000;
const MAX_DELAY_MS = 200;
const START_ATTEMPTS = 3;

/** Injects one fault, repairs it, and waits. Resolves with a description. */
export async function inject(kind: FaultKind, targets: Targets): Promise<string> {
  const { random } = targets;
  const index = below(random, targets.proxies.length);
  const done = await one(kind, index, targets);
  await pause(RECOVERY_MS * (0.5 + random.next()));
  return done;
}

async function one(kind: FaultKind, index: number, targets: Targets): Promise<string> {
  const { servers, workers, sessionTimeoutMs, random } = targets;
  switch (kind) {
    case 'restart-server': {
      const signal = below(random, 2) === 0 ? 'SIGKILL' : 'SIGTERM';
      await servers.kill(signal, index);
      await pause(below(random, 1000));
      await revive(servers, index);
      return `server ${index} restarted after ${signal}`;
    }
    case 'pause-server': {
      const ms = Math.round(sessionTimeoutMs * (0.3 + random.next()));
      await servers.pause(index);
      await pause(ms);
      await servers.continue(index);
      return `server ${index} stopped for ${ms} ms`;
    }
    case 'kill-leader': {
      const leader = (await servers.leader()) ?? index;
      await servers.kill('SIGKILL', leader);
      await pause(below(random, 1500));
      await revive(servers, leader);
      return `leader ${leader} killed and restarted`;
    }
    case 'cut':
      for (const proxy of targets.proxies) proxy.cut();
      return 'all connections cut';
    case 'halve':
      for (const proxy of targets.proxies) proxy.halve();
      return 'all connections cut in the middle of an answer';
    case 'delay':
      return await degrade('delay', targets);
    case 'half-open':
      return await degrade('half-open', targets, index);
    case 'silent':
      return await degrade('silent', targets, index);
    case 'stop-process': {
      const worker = workers[below(random, workers.length)];
      if (worker === undefined) return 'no process to stop';
      const ms = Math.round(sessionTimeoutMs * (1.3 + random.next()));
      worker.signal('SIGSTOP');
      await pause(ms);
      worker.signal('SIGCONT');
      return `process ${worker.name} stopped for ${ms} ms`;
    }
  }
}

/** Sets the mode of the proxies of one or all servers for about half a session timeout. */
async function degrade(mode: ProxyMode, targets: Targets, index?: number): Promise<string> {
  const { random, sessionTimeoutMs, proxies } = targets;
  const chosen = index === undefined ? proxies : proxies.slice(index, index + 1);
  const delayMs = below(random, MAX_DELAY_MS);
  const ms = Math.round(sessionTimeoutMs * (0.3 + random.next() / 2));
  for (const proxy of chosen) proxy.set(mode, delayMs);
  await pause(ms);
  for (const proxy of chosen) proxy.set('pass');
  return `${index === undefined ? 'all servers' : `server ${index}`} ${mode} for ${ms} ms`;
}

/**
 * Starts a stopped server. Restarts it, as a supervisor would, if it ends while it joins the ensemble, whose other
 * servers may be failing too.
 */
async function revive(servers: RunningZooKeeper, index: number): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      await servers.restart(index);
      return;
    } catch (error) {
      if (attempt === START_ATTEMPTS) throw error;
      await servers.kill('SIGKILL', index);
    }
  }
}

/** Restarts the servers that ended unexpectedly. Resolves when all serve. */
export async function reviveAll(servers: RunningZooKeeper, count: number): Promise<void> {
  for (let index = 0; index < count; index++) {
    const answer = await servers.fourLetterWord('srvr', index).catch(() => 'no server answers');
    if (answer.includes('Mode:')) continue;
    await servers.kill('SIGKILL', index);
    await revive(servers, index);
  }
}

function pause(ms: number): Promise<void> {
  return sleep(systemClock, ms);
}

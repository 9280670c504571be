/**
 * One round: starts servers, proxies and client processes, injects faults, then stops all calls and checks the rules.
 */

import { createReadStream } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { seededRandom } from '@nodepool/core/testing';
import { startZooKeeper, type StartOptions } from '@nodepool/dev-zookeeper';
import { connect, type ZooKeeper } from '@nodepool/zookeeper';
import { sleep, systemClock } from '@nodepool/core';
import { check } from './check/index.js';
import { faultPlan, inject, reviveAll, type FaultCounts, type Targets } from './faults.js';
import { endTree, finalState, prepare } from './final-state.js';
import type { ClientHistory, FinalState, Violation } from './history.js';
import { Proxy } from './proxy.js';
import { WorkerProcess } from './worker-process.js';

export interface RoundSettings {
  readonly seed: number;
  readonly clients: number;
  readonly processes: number;
  /** Number of calls in flight per client. */
  readonly inFlight: number;
  /** Pause of a client between two bursts of these calls (ms). Default 0: a constant load. */
  readonly pauseMs?: number;
  readonly faults: FaultCounts;
  readonly onProgress: (line: string) => void;
}

export interface RoundResult {
  readonly violations: readonly Violation[];
  readonly calls: number;
  readonly sessionsLost: number;
  readonly fencedWrites: number;
  readonly unknownOutcomes: number;
  readonly watchReads: number;
}

const TICK_MS = 200;
/**
 * Long limits in ticks. Servers share the processors with their clients, and with the default limits an ensemble with
 * such short ticks would not find a quorum again.
 */
const SERVERS: StartOptions = {
  ensembleSize: 3,
  tickTime: TICK_MS,
  javaHeap: '768m',
  settings: { initLimit: 150, syncLimit: 30 },
  startTimeoutMs: 600_000,
};
const SESSION_TIMEOUT_MS = 4000;
const OPERATION_TIMEOUT_MS = 10_000;
/** Limits of a round that hangs; a busy machine does not reach them. */
const SETTLE_MS = 300_000;
const END_MS = 300_000;
const WARM_UP_MS = 2000;

export async function runRound(settings: RoundSettings): Promise<RoundResult> {
  const folder = await mkdtemp(join(tmpdir(), 'zookeeper-chaos-'));
  const random = seededRandom(settings.seed);
  const servers = await startZooKeeper(SERVERS);
  const observer = connect({
    servers: servers.servers,
    sessionTimeoutMs: SESSION_TIMEOUT_MS,
    operationTimeoutMs: 30_000,
  });
  const ports = servers.servers.split(',').map((server) => Number(server.slice(server.lastIndexOf(':') + 1)));
  const proxies = await Promise.all(ports.map((port) => Proxy.start(port)));
  const workers = Array.from({ length: settings.processes }, (_, index) => new WorkerProcess(String(index)));
  try {
    const groups = share(settings.clients, settings.processes);
    const clients = groups.flat();
    await prepare(observer, clients);
    const proxied = proxies.map(({ port }) => `127.0.0.1:${port}`).join(',');
    await Promise.all(
      workers.map((worker, index) => {
        const group = groups[index] ?? [];
        const seed = settings.seed * 1000 + index * 100;
        const limits = { sessionTimeoutMs: SESSION_TIMEOUT_MS, operationTimeoutMs: OPERATION_TIMEOUT_MS };
        const historyFile = join(folder, `${index}.jsonl`);
        const { inFlight, pauseMs = 0 } = settings;
        const order = { servers: proxied, seed, clients: group, inFlight, pauseMs, historyFile, ...limits };
        return worker.order({ order: 'start', settings: order }, 'started', END_MS);
      }),
    );
    await sleep(systemClock, WARM_UP_MS);
    await injectAll(settings, { servers, proxies, workers, sessionTimeoutMs: SESSION_TIMEOUT_MS, random });
    await reviveAll(servers, proxies.length);
    settings.onProgress('all faults are over; waiting until all calls have ended');
    await all(workers, (worker) => worker.order({ order: 'quiet', withinMs: SETTLE_MS }, 'quiet', SETTLE_MS + END_MS));
    await endTree(observer);
    await all(workers, (worker) =>
      worker.order({ order: 'write', withinMs: SETTLE_MS }, 'written', SETTLE_MS + END_MS),
    );
    const histories = await readHistories(workers.map((_, index) => join(folder, `${index}.jsonl`)));
    const final = await stateWithoutLostSessions(observer, clients, histories);
    const violations = check(histories, final);
    await all(workers, (worker) => worker.order({ order: 'end' }, 'end', END_MS));
    return { violations: [...violations, ...crashes(workers)], ...totals(histories) };
  } catch (error) {
    const crashed = crashes(workers);
    if (crashed.length === 0) throw error;
    return { violations: crashed, ...totals([]) };
  } finally {
    for (const worker of workers) worker.signal('SIGKILL');
    await observer.close();
    await Promise.all(proxies.map((proxy) => proxy.stop()));
    await servers.stop();
    await rm(folder, { recursive: true, force: true });
  }
}

/** Returns the final state after the servers have deleted the ephemerals of lost sessions. */
async function stateWithoutLostSessions(
  zk: ZooKeeper,
  clients: readonly string[],
  histories: readonly ClientHistory[],
): Promise<FinalState> {
  const sessions = new Set(histories.map(({ session }) => session));
  const deadline = systemClock.monotonic() + END_MS;
  for (;;) {
    const state = await finalState(zk, clients);
    const isComplete = state.contenders.length === 0 && Object.values(state.ephemerals).every((id) => sessions.has(id));
    if (isComplete || systemClock.monotonic() > deadline) return state;
    await sleep(systemClock, TICK_MS);
  }
}

async function injectAll(settings: RoundSettings, targets: Targets): Promise<void> {
  const plan = faultPlan(settings.faults, targets.random);
  for (const [index, kind] of plan.entries()) {
    const done = await inject(kind, targets);
    settings.onProgress(`${index + 1}/${plan.length}: ${done}`);
    if (targets.workers.some(({ crash }) => crash !== undefined)) throw new Error('a client process crashed');
  }
}

/** Returns the names of clients in groups of about equal size. */
function share(clients: number, groups: number): string[][] {
  const names: string[][] = Array.from({ length: groups }, () => []);
  for (let index = 0; index < clients; index++) names[index % groups]?.push(`c${index}`);
  return names;
}

async function all(workers: readonly WorkerProcess[], work: (worker: WorkerProcess) => Promise<void>): Promise<void> {
  await Promise.all(workers.map(work));
}

function crashes(workers: readonly WorkerProcess[]): Violation[] {
  return workers.flatMap(({ crash }) => (crash === undefined ? [] : [{ rule: 'no crash', detail: crash }]));
}

async function readHistories(files: readonly string[]): Promise<ClientHistory[]> {
  const histories: ClientHistory[] = [];
  for (const file of files) {
    // The client processes write this file.
    for await (const line of createInterface(createReadStream(file))) histories.push(JSON.parse(line) as ClientHistory);
  }
  return histories;
}

function totals(histories: readonly ClientHistory[]): Omit<RoundResult, 'violations'> {
  const sum = (number: (history: ClientHistory) => number): number =>
    histories.reduce((total, history) => total + number(history), 0);
  return {
    calls: sum(({ calls }) => calls),
    sessionsLost: sum(({ sessionsLost }) => sessionsLost),
    fencedWrites: sum(({ fencedWrites }) => fencedWrites.length),
    unknownOutcomes: sum(({ nodeWrites }) => nodeWrites.filter(({ outcome }) => outcome === 'unknown').length),
    watchReads: sum(({ segments }) => segments.reduce((total, { reads }) => total + reads.length, 0)),
  };
}

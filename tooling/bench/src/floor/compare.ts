/**
 * Compares the launcher with the floor, in turn, so that the speed of the machine affects both: each round measures the
 * floor and then a launcher, each in a new process with a new ZooKeeper. Only the ratios have goals.
 */

import { systemClock, sleep } from '@nodepool/core';
import type { ZooKeeper } from '@nodepool/zookeeper';
import { BenchmarkEnvironment, LABEL, type EnvironmentOptions } from '../environment.js';
import { quantile } from '../phases.js';
import { cpuSeconds } from '../process-facts.js';
import { row, plain } from '../rows.js';
import { createHeldNodes, nodeInUse, NODEPOOL } from '../records.js';
import {
  type BurstFigures,
  burst,
  decisionLatency,
  fillWithReadyNodes,
  median,
  requestsAtRate,
  singleRequests,
} from '../scenarios.js';
import type { Row } from '../table.js';

const ROUNDS = 5;
const LARGE_ROUNDS = 3;
/** Bursts after the first one of a process. */
const LATER_BURSTS = 3;
const SINGLE_REQUESTS = 50;
const IDLE_NODES = 10_000;
const HELD_NODES = 10_000;
/** Every periodic task of a launcher is in this time. */
const IDLE_MS = 120_000;
/** Lives per second of the floor that may take as much processor time as 10,000 idle nodes. */
const IDLE_LIVES = 4;

const RATE = { perSecond: 200, seconds: 10 } as const;
/** Before the rate is measured: a launcher that has just started still reads its nodes, and all code is slow. */
const WARM_UP = { perSecond: 200, seconds: 5 } as const;

/** Figures of one process, by name. */
type Figures = ReadonlyMap<string, number>;

/** A figure of both in the same rounds. */
interface Pair {
  readonly floor: readonly number[];
  readonly launcher: readonly number[];
}

type Measure = (environment: BenchmarkEnvironment, signal: AbortSignal) => Promise<Figures>;

/** Goals of the ratios, by figure. */
const GOALS: ReadonlyMap<string, number> = new Map([
  ['one request, idle, median', 1.15],
  ['1,000 at once, first burst', 1.4],
  ['1,000 at once, later bursts', 1.3],
  ['their deletion, first', 1.2],
  ['their deletion, later', 1.2],
  ['processor time per life, first burst', 2],
  ['processor time per life, warm', 1.7],
  ['10,000 at once', 1.3],
  ['200 requests/s on 10,000 nodes, p99 of the decision', 2],
]);

export async function compareWithFloor(options: EnvironmentOptions): Promise<readonly Row[]> {
  const small = await rounds(ROUNDS, options, bursts);
  const large = await rounds(LARGE_ROUNDS, { ...options, deadlineMs: 600_000 }, tenThousand);
  const rate = await rounds(LARGE_ROUNDS, { ...options, deadlineMs: 600_000, prepare: fill }, atRate);
  const idleMsPerSecond = await idleProcessorTime({ ...options, deadlineMs: 600_000 });
  const warm = median(small.get('processor time per life, warm')?.floor ?? [NaN]);
  return [
    ...[...small, ...large, ...rate].flatMap(([name, pair]) => rowsOf(name, pair)),
    row('y  10,000 idle nodes, as lives per second of the floor', idleMsPerSecond / warm, IDLE_LIVES, plain, '-', true),
    row('   … processor time of the launcher per second', idleMsPerSecond, undefined, (ms) => `${plain(ms)} ms`, '-'),
  ];
}

function rowsOf(name: string, { floor, launcher }: Pair): readonly Row[] {
  const ratios = launcher.map((each, index) => each / (floor[index] ?? NaN));
  const [low, high] = [Math.min(...ratios), Math.max(...ratios)];
  const spread = `${plain(low)} to ${plain(high)}`;
  return [
    row(`y  ${name}: launcher to floor`, median(ratios), GOALS.get(name), plain, '-', true),
    row('   … ratios of the rounds', NaN, undefined, () => spread, '-'),
    row(
      '   … medians in ms: floor, launcher',
      NaN,
      undefined,
      () => `${plain(median(floor))}, ${plain(median(launcher))}`,
      '-',
    ),
  ];
}

/** Measures the floor and the launcher in turn. */
async function rounds(
  count: number,
  options: EnvironmentOptions,
  measure: Measure,
): Promise<ReadonlyMap<string, Pair>> {
  const pairs = new Map<string, { floor: number[]; launcher: number[] }>();
  for (let round = 0; round < count; round += 1) {
    for (const who of ['floor', 'launcher'] as const) {
      process.stderr.write(`  round ${round + 1} of ${count}: ${who}\n`);
      const figures = await measured({ ...options, floor: who === 'floor', probe: 'none' }, measure);
      for (const [name, value] of figures) {
        const pair = pairs.get(name) ?? { floor: [], launcher: [] };
        pair[who].push(value);
        pairs.set(name, pair);
      }
    }
  }
  // A later part of the comparison may fail.
  for (const [name, { floor, launcher }] of pairs) {
    process.stderr.write(`  ${name}: ${plain(median(launcher))} to ${plain(median(floor))}\n`);
  }
  return pairs;
}

async function measured(options: EnvironmentOptions, measure: Measure): Promise<Figures> {
  const environment = await BenchmarkEnvironment.make(options);
  let figures: Figures;
  try {
    figures = await environment.measure('the comparison with the floor', (signal) => measure(environment, signal));
  } catch (error) {
    await environment.clear();
    throw error;
  }
  const { decisions } = await environment.clear();
  if (figures.size > 0) return figures;
  return new Map([[DECISION, p99(decisions.slice(WARM_UP.perSecond * WARM_UP.seconds))]]);
}

const bursts: Measure = async (environment, signal) => {
  const first = await burst(environment, 1000, signal);
  const later: BurstFigures[] = [];
  for (let index = 0; index < LATER_BURSTS; index += 1) later.push(await burst(environment, 1000, signal));
  const { medianMs } = await singleRequests(environment, SINGLE_REQUESTS, signal);
  const typical = (of: 'fulfilledMs' | 'deletedMs' | 'cpuMsPerLife'): number => median(later.map((each) => each[of]));
  return new Map([
    ['one request, idle, median', medianMs],
    ['1,000 at once, first burst', first.fulfilledMs],
    ['1,000 at once, later bursts', typical('fulfilledMs')],
    ['their deletion, first', first.deletedMs],
    ['their deletion, later', typical('deletedMs')],
    ['processor time per life, first burst', first.cpuMsPerLife],
    ['processor time per life, warm', typical('cpuMsPerLife')],
  ]);
};

const tenThousand: Measure = async (environment, signal) => {
  const { fulfilledMs } = await burst(environment, 10_000, signal);
  return new Map([['10,000 at once', fulfilledMs]]);
};

const DECISION = '200 requests/s on 10,000 nodes, p99 of the decision';

/** The floor keeps the latencies itself, see `measured`. */
const atRate: Measure = async (environment, signal) => {
  await requestsAtRate(environment, WARM_UP, signal);
  const { ids } = await requestsAtRate(environment, RATE, signal);
  if (environment.isFloor) return new Map();
  const decisions: number[] = [];
  for (const id of ids) decisions.push(await decisionLatency(environment, id));
  return new Map([[DECISION, p99(decisions)]]);
};

function p99(values: readonly number[]): number {
  return quantile(
    [...values].sort((a, b) => a - b),
    0.99,
  );
}

/** Creates the records of nodes that requestors hold. */
async function fill(zooKeeper: ZooKeeper): Promise<void> {
  for (const path of [NODEPOOL, `${NODEPOOL}/nodes`]) await zooKeeper.create(path);
  await createHeldNodes(
    zooKeeper,
    Array.from({ length: HELD_NODES }, (_, index) => nodeInUse('example', 'main', LABEL, index)),
  );
}

/** Returns the processor time of a launcher with 10,000 unchanged ready nodes (ms per second). */
async function idleProcessorTime(options: EnvironmentOptions): Promise<number> {
  process.stderr.write('  10,000 idle nodes\n');
  const figures = await measured({ ...options, probe: 'none' }, async (environment, signal) => {
    await fillWithReadyNodes(environment, IDLE_NODES, signal);
    const { pid } = environment.launcher;
    const [before, began] = [cpuSeconds(pid), systemClock.monotonic()];
    await sleep(systemClock, IDLE_MS, signal);
    const seconds = (systemClock.monotonic() - began) / 1000;
    return new Map([['idle', ((cpuSeconds(pid) - before) * 1000) / seconds]]);
  });
  return figures.get('idle') ?? NaN;
}

/** One run with bridges for GitHub Actions: a seed determines jobs and faults. */

import { between, oneOf, weighted } from '../chance.js';
import type { CheckerOptions } from '../checker.js';
import { KNOWN_GAPS } from '../known-gaps.js';
import type { RunResult } from '../simulate.js';
import { BRIDGE_SITE, BridgeWorld } from './bridge-world.js';
import { BRIDGE_FAULTS, endFaults } from './faults.js';
import { BRIDGE_BOUND_MS, unfinishedOfBridges, violations } from './rules.js';

export interface BridgeRunOptions extends CheckerOptions {
  readonly seed: number;
  /** Number of jobs. Default 25. */
  readonly jobs?: number;
  /** Default true. */
  readonly faults?: boolean;
}

const BUSY_MS = 180_000;
const PAUSE_MS = { least: 200, greatest: 10_000 } as const;
const WATCH_INTERVAL_MS = 1000;
const CHECK_INTERVAL_MS = 10_000;
const RECHECK_INTERVAL_MS = 120_000;
const REPOSITORIES = ['app', 'web', 'docs', 'infra', 'tools'].map((name) => `acme/${name}`);
/** Chance that a user cancels a job. */
const CANCELLED = 0.1;

/** Runs one seed until its end or the first violation. */
export async function simulateBridges(options: BridgeRunOptions): Promise<RunResult> {
  const { seed, jobs = 25, faults = true, without = new Set(KNOWN_GAPS) } = options;
  const bridges = await BridgeWorld.start({ ...options, without });
  // Too many listeners of one signal are a leak.
  const warned = ({ name, stack = '' }: Error): void => bridges.world.checker.report('X', `${name}: ${stack}`);
  process.on('warning', warned);
  try {
    return await run(bridges, seed, jobs, faults);
  } finally {
    process.off('warning', warned);
    await bridges.end();
  }
}

async function run(bridges: BridgeWorld, seed: number, jobs: number, hasFaults: boolean): Promise<RunResult> {
  const { world } = bridges;
  const { clock, checker } = world;
  const random = world.random();
  for (const name of ['launcher-1', 'launcher-2']) {
    clock.schedule(between(random, 0, 3000), () => world.startLauncher(name, BRIDGE_SITE));
  }
  for (let count = 0; count < 2; count += 1) clock.schedule(between(random, 0, 5000), () => bridges.startBridge());
  for (let index = 0; index < jobs; index += 1) {
    clock.schedule(between(random, 1000, BUSY_MS), () => {
      const repository = oneOf(random, REPOSITORIES) ?? 'acme/app';
      const job = bridges.queueJob({ repository, durationMs: between(random, 100, 60_000) });
      if (random.next() < CANCELLED) clock.schedule(between(random, 0, 60_000), () => bridges.cancelJob(job));
    });
  }
  let isOver = false;
  if (hasFaults) injectFaults(bridges, () => isOver);
  watch(bridges);
  await world.until(() => false, BUSY_MS);
  isOver = true;
  endFaults(bridges);
  await settle(bridges);
  const { violation, lastSteps, count } = checker;
  return { seed, violation, lastSteps: [...lastSteps], steps: count, virtualMs: clock.monotonic() };
}

/** Reports violations soon after they occur. */
function watch(bridges: BridgeWorld): void {
  const { clock, checker } = bridges.world;
  for (const { rule, what } of violations(bridges)) checker.report(rule, what);
  clock.schedule(WATCH_INTERVAL_MS, () => watch(bridges));
}

function injectFaults(bridges: BridgeWorld, isOver: () => boolean): void {
  const { world } = bridges;
  const random = world.random();
  const later = (least: number, greatest: number, what: () => void): void => {
    world.clock.schedule(between(random, least, greatest), () => {
      if (!isOver()) what();
    });
  };
  const next = (): void =>
    later(PAUSE_MS.least, PAUSE_MS.greatest, () => {
      weighted(random, BRIDGE_FAULTS)?.({ bridges, random, later });
      next();
    });
  next();
}

async function settle(bridges: BridgeWorld): Promise<void> {
  const { world } = bridges;
  const { checker, clock } = world;
  const look = (): ReturnType<typeof unfinishedOfBridges> => unfinishedOfBridges(bridges);
  const limit = clock.monotonic() + BRIDGE_BOUND_MS;
  while (checker.violation === undefined && look().next().done !== true) {
    await world.until(() => false, CHECK_INTERVAL_MS);
    if (clock.monotonic() > limit) for (const { rule, what } of look()) checker.report(rule, what);
  }
  // The final state must be stable.
  await world.until(() => false, RECHECK_INTERVAL_MS);
  for (const { rule, what } of look()) checker.report(rule, what);
}

/** One run: a seed creates a world and its faults; in the end the world must reach a stable state. */

import type { Violation } from './checker.js';
import { FaultInjector } from './faults.js';
import { BUSY_SITE, SimulatedBuilders, type WorldOptions } from './world.js';

export interface RunResult {
  readonly seed: number;
  /** Undefined if all rules held. */
  readonly violation: Violation | undefined;
  readonly lastSteps: readonly string[];
}

const HOUR = 3_600_000;
/** Duration of the faults, milliseconds. */
const BUSY_MS = 1.5 * HOUR;
/** Time limit (ms) to reach a stable state, longer than any chain of back-offs and time-outs. */
const DEFAULT_WAIT_LIMIT_MS = 6 * HOUR;
/** Interval (ms) between checks for a stable state. */
const CHECK_INTERVAL_MS = 60_000;

export interface RunOptions extends WorldOptions {
  /** Time limit to reach a stable state after the faults (ms). Default: longer than any chain of back-offs. */
  readonly waitLimitMs?: number;
}

/** Runs one seed to its end, or to the first violation. */
export async function simulate(options: RunOptions): Promise<RunResult> {
  const { seed, waitLimitMs = DEFAULT_WAIT_LIMIT_MS } = options;
  const world = new SimulatedBuilders(options);
  for (const machine of world.machines) world.start(machine, BUSY_SITE);
  const faultInjector = new FaultInjector(world, world.random());
  faultInjector.begin();
  await world.until(() => false, BUSY_MS);
  faultInjector.end();
  const { checker } = world;
  let settled = false;
  const deadline = world.clock.monotonic() + waitLimitMs;
  while (!settled && checker.violation === undefined && world.clock.monotonic() < deadline) {
    await world.until(() => false, CHECK_INTERVAL_MS);
    settled = checker.unfinished().length === 0;
  }
  if (!settled) for (const what of checker.unfinished()) checker.report('L6', what);
  world.end();
  return { seed, violation: checker.violation, lastSteps: [...checker.lastSteps] };
}

/** One run: a seed makes a world, trouble and requests; in the end everything must come to rest. */

import type { Mutation } from './mutation.js';
import type { CheckerOptions, Violation } from './checker.js';
import { unrest } from './rules/rest.js';
import { WHOLE_SITE } from './site.js';
import { between, Troublemaker } from './trouble.js';
import { World } from './world.js';

export interface RunOptions extends CheckerOptions {
  readonly seed: number;
  /** Spoils every launcher. */
  readonly mutation?: Mutation | undefined;
  /** Whether things go wrong. Default: yes. */
  readonly trouble?: boolean;
  /** Launchers that are there from the beginning. Default 3. */
  readonly launchers?: number;
  /** Milliseconds within which everything must come to rest after all trouble is over. Default 1,800,000. */
  readonly patienceMs?: number;
  /** Requests that are made. Default 30. */
  readonly requests?: number;
}

export interface RunResult {
  readonly seed: number;
  /** Undefined: all rules held. */
  readonly violation: Violation | undefined;
  readonly lastSteps: readonly string[];
  /** How much happened. */
  readonly steps: number;
  /** Milliseconds of virtual time. */
  readonly virtualMs: number;
}

/** How long requests keep coming, milliseconds. */
const BUSY_MS = 120_000;
/** Longer than any chain of time-outs of the site. */
const PATIENCE_MS = 1_800_000;
/** An operator makes room so often. */
const OPERATOR_LOOKS_MS = 60_000;
/** What rests is watched for so long. */
const LOOK_AGAIN_MS = 120_000;

/** Runs one seed to its end, or to the first rule that does not hold. */
export async function simulate(options: RunOptions): Promise<RunResult> {
  const { seed, trouble = true, launchers = 3, requests = 30, patienceMs = PATIENCE_MS } = options;
  const world = new World(options);
  const random = world.random();
  for (let index = 1; index <= launchers; index += 1) {
    const name = `launcher-${index}`;
    world.clock.schedule(between(random, 0, 5000), () => world.startLauncher(name, WHOLE_SITE));
  }
  for (let index = 0; index < requests; index += 1) {
    world.clock.schedule(between(random, 1000, BUSY_MS), () => world.startRequestor());
  }
  const troublemaker = new Troublemaker(world, world.random());
  if (trouble) troublemaker.begin();
  await world.until(() => false, BUSY_MS);
  if (world.checker.violation === undefined) {
    troublemaker.end();
    await comeToRest(world, patienceMs);
  }
  world.end();
  const { violation, lastSteps, count } = world.checker;
  return { seed, violation, lastSteps: [...lastSteps], steps: count, virtualMs: world.clock.monotonic() };
}

/** As an operator does when ready nodes that nobody asks for fill a pool. */
function makeRoom(world: World): void {
  world.clock.schedule(OPERATOR_LOOKS_MS, () => {
    world.startOperator();
    makeRoom(world);
  });
}

async function comeToRest(world: World, patienceMs: number): Promise<void> {
  const { checker } = world;
  makeRoom(world);
  const rests = (): boolean => unrest(world).length === 0;
  if (await world.until(rests, patienceMs)) {
    // What rests must stay at rest.
    await world.until(() => false, LOOK_AGAIN_MS);
  }
  if (checker.violation !== undefined) return;
  for (const { rule, what } of unrest(world)) checker.report(rule, what);
}

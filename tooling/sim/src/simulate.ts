/** One run: a seed makes a world, trouble and requests; in the end everything must come to rest. */

import { between } from './chance.js';
import type { CheckerOptions, Violation } from './checker.js';
import type { Mutation } from './mutation.js';
import { deleteLeakedByHand } from './operator.js';
import { BOUNDS, unrest, unrestDespite, type Unrest } from './rules/rest.js';
import { QUOTA, SITE_AT_QUOTA, WHOLE_SITE } from './site.js';
import { Troublemaker } from './trouble.js';
import { World } from './world.js';

export interface RunOptions extends CheckerOptions {
  readonly seed: number;
  /** Spoils every launcher. */
  readonly mutation?: Mutation | undefined;
  /**
   * What goes wrong: `all` of it, one thing after another; `nothing`; nothing but that the cloud has a `quota`, at a site
   * with one provider; or one provider's `driver`, from beginning to end, while nobody wants anything but another provider.
   * Default: `all`.
   */
  readonly trouble?: 'all' | 'nothing' | 'quota' | 'driver' | undefined;
  /** Launchers that are there from the beginning. Default 3. */
  readonly launchers?: number | undefined;
  /** Requests that are made. Default 30. */
  readonly requests?: number | undefined;
  /** Greatest time, milliseconds, that a rule may leave something at unrest. Default: as the rule says. */
  readonly patienceMs?: number | undefined;
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
/** Later than launchers clear up by themselves. */
const PEOPLE_LOOK_MS = 400_000;
/** It is looked for unrest that lasts too long so often, and what rests is watched for so long. */
const LOOK_MS = 20_000;
const LOOK_AGAIN_MS = 120_000;
/** Nothing lasts as long as that: something is wrong with the run itself. */
const NEVER_MS = 7_200_000;
/** The provider that has nothing to do with a driver that fails. */
const HEALTHY = 'beta';

/** Runs one seed to its end, or to the first rule that does not hold. */
export async function simulate(options: RunOptions): Promise<RunResult> {
  const { seed, trouble = 'all', launchers = 3, requests = 30 } = options;
  const world = new World({ ...options, quota: trouble === 'quota' ? QUOTA : undefined });
  const site = trouble === 'quota' ? SITE_AT_QUOTA : WHOLE_SITE;
  const random = world.random();
  for (let index = 1; index <= launchers; index += 1) {
    const name = `launcher-${index}`;
    world.clock.schedule(between(random, 0, 5000), () => world.startLauncher(name, site));
  }
  world.startForeigner();
  const provider = trouble === 'driver' ? HEALTHY : undefined;
  for (let index = 0; index < requests; index += 1) {
    world.clock.schedule(between(random, 1000, BUSY_MS), () => world.startRequestor(provider));
  }
  if (trouble === 'driver') Object.assign(world.driverFaults, { mode: seed % 2 === 0 ? 'hangs' : 'throws', rate: 1 });
  const troublemaker = new Troublemaker(world, world.random());
  if (trouble === 'all') troublemaker.begin();
  await world.until(() => false, BUSY_MS);
  if (trouble === 'all') troublemaker.end();
  await comeToRest(world, options);
  world.end();
  const { violation, lastSteps, count } = world.checker;
  return { seed, violation, lastSteps: [...lastSteps], steps: count, virtualMs: world.clock.monotonic() };
}

/** As people do whom the launcher has told that it deletes nothing as long as so much looks leaked. */
function lookAfter(world: World): void {
  world.clock.schedule(PEOPLE_LOOK_MS, () => {
    if (world.needsPeople) deleteLeakedByHand(world);
  });
}

async function comeToRest(world: World, { trouble, patienceMs }: RunOptions): Promise<void> {
  const { checker, clock } = world;
  const look = (): Generator<Unrest> => (trouble === 'driver' ? unrestDespite(world, HEALTHY) : unrest(world));
  const since = new Map<string, number>();
  lookAfter(world);
  const givenUpAt = clock.monotonic() + NEVER_MS;
  while (checker.violation === undefined && !(await world.until(() => look().next().done === true, LOOK_MS))) {
    const restless = [...look()];
    const names = new Set(restless.map(nameOf));
    for (const name of since.keys()) if (!names.has(name)) since.delete(name);
    for (const each of restless) {
      const start = since.get(nameOf(each)) ?? clock.monotonic();
      since.set(nameOf(each), start);
      const bound = Math.min(BOUNDS[each.rule] ?? NEVER_MS, patienceMs ?? Infinity);
      if (clock.monotonic() - start > bound || clock.monotonic() > givenUpAt) checker.report(each.rule, each.what);
    }
    if (clock.monotonic() > givenUpAt) return;
  }
  // What rests must stay at rest.
  await world.until(() => false, LOOK_AGAIN_MS);
  if (checker.violation === undefined) for (const { rule, what } of look()) checker.report(rule, what);
}

function nameOf({ rule, subject }: Unrest): string {
  return `${rule} ${subject}`;
}

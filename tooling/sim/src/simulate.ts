/** One run: a seed determines a world, faults and requests. At the end, all objects must reach their final state. */

import { between } from './chance.js';
import type { CheckerOptions, Violation } from './checker.js';
import { MemoryDisk } from './images/built-images.js';
import { operateImages } from './images/image-operator.js';
import type { Mutation } from './mutation.js';
import { confirmRecords, deleteLeakedByHand, isSuspended } from './operator.js';
import { BOUNDS, unfinished, unfinishedDespite, type UnfinishedWork } from './rules/rest.js';
import {
  MACHINE_LABELS,
  QUOTA,
  RACK,
  SITE_AT_QUOTA,
  SITE_WITH_SHARES,
  SITE_WITH_IMAGES,
  SITE_WITH_SLOTS,
  SITE_WITH_SPARE,
  SITE_WITH_SUPPLY,
  SLOT_LABEL,
  WHOLE_SITE,
  type Site,
} from './site.js';
import { ALL_FAULTS, FaultInjector } from './fault-injector.js';
import type { RunKind } from './run-kinds.js';
import type { WeightedFault } from './faults/fault-context.js';
import { ID_FAULTS } from './faults/ids.js';
import { IMAGE_FAULTS } from './faults/images.js';
import { loseInstancesInTurn } from './faults/losses.js';
import { SLOT_FAULTS } from './faults/slots.js';
import { refuseInTurn } from './faults/refusals.js';
import { World } from './world.js';

export interface RunOptions extends CheckerOptions {
  readonly seed: number;
  /** A defect of every launcher. */
  readonly mutation?: Mutation | undefined;
  /** Kind of the run. Default: `all`. */
  readonly fault?: RunKind | undefined;
  /** Number of launchers at the start. Default 3. */
  readonly launchers?: number | undefined;
  /** Number of requests. Default 30. */
  readonly requests?: number | undefined;
  /** Maximum time for unfinished objects, milliseconds. Default: the rule's limit. */
  readonly waitLimitMs?: number | undefined;
}

export interface RunResult {
  readonly seed: number;
  /** Undefined if all rules held. */
  readonly violation: Violation | undefined;
  readonly lastSteps: readonly string[];
  /** Number of steps. */
  readonly steps: number;
  /** Milliseconds of virtual time. */
  readonly virtualMs: number;
}

/** Time during which requests are created (ms). */
const BUSY_MS = 120_000;
/** The same for runs with refusals or losses (ms). */
const LONG_MS = 900_000;
/** The same for runs with images (ms), and the number of requests per request of other runs. */
const IMAGES_MS = 3_600_000;
const IMAGES_REQUESTS = 10;
/** Time after which operators intervene, longer than launchers need to clean up (ms). */
const OPERATOR_DELAY_MS = 400_000;
/** Ratio of requests for cloud nodes to requests for static machines. */
const MACHINE_SHARE = 3;
/** Interval between searches for overdue objects, and time for which the final state is observed (ms). */
const CHECK_INTERVAL_MS = 20_000;
const RECHECK_INTERVAL_MS = 120_000;
/** Time limit of a run (ms). A run that exceeds it is itself defective. */
const RUN_LIMIT_MS = 7_200_000;
/** Requests of runs with fair shares: more than the pool can serve while they are created. */
const CONTENDING_REQUESTS = 80;
/** The provider that does not use the defective driver. */
const HEALTHY = 'beta';

/** Faults of runs that have only some. */
const FAULTS_OF: Partial<Record<RunKind, readonly WeightedFault[]>> = {
  ids: ID_FAULTS,
  slots: SLOT_FAULTS,
  images: IMAGE_FAULTS,
};

/** Runs one seed until its end or the first violation. */
export async function simulate(options: RunOptions): Promise<RunResult> {
  const { seed, fault = 'all', launchers = 3, requests = fault === 'shares' ? CONTENDING_REQUESTS : 30 } = options;
  const onlyRefusals = fault === 'refusals';
  const quota = fault === 'quota' ? QUOTA : undefined;
  const world = new World({ ...options, onlyRefusals, quota, reusesIds: fault === 'ids' });
  const site = siteFor(fault);
  world.shares = site.shares;
  const busyMs = fault === 'images' ? IMAGES_MS : onlyRefusals || fault === 'losses' ? LONG_MS : BUSY_MS;
  const random = world.random();
  for (let index = 1; index <= launchers; index += 1) {
    const name = `launcher-${index}`;
    world.clock.schedule(between(random, 0, 5000), () => world.startLauncher(name, site));
  }
  world.startForeignInstance();
  const provider = fault === 'driver' ? HEALTHY : undefined;
  const labels = fault === 'slots' ? [SLOT_LABEL] : undefined;
  const requestCount = fault === 'images' ? IMAGES_REQUESTS * requests : requests;
  for (let index = 0; index < requestCount; index += 1) {
    world.clock.schedule(between(random, 1000, busyMs), () => world.startRequestor(provider, labels));
  }
  for (let index = 0; hasMachines(site, fault) && index < requests / MACHINE_SHARE; index += 1) {
    world.clock.schedule(between(random, 1000, BUSY_MS), () => world.startRequestor(undefined, MACHINE_LABELS));
  }
  if (fault === 'driver') Object.assign(world.driverFaults, { mode: seed % 2 === 0 ? 'hangs' : 'throws', rate: 1 });
  const faultInjector = new FaultInjector(world, world.random(), FAULTS_OF[fault] ?? ALL_FAULTS, site);
  const hasFaults = fault === 'all' || FAULTS_OF[fault] !== undefined;
  if (hasFaults) faultInjector.begin();
  let isOver = false;
  if (onlyRefusals) refuseInTurn(world, world.random(), () => isOver);
  if (fault === 'losses') loseInstancesInTurn(world, world.random(), () => isOver);
  if (fault === 'images') useImages(world, () => isOver);
  await world.until(() => false, busyMs);
  isOver = true;
  world.cloudFaults.refusals.clear();
  if (hasFaults) faultInjector.end();
  await settle(world, options);
  world.end();
  const { violation, lastSteps, count } = world.checker;
  return { seed, violation, lastSteps: [...lastSteps], steps: count, virtualMs: world.clock.monotonic() };
}

/** Starts builders, and an operator who decides about their images. */
function useImages(world: World, isOver: () => boolean): void {
  for (const name of ['builder-1', 'builder-2']) world.startBuilder({ name, disk: new MemoryDisk() });
  operateImages(world, world.random(), isOver).catch((error: unknown) =>
    world.checker.report('X', `the operator of images failed: ${String(error)}`),
  );
}

/** With a defective driver, all requests use the provider that does not have it. */
function hasMachines({ providers }: Site, fault: RunOptions['fault']): boolean {
  return fault !== 'driver' && providers.some(({ name }) => name === RACK);
}

function siteFor(fault: RunOptions['fault']): Site {
  if (fault === 'quota') return SITE_AT_QUOTA;
  if (fault === 'losses') return SITE_WITH_SUPPLY;
  if (fault === 'slots') return SITE_WITH_SLOTS;
  if (fault === 'shares') return SITE_WITH_SHARES;
  if (fault === 'images') return SITE_WITH_IMAGES;
  return fault === 'refusals' ? SITE_WITH_SPARE : WHOLE_SITE;
}

/** Simulates operators, who act only if an older state was restored: without that, launchers need no help. */
function lookAfter(world: World): void {
  if (!world.needsOperators) return;
  const act = async (): Promise<void> => {
    if (!isSuspended(world)) return;
    deleteLeakedByHand(world);
    await confirmRecords(world);
  };
  world.clock.schedule(OPERATOR_DELAY_MS, () => {
    act().catch((error: unknown) => world.checker.report('X', `the operator failed: ${String(error)}`));
    lookAfter(world);
  });
}

async function settle(world: World, { fault, waitLimitMs }: RunOptions): Promise<void> {
  const { checker } = world;
  const look = (): Generator<UnfinishedWork> =>
    fault === 'driver' ? unfinishedDespite(world, HEALTHY) : unfinished(world);
  lookAfter(world);
  await rest(world, look, waitLimitMs);
  // The final state must be stable.
  await world.until(() => false, RECHECK_INTERVAL_MS);
  if (checker.violation !== undefined) return;
  // Builders build their images again when these are old enough, and each upload requests a launch test. Such a request
  // is not overdue because it began after the state of rest; it has the time that its rule grants.
  if (fault === 'images') await rest(world, look, waitLimitMs);
  else for (const { rule, what } of look()) checker.report(rule, what);
}

/** Resolves once no object is unfinished. Reports the objects that are unfinished for longer than their rules allow. */
async function rest(
  world: World,
  look: () => Generator<UnfinishedWork>,
  waitLimitMs: number | undefined,
): Promise<void> {
  const { checker, clock } = world;
  const since = new Map<string, number>();
  const givenUpAt = clock.monotonic() + RUN_LIMIT_MS;
  while (
    checker.violation === undefined &&
    !(await world.until(() => look().next().done === true, CHECK_INTERVAL_MS))
  ) {
    const restless = [...look()];
    const names = new Set(restless.map(nameOf));
    for (const name of since.keys()) if (!names.has(name)) since.delete(name);
    for (const each of restless) {
      const start = since.get(nameOf(each)) ?? clock.monotonic();
      since.set(nameOf(each), start);
      const bound = Math.min(BOUNDS[each.rule] ?? RUN_LIMIT_MS, waitLimitMs ?? Infinity);
      if (clock.monotonic() - start > bound || clock.monotonic() > givenUpAt) checker.report(each.rule, each.what);
    }
    if (clock.monotonic() > givenUpAt) return;
  }
}

function nameOf({ rule, subject }: UnfinishedWork): string {
  return `${rule} ${subject}`;
}

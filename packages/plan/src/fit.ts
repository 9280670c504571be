/** Searches the smallest limit of the number of nodes with which the waits of a label hold a target. */

import type { NodepoolConfig } from '@nodepool/config';
import type { Day } from './day/day.js';
import type { AssumedTimes } from './model/draws.js';
import type { PoolLimits } from './model/model-config.js';
import { assumptionsOf, GENERAL, IN_THIS_THREAD, seedsAfter, type Replays } from './plan.js';
import type { RunMeasures } from './result/measures.js';
import { quantile, sortedWaits } from './result/summary.js';
import { section } from './result/text.js';
import { count, seconds } from './result/units.js';

/** The waits of a label to achieve. */
export interface FitTarget {
  readonly label: string;
  /** The part of the requests, 0 to 1. */
  readonly part: number;
  readonly waitMs: number;
  /** The pool (`provider/pool`) whose limit is searched. Default: all pools that serve the label, together. */
  readonly pool?: string | undefined;
}

export interface FitOptions {
  readonly day: Day;
  readonly config: NodepoolConfig;
  readonly target: FitTarget;
  /** Number of replays of each limit. The target must hold in most of them. */
  readonly runs: number;
  readonly assumed?: Partial<AssumedTimes> | undefined;
  readonly signal?: AbortSignal | undefined;
  readonly onTrial?: ((trial: FitTrial) => void) | undefined;
  /** Default: one replay at a time, in this thread. */
  readonly replays?: Replays | undefined;
}

/** One limit that was tried. */
export interface FitTrial {
  /** Limit of all pools together; null: none. */
  readonly limit: number | null;
  /** Waits of the wanted part of the requests in each run, seconds; null for requests that got no nodes. */
  readonly waits: readonly (number | null)[];
  readonly holds: boolean;
}

export interface FitResult {
  /** The pools with their limits in the configuration; null: no limit. */
  readonly pools: Readonly<Record<string, number | null>>;
  readonly trials: readonly FitTrial[];
  /** The smallest limit of all pools together; null if no limit holds the target. */
  readonly limit: number | null;
  /** The same limit by pool. */
  readonly limits: Readonly<Record<string, number>>;
  /** Assumptions behind the result, and the limits of its knowledge, as sentences. */
  readonly assumptions: readonly string[];
}

/** The target names a label or a pool that does not exist. */
export class FitError extends Error {}

/** Rejects with `FitError`. */
export async function fit(options: FitOptions): Promise<FitResult> {
  const { config, target } = options;
  const pools = poolsOf(config, target);
  const trials: FitTrial[] = [];
  const found = new Set<string>();
  const attempt = async (limit: number): Promise<Trial> => {
    const trial = await tryLimit(options, limitsOf(pools, limit), limit);
    trials.push(trial.result);
    for (const assumption of trial.assumptions) found.add(assumption);
    options.onTrial?.(trial.result);
    return trial;
  };
  const present = Object.fromEntries([...pools].map(([name, limit]) => [name, Number.isFinite(limit) ? limit : null]));
  const unlimited = await attempt(Infinity);
  const assumptions = (): readonly string[] => [...found, ...GENERAL];
  if (!unlimited.result.holds) {
    return { pools: present, trials, limit: null, limits: {}, assumptions: assumptions() };
  }
  // `low` does not hold, and `high` does: without a limit there were no more nodes.
  let low = 0;
  let high = Math.max(1, unlimited.mostNodes);
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if ((await attempt(middle)).result.holds) high = middle;
    else low = middle;
  }
  const limits = Object.fromEntries(limitsOf(pools, high));
  return { pools: present, trials, limit: high, limits, assumptions: assumptions() };
}

interface Trial {
  readonly result: FitTrial;
  /** Most nodes of the pools in one run. */
  readonly mostNodes: number;
  readonly assumptions: readonly string[];
}

/** Replays until most runs have the same answer. */
async function tryLimit(options: FitOptions, limits: PoolLimits, limit: number): Promise<Trial> {
  const { day, config, target, runs, assumed, signal } = options;
  const { replays = IN_THIS_THREAD } = options;
  const majority = Math.floor(runs / 2) + 1;
  const waits: number[] = [];
  const assumptions = new Set<string>();
  let mostNodes = 0;
  let held = 0;
  while (held < majority && waits.length - held <= runs - majority) {
    const batch = seedsAfter(waits.length, Math.min(runs, waits.length + replays.size));
    const measured = await Promise.all(
      batch.map((seed) => replays.replay({ day, config, seed, limits, assumed, signal })),
    );
    for (const assumption of assumptionsOf(day, config, measured)) assumptions.add(assumption);
    for (const measures of measured) {
      const wait = waitOf(measures, target);
      waits.push(wait);
      if (wait <= target.waitMs) held += 1;
      const most = [...limits.keys()].reduce((sum, pool) => sum + (measures.pools[pool]?.mostNodes ?? 0), 0);
      mostNodes = Math.max(mostNodes, most);
    }
  }
  const result = {
    limit: Number.isFinite(limit) ? limit : null,
    waits: waits.map((wait) => (Number.isFinite(wait) ? wait / 1000 : null)),
    holds: held >= majority,
  };
  return { result, mostNodes, assumptions: [...assumptions] };
}

function waitOf({ labels }: RunMeasures, { label, part }: FitTarget): number {
  const measures = labels[label];
  const wait = measures === undefined ? undefined : quantile(sortedWaits(measures), part);
  if (wait === undefined) throw new FitError(`no request of the day has label ${label}`);
  return wait;
}

/** Returns the pools that serve the label, or the named one, with their limits. Throws `FitError`. */
function poolsOf({ providers }: NodepoolConfig, { label, pool: wanted }: FitTarget): ReadonlyMap<string, number> {
  const found = new Map<string, number>();
  for (const provider of providers.values()) {
    for (const pool of provider.pools.values()) {
      const name = `${provider.name}/${pool.name}`;
      if (pool.labels.has(label) && (wanted === undefined || wanted === name)) found.set(name, pool.maxServers);
    }
  }
  if (found.size > 0) return found;
  throw new FitError(
    wanted === undefined
      ? `no pool of the configuration serves label ${label}`
      : `the configuration has no pool ${wanted} that serves label ${label}`,
  );
}

/** Divides a limit between the pools in the proportion of their limits, and evenly if one has none. */
function limitsOf(pools: ReadonlyMap<string, number>, limit: number): PoolLimits {
  if (limit === Infinity) return new Map([...pools.keys()].map((name) => [name, Infinity]));
  const isBounded = [...pools.values()].every((each) => Number.isFinite(each) && each > 0);
  const weight = (each: number): number => (isBounded ? each : 1);
  const total = [...pools.values()].reduce((sum, each) => sum + weight(each), 0);
  const limits = new Map<string, number>();
  let weights = 0;
  let given = 0;
  for (const [name, each] of pools) {
    weights += weight(each);
    const upTo = Math.round((limit * weights) / total);
    limits.set(name, upTo - given);
    given = upTo;
  }
  return limits;
}

/** Returns one trial as a line of text. */
export function trialText({ limit, waits, holds }: FitTrial, { part }: FitTarget): string {
  const texts = waits.map((wait) => seconds(wait ?? Infinity));
  return `limit ${limit ?? 'none'}: p${Math.round(part * 100)} ${texts.join(', ')}: ${holds ? 'holds' : 'does not hold'}`;
}

/** Returns the result as text. */
export function fitText(result: FitResult, target: FitTarget): string {
  return [...answer(result, target), ...section('What this rests on', result.assumptions)].join('\n');
}

function answer({ pools, limit, limits, trials }: FitResult, { label, part, waitMs }: FitTarget): readonly string[] {
  const what = `p${Math.round(part * 100)} of the waits of ${label} within ${seconds(waitMs / 1000)}`;
  const present = Object.entries(pools).map(([name, each]) => `${name} ${each ?? 'none'}`);
  if (limit === null) {
    return [`No limit holds ${what}: even without a limit it takes longer, because of launches and other limits.`];
  }
  const found = Object.entries(limits).map(([name, each]) => `${name} ${each}`);
  return [
    `The smallest limit that holds ${what} in most runs is ${count(limit)} (${found.join(', ')}).`,
    `The configuration has ${present.join(', ')}. ${trials.length} limits were tried.`,
  ];
}

/** Compares configurations by several replays of a day. */

import type { NodepoolConfig } from '@nodepool/config';
import type { Day } from './day/day.js';
import { placeKey } from './day/day.js';
import type { AssumedTimes } from './model/draws.js';
import { isModelled } from './model/model-config.js';
import { replay, type ReplayOptions } from './replay.js';
import { describeChanges } from './result/changes.js';
import type { RunMeasures } from './result/measures.js';
import { recordedLabels, summarize, type RecordedLabel, type Summary } from './result/summary.js';

/** Runs replays; see `ReplayPool`. */
export interface Replays {
  readonly size: number;
  readonly replay: (options: ReplayOptions) => Promise<RunMeasures>;
}

export const IN_THIS_THREAD: Replays = { size: 1, replay };

export interface PlannedConfiguration {
  /** Name for tables, e.g. `in force`. */
  readonly name: string;
  readonly config: NodepoolConfig;
}

export interface PlanOptions {
  readonly day: Day;
  /** One configuration, or the one in force and the new one. */
  readonly configurations: readonly PlannedConfiguration[];
  /** Number of replays of each configuration, each with a seed of its own. */
  readonly runs: number;
  readonly assumed?: Partial<AssumedTimes> | undefined;
  readonly signal?: AbortSignal | undefined;
  readonly onProgress?: ((text: string) => void) | undefined;
  /** The replays, and how many may run at the same time. Default: one at a time, in this thread. */
  readonly replays?: Replays | undefined;
}

export interface PlanResult {
  readonly day: { readonly from: string; readonly to: string; readonly requests: number; readonly launches: number };
  readonly runs: number;
  readonly recorded: Readonly<Record<string, RecordedLabel>>;
  readonly configurations: readonly (Summary & { readonly name: string })[];
  /** Differences between two configurations that exceed the spread of the runs, as sentences. */
  readonly changes: readonly string[];
  /** Assumptions behind the result, and the limits of its knowledge, as sentences. */
  readonly assumptions: readonly string[];
}

export async function plan(options: PlanOptions): Promise<PlanResult> {
  const { day, configurations, runs, assumed, signal, onProgress } = options;
  const { replays = IN_THIS_THREAD } = options;
  const assumptions = new Set<string>();
  const summaries: (Summary & { readonly name: string })[] = [];
  for (const { name, config } of configurations) {
    const measured: RunMeasures[] = [];
    while (measured.length < runs) {
      const batch = seedsAfter(measured.length, Math.min(runs, measured.length + replays.size));
      onProgress?.(`configuration ${name}: run ${batch.join(', ')} of ${runs}`);
      measured.push(
        ...(await Promise.all(batch.map((seed) => replays.replay({ day, config, seed, assumed, signal })))),
      );
    }
    for (const assumption of assumptionsOf(day, config, measured)) assumptions.add(assumption);
    summaries.push({ name, ...summarize(measured) });
  }
  const [before, after] = summaries;
  return {
    day: {
      from: new Date(day.fromMs).toISOString(),
      to: new Date(day.toMs).toISOString(),
      requests: day.requests.filter(({ isInitial }) => !isInitial).length,
      launches: day.launches.length,
    },
    runs,
    recorded: recordedLabels(day),
    configurations: summaries,
    changes: before === undefined || after === undefined ? [] : describeChanges(before, after),
    assumptions: [...(runs === 1 ? [ONE_RUN] : []), ...assumptions, ...GENERAL],
  };
}

/** Returns the assumptions behind replays of a day with a configuration, as sentences. */
export function assumptionsOf(
  day: Day,
  config: NodepoolConfig,
  measured: readonly Pick<RunMeasures, 'assumptions'>[],
): readonly string[] {
  const ofRuns = measured.flatMap(({ assumptions }) => assumptions);
  return [...new Set([...day.notes, ...ofRuns, ...limitsOfKnowledge(day, config)])];
}

/** Returns the seeds of the next replays, after `done` ones and up to `last`. */
export function seedsAfter(done: number, last: number): readonly number[] {
  return Array.from({ length: last - done }, (_, index) => done + index + 1);
}

const ONE_RUN = 'Each configuration was replayed once: how far chance changes the figures is not known.';

/** Limits of the knowledge of every replay. */
export const GENERAL: readonly string[] = [
  'The runs differ by the chance in launches and unknown uses of nodes, not as other days may differ.',
  'One launcher with all providers is assumed. Restarts, outages of ZooKeeper and failed deletions are not replayed.',
  'Launches take the recorded times at any load: a cloud that slows down or throttles under more load is not modelled.',
  'Requestors create the same requests at the same times, whatever the waits; nothing is requested again.',
];

/** Returns what is not known about the clouds of a configuration, as sentences. */
function limitsOfKnowledge(day: Day, { providers, brokenProviders }: NodepoolConfig): readonly string[] {
  const found: string[] = [];
  for (const [name, { driver, reason }] of brokenProviders) {
    found.push(`Provider ${name} is left out, because its driver ${driver} cannot be loaded: ${reason}.`);
  }
  for (const [name, provider] of providers) {
    if (!isModelled(provider)) {
      found.push(`Provider ${name} runs the code of its driver ${provider.driver}; its machines never fail.`);
      continue;
    }
    const pools = [...provider.pools.values()];
    if (!day.limits.has(name) && pools.some((pool) => pool.ignoreProviderQuota !== true)) {
      found.push(`The limits of the cloud of provider ${name} are not known: only those of its pools apply.`);
    }
    const limited = pools.filter(({ limits }) => Object.keys(limits).length > 0);
    const unknown = limited.flatMap((pool) =>
      [...pool.labels.keys()].filter((label) => !day.needs.has(placeKey(name, pool.name, label))),
    );
    if (unknown.length > 0) {
      const labels = [...new Set(unknown)].join(', ');
      found.push(
        `The resources of ${labels} in provider ${name} are not known: limits of cores, RAM and others have no effect there.`,
      );
    }
  }
  return found;
}

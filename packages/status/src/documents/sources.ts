/** The sources of the status page's data. */

import { shortened as cutInTheMiddle, type Clock } from '@nodepool/core';
import type { ConfigProblem, NodepoolConfig } from '@nodepool/config';
import type { ExplanationSources } from '../explain/explanation.js';
import type { Store } from '@nodepool/store';
import type { ScaleSetRecord } from '@nodepool/store/github';
import type { ProviderActivity } from '../facts/activity.js';
import type { Capacity } from '../facts/capacity.js';
import type { Recorder } from '../history/recorder.js';
import type { RecentFailures } from '../history/recent-failures.js';
import type { NodeCounts } from './node-counts.js';

/** Data of the launcher for the status page, besides its records. */
export interface StatusSources {
  readonly hostname: string;
  readonly version: string;
  readonly config: () => Pick<
    NodepoolConfig,
    'providers' | 'brokenProviders' | 'driverPackages' | 'diskImages' | 'labels'
  >;
  /** Returns the problems of the current configuration files. */
  readonly problems: () => readonly ConfigProblem[];
  /** Returns the time (ms) since when the configuration files are refused; undefined if they are in force. */
  readonly refusedSince: () => number | undefined;
  readonly failures: Pick<RecentFailures, 'list'>;
  /** The history of the last day, with the failures and the changes of providers, and the numbers of nodes. */
  readonly recorder: Pick<
    Recorder,
    | 'timelines'
    | 'history'
    | 'failures'
    | 'providerEvents'
    | 'persisted'
    | 'zooKeeper'
    | 'nodes'
    | 'costs'
    | 'exportJournal'
  >;
  /** Returns what limits leave for further nodes. */
  readonly capacity: () => Capacity;
  /** Returns the lateness of timers since it was last reset, seconds. */
  readonly eventLoopDelay: () => { readonly p99: number };
}

export interface ScaleSetEntry {
  readonly record: ScaleSetRecord;
  /** Number of running bridges that serve the scale set or stand by. */
  readonly bridges: number;
}

/** The scale sets of bridges for GitHub Actions. */
export interface ScaleSets {
  /** False until all records are read. */
  readonly complete: boolean;
  readonly sets: readonly ScaleSetEntry[];
}

/** The sources at one moment, the same for all sections. */
export interface Observed extends ExplanationSources {
  readonly store: Store;
  readonly clock: Clock;
  readonly isReady: () => boolean;
  readonly counts: NodeCounts;
  readonly status: StatusSources;
  readonly scaleSets: () => ScaleSets;
  /** Number of scale sets of bridges. */
  readonly scaleSetCount: number;
  readonly activity: () => readonly ProviderActivity[];
}

/** Returns a function that computes its result once for each moment, since several documents need it. */
export function oncePerMoment<T>(make: (observed: Observed) => T): (observed: Observed) => T {
  const results = new WeakMap<Observed, { readonly result: T }>();
  return (observed) => {
    const known = results.get(observed) ?? { result: make(observed) };
    results.set(observed, known);
    return known.result;
  };
}

const MAX_TEXT = 300;

/** Limits text from arbitrary sources to a length that suits the page. */
export function shortened(text: string, length = MAX_TEXT): string {
  return cutInTheMiddle(text, length);
}

export function groupBy<T>(items: Iterable<T>, keyOf: (item: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const item of items) {
    const key = keyOf(item);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [item]);
    else group.push(item);
  }
  return groups;
}

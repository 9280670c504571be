/** What the status page is made from. */

import type { Clock } from '@nodepool/core';
import type { ConfigProblem, NodepoolConfig } from '@nodepool/config';
import type { DecisionLog } from '../../diagnostics/decisions.js';
import type { Store } from '@nodepool/store';
import type { ProviderActivity } from '../../diagnostics/activity.js';
import type { RecentFailures } from '../../diagnostics/recent-failures.js';
import type { NodeCounts } from './node-counts.js';

/** What a launcher gives for it, besides its records. */
export interface StatusSources {
  readonly hostname: string;
  readonly version: string;
  /** The configuration that is in force. */
  readonly config: () => Pick<NodepoolConfig, 'providers' | 'brokenProviders' | 'driverPackages' | 'diskImages'>;
  /** What is wrong with the files as they are now. */
  readonly problems: () => readonly ConfigProblem[];
  readonly failures: Pick<RecentFailures, 'list'>;
}

/** At one moment: each part of the page is made of the same. */
export interface Observed {
  readonly store: Store;
  readonly clock: Clock;
  readonly isReady: () => boolean;
  readonly decisions: DecisionLog;
  readonly counts: NodeCounts;
  readonly status: StatusSources;
  readonly activity: readonly ProviderActivity[];
}

const MAX_TEXT = 300;

/** Text from anybody, as long as a page bears it. */
export function shortened(text: string, length = MAX_TEXT): string {
  return text.length <= length ? text : `${text.slice(0, length - 1)}…`;
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

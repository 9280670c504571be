/** The sources of problems, and the texts that several problems have. */

import type { ImageStatus, LabelStatus, ProviderStatus, ReasonGroup } from '../../client/model.js';

/** Length of names in titles. */
export const MAX_NAME = 80;

export interface ProblemSources {
  /** State of the connection to ZooKeeper. */
  readonly zookeeper: string;
  /** True while the launcher sees all records. */
  readonly complete: boolean;
  /** The first problems of a refused configuration, and their total number. */
  readonly configuration: { readonly problems: readonly string[]; readonly count: number };
  /** The first of the records that cannot be read, and their total number. */
  readonly unreadable: { readonly records: readonly string[]; readonly count: number };
  readonly providers: readonly ProviderStatus[];
  readonly labels: readonly LabelStatus[];
  readonly reasons: readonly ReasonGroup[];
  readonly images: readonly ImageStatus[];
  /** Number of registered builders. */
  readonly builders: number;
  /** Current time in unix seconds. */
  readonly now: number;
}

export function waitingFor(reasons: readonly ReasonGroup[], isFor: (pool: string) => boolean): number {
  return reasons.reduce((sum, { pool, count }) => sum + (pool !== null && isFor(pool) ? count : 0), 0);
}

export function effectOf(waiting: number): string | null {
  if (waiting === 0) return null;
  return waiting === 1 ? '1 request waits for it' : `${waiting} requests wait for it`;
}

export function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

export function withRest(texts: readonly string[], count: number): string[] {
  return count > texts.length ? [...texts, `and ${count - texts.length} more`] : [...texts];
}

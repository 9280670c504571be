/** Histories of a day in the documents. */

import type { Ref } from './model-parts.js';

/** Values over a day, oldest first. */
export interface HistoryStatus {
  /** Seconds between two samples. */
  readonly step: number;
  readonly samples: readonly HistorySample[];
  readonly events: readonly {
    readonly time: number;
    readonly text: string;
    readonly subject: Ref | null;
  }[];
  /** False if the history is kept in memory only. */
  readonly persisted: boolean;
  readonly since: number;
}

export interface HistorySample {
  readonly time: number;
  /** Numbers of nodes in the order of `NODE_GROUPS`. */
  readonly nodes: readonly number[];
  readonly waiting: number;
  /** Launches that ended and launches that failed since the sample before. */
  readonly launches: number;
  readonly failures: number;
  /** Requests that ended since the sample before. */
  readonly fulfilled: number;
  readonly failed: number;
  readonly cancelled: number;
  /** Time to node in seconds; null without fulfilled requests. */
  readonly p50: number | null;
  readonly p95: number | null;
}

/** Values of one label over a day, oldest first; a step without any value is omitted. */
export type LabelHistory = readonly {
  readonly time: number;
  readonly waiting: number;
  readonly fulfilled: number;
  readonly failed: number;
  readonly p50: number | null;
  readonly p95: number | null;
}[];

/** Values of one provider over a day, oldest first; a step without any value is omitted. */
export type ProviderHistory = readonly {
  readonly time: number;
  /** Instances in use, and their limit. */
  readonly used: number;
  readonly limit: number | null;
  readonly launches: number;
  readonly failures: number;
  readonly calls: number;
  readonly failedCalls: number;
  readonly throttled: number;
  /** Mean duration of a call in seconds. */
  readonly latency: number | null;
}[];

/** What every part of the launcher gets to live with. */

import type { Clock, Logger, Metrics, RandomSource, TaskSupervisor } from '@nodepool/core';
import type { DecisionRecorder } from './diagnostics/decisions.js';
import type { Store } from '@nodepool/store';

export interface LauncherContext {
  readonly store: Store;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly log: Logger;
  /** Background work: named, and heard of when it fails. */
  readonly tasks: TaskSupervisor;
  /** Waits for logins and gathers host keys. */
  readonly scanner: LoginScanner;
  /** Full host name, the first part of our pools' ids. */
  readonly hostname: string;
  /** Fully qualified name of the host, by which other programs and metrics know the launcher's pools. */
  readonly fqdn: string;
  readonly version: string;
  readonly metrics: Metrics;
  /** Time after a request's creation in which others of its priority that fit may pass it, milliseconds. */
  readonly backfillWindowMs: number;
  /** What was decided about requests, nodes and labels, for `explain`. */
  readonly decisions: DecisionRecorder;
}

/** Default of `backfillWindowMs`. */
export const BACKFILL_WINDOW_MS = 60_000;

/** What a launcher is made with; without `metrics` and `decisions` it reports none. */
export type LauncherOptions = Omit<LauncherContext, OptionalParts> & Partial<Pick<LauncherContext, OptionalParts>>;

type OptionalParts = 'metrics' | 'decisions' | 'backfillWindowMs' | 'fqdn';

/** Waits until a node's login answers; resolves with its host keys (none for logins without). Rejects with a `DriverError`. */
export interface LoginScanner {
  scan(login: {
    readonly host: string;
    readonly port: number;
    readonly connectionType: string;
    readonly signal: AbortSignal;
    readonly timeoutMs: number;
    readonly log: Logger;
  }): Promise<readonly string[]>;
}

/** Unix seconds, as records have them. */
export function unixSeconds(context: Pick<LauncherContext, 'clock'>): number {
  return context.clock.now() / 1000;
}

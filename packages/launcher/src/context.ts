/** Dependencies shared by all parts of the launcher. */

import type { Clock, Logger, Metrics, RandomSource, TaskSupervisor } from '@nodepool/core';
import type { DecisionRecorder } from './diagnostics/decisions.js';
import type { Store } from '@nodepool/store';

export interface LauncherContext {
  readonly store: Store;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly log: Logger;
  /** Runs named background work and reports its failures. */
  readonly tasks: TaskSupervisor;
  /** Waits for the logins of nodes and gathers their host keys. */
  readonly scanner: LoginScanner;
  /** Full host name; the components of the launcher are registered with it. */
  readonly hostname: string;
  /** Fully qualified host name; the ids of the launcher's pools begin with it. */
  readonly fqdn: string;
  readonly version: string;
  readonly metrics: Metrics;
  /** Time after a request's creation in which others of its priority that fit may pass it, milliseconds. */
  readonly backfillWindowMs: number;
  /** Records decisions about requests, nodes and labels, for `explain`. */
  readonly decisions: DecisionRecorder;
}

/** Default of `backfillWindowMs`. */
export const BACKFILL_WINDOW_MS = 60_000;

/** Options of a launcher. Without `metrics` and `decisions` it reports none. */
export type LauncherOptions = Omit<LauncherContext, OptionalParts> & Partial<Pick<LauncherContext, OptionalParts>>;

type OptionalParts = 'metrics' | 'decisions' | 'backfillWindowMs' | 'fqdn';

/**
 * Resolves with the host keys of a node once its login answers; with none for logins without. Rejects with a
 * `DriverError`.
 */
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

import type { ApiCall, Clock, Logger, Metrics, RandomSource, TaskSupervisor } from '@nodepool/core';
import type { DecisionRecorder, TimelineRecorder } from '@nodepool/status';
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
  /** Full host name, with which the components of the launcher are registered. */
  readonly hostname: string;
  /** Fully qualified host name; the ids of the launcher's pools begin with it. */
  readonly fqdn: string;
  readonly version: string;
  readonly metrics: Metrics;
  /** Time (ms) after a request's creation in which fitting requests of the same priority may overtake it. */
  readonly backfillWindowMs: number;
  /** Parts of the search for capacity that are enabled. */
  readonly capacity: CapacityOptions;
  /** Records decisions about requests, nodes and labels, for `explain`. */
  readonly decisions: DecisionRecorder;
  /** Records what requests wait for and the stages of launches, for their timelines. */
  readonly timelines: TimelineRecorder;
  /** Receives every call to a cloud for traces; undefined while tracing is off. */
  readonly traces?: { apiCall(provider: string, call: ApiCall): void } | undefined;
}

/** Switches for experiments and benchmarks. Everything is enabled in operation. */
export interface CapacityOptions {
  /** Requests avoid providers and offers that fail or are slow. */
  readonly breakers: boolean;
  /** A launch without capacity is tried in other zones, with other machine types of the label, and in other pools. */
  readonly offers: boolean;
}

/** Default of `backfillWindowMs`. */
export const BACKFILL_WINDOW_MS = 60_000;

/** Options of a launcher. `metrics`, `decisions` and `timelines` are optional sinks. */
export type LauncherOptions = Omit<LauncherContext, OptionalParts> & Partial<Pick<LauncherContext, OptionalParts>>;

type OptionalParts = 'metrics' | 'decisions' | 'timelines' | 'backfillWindowMs' | 'fqdn' | 'capacity';

/**
 * Waits until the login of a node answers. Resolves with the node's host keys, or with an empty array for connection
 * types without host keys; rejects with a `DriverError`.
 */
export interface LoginScanner {
  scan(login: {
    readonly host: string;
    readonly port: number;
    readonly connectionType: string;
    readonly signal: AbortSignal;
    readonly timeoutMs: number;
    readonly log: Logger;
    /** Called at the first accepted connection. */
    readonly onConnected?: () => void;
  }): Promise<readonly string[]>;
}

/** Returns the current time in unix seconds, the unit of records. */
export function unixSeconds(context: Pick<LauncherContext, 'clock'>): number {
  return context.clock.now() / 1000;
}

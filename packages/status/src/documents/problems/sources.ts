/** The sources of problems, and the texts that several problems have. */

import type { DamagedBackingNode, ComponentData, NodeEntry, PoolTrouble, Suspension } from '@nodepool/store';
import type { RecentLaunches } from '../../history/provider-failures.js';
import type { RefusalCause } from '../../facts/timeline-recorder.js';
import type { ImageStatus, LabelStatus, ProviderStatus, ReasonGroup } from '../../client/model.js';

/** Maximum length of names in titles. */
export const MAX_NAME = 80;

/** Requests for the same labels that failed. */
export interface FailedRequests {
  /** Sorted, each once. */
  readonly labels: readonly string[];
  readonly count: number;
  /** Unix seconds of the first of them. */
  readonly first: number;
  /** Reason of the last of them. */
  readonly reason: string | undefined;
  /** Kind of that reason; undefined if it is not known here. */
  readonly cause: RefusalCause | undefined;
  /** Unix seconds of the last of them. */
  readonly last: number;
  /** True if a pool has the labels now, or may return with them. */
  readonly hasPool: boolean;
  /** The pool with the labels that left last; undefined if `hasPool`, or if none is known. */
  readonly lastPool: FormerPool | undefined;
  /** Unix seconds at which a later request for the labels was fulfilled; undefined if none was. */
  readonly served: number | undefined;
}

/** A pool that has left the registry. */
export interface FormerPool {
  /** As `provider/pool`. */
  readonly pool: string;
  /** Host of its launcher. */
  readonly launcher: string;
  /** True if that launcher is registered without it, e.g. because its configuration has changed. */
  readonly isRunning: boolean;
}

export interface LastServed {
  /** Hosts of the launchers, sorted. */
  readonly hosts: readonly string[];
  /** True if these launchers are registered without the provider. */
  readonly isRunning: boolean;
  /** Unix seconds at which the last of them left; null: before the launcher of the page started. */
  readonly left: number | null;
}

export interface LauncherFacts extends Pick<ComponentData, 'hostname' | 'configuration'> {
  /** True for the launcher that serves the page. */
  readonly isOwn: boolean;
  readonly unserved: Readonly<Record<string, string>>;
}

export interface ProblemSources {
  readonly zookeeper: {
    readonly state: string;
    /** Unix seconds of the begin of the state. */
    readonly since: number;
    /** Reason why the last attempt to connect failed. */
    readonly lastProblem: string | undefined;
  };
  /** True while the launcher sees all records. */
  readonly complete: boolean;
  /** The first problems of a refused configuration, and their total number. */
  readonly configuration: {
    readonly problems: readonly string[];
    readonly count: number;
    readonly since: number | null;
  };
  /** The first of the records that cannot be read, and their total number. */
  readonly unreadable: { readonly records: readonly string[]; readonly count: number };
  readonly providers: readonly ProviderStatus[];
  /** The launchers that served a provider which none serves now, by provider. */
  readonly lastServed: ReadonlyMap<string, LastServed>;
  /** Recent results of launches by provider; a provider without failures is omitted. */
  readonly launches: ReadonlyMap<string, RecentLaunches>;
  /** Suspended deletions of resources without a record. */
  readonly suspensions: readonly Suspension[];
  readonly launchers: readonly LauncherFacts[];
  /** Trouble of providers that other launchers see. */
  readonly troubles: readonly (PoolTrouble & { readonly provider: string; readonly hostname: string })[];
  /** Nodes whose deletion has lasted for too long, with the last answer of the cloud. */
  readonly stuck: readonly { readonly entry: NodeEntry; readonly answer: string }[];
  /** Ready nodes that no pool hands out. */
  readonly stranded: readonly NodeEntry[];
  /** Backing nodes whose data is damaged. */
  readonly damagedBacking: readonly DamagedBackingNode[];
  readonly labels: readonly LabelStatus[];
  readonly reasons: readonly ReasonGroup[];
  /** Numbers of requests that are accepted and not fulfilled, by provider. */
  readonly accepted: ReadonlyMap<string, number>;
  /** Requests that failed in the last hour. */
  readonly failed: readonly FailedRequests[];
  readonly images: readonly ImageStatus[];
  /** The registered builders; other implementations do not name their images. */
  readonly builders: readonly Pick<ComponentData, 'images'>[];
  /** Current time in unix seconds. */
  readonly now: number;
}

export function waitingFor(reasons: readonly ReasonGroup[], isFor: (pool: string) => boolean): number {
  return reasons.reduce((sum, { pool, count }) => sum + (pool !== null && isFor(pool) ? count : 0), 0);
}

/** `hanging` is the number of requests that are accepted and cannot be fulfilled. */
export function effectOf(waiting: number, hanging = 0): string | null {
  const effects = [];
  if (waiting > 0) effects.push(waiting === 1 ? '1 request waits for it' : `${waiting} requests wait for it`);
  if (hanging > 0) effects.push(hanging === 1 ? '1 request hangs on it' : `${hanging} requests hang on it`);
  return effects.length === 0 ? null : effects.join(', ');
}

export function counted(count: number, noun: string, plural = `${noun}s`): string {
  return `${count} ${count === 1 ? noun : plural}`;
}

export function withRest(texts: readonly string[], count: number): string[] {
  return count > texts.length ? [...texts, `and ${count - texts.length} more`] : [...texts];
}

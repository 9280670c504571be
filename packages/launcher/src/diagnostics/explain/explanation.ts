/** Explanations of the state of a request, a node or a label, from this launcher's records and decisions. */

import type { Clock, JsonValue } from '@nodepool/core';
import type { Decision, DecisionLog, DecisionSubject } from '../decisions.js';
import { describeOutage, type PoolComponentData, type Store } from '@nodepool/store';
import type { ProviderActivity, QueuePosition } from '../activity.js';
import type { Life, Phase } from '../timeline/life.js';
import type { Timelines } from '../timeline/timelines.js';

/** The JSON object that `/explain/...` answers with. */
export interface Explanation {
  readonly kind: DecisionSubject;
  readonly id: string;
  /** One or more sentences. */
  readonly summary: string;
  /** Fields of the record; times are in unix seconds. */
  readonly facts: Readonly<Record<string, JsonValue>>;
  /** The states of all registered pools with regard to the subject. */
  readonly pools: readonly PoolExplanation[];
  /** The phases of its life without gaps, as recorded by this launcher; empty for a label. */
  readonly timeline: readonly PhaseExplanation[];
  /** Decisions of this launcher, oldest first; other launchers record their own. */
  readonly decisions: readonly DecisionExplanation[];
}

export interface PoolExplanation {
  /** The pool's name as `provider/pool`. */
  readonly pool: string;
  /** Host of the launcher that serves the pool. */
  readonly launcher: string;
  readonly says: string;
}

export interface PhaseExplanation {
  readonly phase: Phase;
  /** Unix seconds. */
  readonly from: number;
  readonly seconds: number;
  /** True while the phase lasts. */
  readonly lasts: boolean;
  /** The pool as `provider/pool`; null if unknown. */
  readonly by: string | null;
  readonly detail: string | null;
  /** True if a launch attempt failed at the end of the phase. */
  readonly failed: boolean;
}

export interface DecisionExplanation {
  readonly by: string;
  readonly decision: string;
  readonly reason: string | null;
  /** Times of the first and the last decision, in unix seconds. */
  readonly first: number;
  readonly last: number;
  readonly times: number;
}

/** The data that explanations are made from. */
export interface ExplanationSources {
  readonly store: Store;
  readonly clock: Clock;
  readonly decisions: DecisionLog;
  readonly activity: () => readonly ProviderActivity[];
  readonly timelines: Pick<Timelines, 'request' | 'node'>;
  /** Returns the place of a waiting request among the requests with the same needs. */
  readonly queuePosition: (requestId: string) => QueuePosition | undefined;
}

export function explainDecisions(decisions: readonly Decision[]): DecisionExplanation[] {
  return decisions.map(({ by, what, reason, first, last, times }) => ({
    by,
    decision: what,
    reason: reason ?? null,
    first: first / 1000,
    last: last / 1000,
    times,
  }));
}

/** Returns the phases of a life at a time in milliseconds since the epoch. */
export function explainLife(life: Life | undefined, now: number): PhaseExplanation[] {
  return (life?.closed() ?? []).map(({ phase, from, to, by, detail, failed }) => ({
    phase,
    from: from / 1000,
    seconds: Math.max(0, (to ?? now) - from) / 1000,
    lasts: to === undefined,
    by: by ?? null,
    detail: detail ?? null,
    failed,
  }));
}

/** Returns the newest decision as text, for the end of a summary. */
export function latestDecision(decisions: readonly Decision[]): string | undefined {
  const latest = decisions.reduce<Decision | undefined>(
    (newest, decision) => (newest === undefined || decision.last >= newest.last ? decision : newest),
    undefined,
  );
  if (latest === undefined) return undefined;
  return `${latest.by}: ${latest.what}${latest.reason === undefined ? '' : ` (${latest.reason})`}`;
}

/** Machines out of service that an explanation names. */
const MAX_OUTAGES = 5;

/** Returns the machines of the pool with one of the labels that are out of service, as the end of a sentence. */
export function describeOutages({ out_of_service: all = [] }: PoolComponentData, labels: readonly string[]): string {
  const outages = all.filter((outage) => outage.labels.some((label) => labels.includes(label)));
  const named = outages.slice(0, MAX_OUTAGES).map((outage) => `; ${describeOutage(outage)}`);
  const more = outages.length - named.length;
  return `${named.join('')}${more > 0 ? `; ${more} more machines are out of service` : ''}`;
}

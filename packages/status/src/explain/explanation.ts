/** The sources of explanations, and the parts that those of requests, nodes and labels have in common. */

import type { ReadyTarget } from '@nodepool/config';
import type { Clock } from '@nodepool/core';
import type { Decision, DecisionLog } from '../facts/decisions.js';
import { describeOutage, type PoolComponentData, type Store } from '@nodepool/store';
import { type DecisionExplanation, type PhaseExplanation } from './explanation-text.js';
import type { ProviderActivity, QueuePosition } from '../facts/activity.js';
import type { Life } from '../timeline/life.js';
import type { Timelines } from '../timeline/timelines.js';

export interface ExplanationSources {
  readonly store: Store;
  readonly clock: Clock;
  readonly decisions: DecisionLog;
  readonly activity: () => readonly ProviderActivity[];
  readonly timelines: Pick<Timelines, 'request' | 'node'>;
  /** Returns the place of a waiting request among the requests with the same needs. */
  readonly queuePosition: (requestId: string) => QueuePosition | undefined;
  /** Returns the number of ready nodes that a label should have; undefined if it is not configured. */
  readonly readyTarget: (label: string) => ReadyTarget | undefined;
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

/** Returns a text as a sentence; texts of drivers may end with a mark of their own. */
export function sentence(text: string): string {
  return /[.?!]$/.test(text) ? text : `${text}.`;
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

/** Returns the trouble of a whole provider; the descriptions of offers name that of single labels. */
export function failureOf({ reason, trouble }: Pick<ProviderActivity, 'reason' | 'trouble'>): string | undefined {
  return trouble?.labels === undefined ? reason : undefined;
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

/** Why a request, a node or a label is where it is: what this launcher knows, and what it has decided. */

import type { Clock, JsonValue } from '@nodepool/core';
import type { Decision, DecisionLog, DecisionSubject } from './decisions.js';
import type { Store } from '@nodepool/store';
import type { ProviderActivity } from './activity.js';

/** As `/explain/...` gives it as JSON. */
export interface Explanation {
  readonly kind: DecisionSubject;
  readonly id: string;
  /** In a sentence. */
  readonly summary: string;
  /** What the record says; times in unix seconds. */
  readonly facts: Readonly<Record<string, JsonValue>>;
  /** What each registered pool could do about it. */
  readonly pools: readonly PoolExplanation[];
  /** What this launcher decided about it, oldest first. Others have decisions of their own. */
  readonly decisions: readonly DecisionExplanation[];
}

export interface PoolExplanation {
  /** `provider/pool`. */
  readonly pool: string;
  /** Host of the launcher that serves it. */
  readonly launcher: string;
  readonly says: string;
}

export interface DecisionExplanation {
  readonly by: string;
  readonly decision: string;
  readonly reason: string | null;
  /** Unix seconds. */
  readonly first: number;
  readonly last: number;
  readonly times: number;
}

/** What explanations are made from. */
export interface ExplanationSources {
  readonly store: Store;
  readonly clock: Clock;
  readonly decisions: DecisionLog;
  readonly activity: () => readonly ProviderActivity[];
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

/** The newest decision in words, to end a summary with. */
export function latestDecision(decisions: readonly Decision[]): string | undefined {
  const latest = decisions.reduce<Decision | undefined>(
    (newest, decision) => (newest === undefined || decision.last >= newest.last ? decision : newest),
    undefined,
  );
  if (latest === undefined) return undefined;
  return `${latest.by}: ${latest.what}${latest.reason === undefined ? '' : ` (${latest.reason})`}`;
}

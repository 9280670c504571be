/** Results that the stages of a request's path report to the pool, and decisions that explanations show. */

import type { Refusal, Wait } from '@nodepool/status';
import type { AttemptOutcome } from '../launch/launch-job.js';
import type { Pool } from '../pool/pool.js';

export type RequestOutcome =
  /** The confirmation of the accepted records has succeeded or failed. */
  | { readonly kind: 'recorded' }
  | AttemptOutcome
  /** The request is given up without being declined: another pool goes first. */
  | { readonly kind: 'given-up' }
  /** The pool holds nothing of the request any more, which is not looked at again before `retryAfterMs`. */
  | { readonly kind: 'ended'; readonly retryAfterMs: number };

export type ReportOutcome = (requestId: string, outcome: RequestOutcome) => void;

/** Records a decision about a request, for explanations. */
export function recordDecision(pool: Pool, requestId: string, decision: string, reason?: string): void {
  pool.context.decisions.record('request', requestId, pool.name, decision, reason);
}

/** Records the decision that a request waits, for explanations and its timeline. */
export function recordWait(pool: Pool, requestId: string, decision: string, wait: Wait): void {
  recordDecision(pool, requestId, decision, wait.reason);
  pool.context.timelines.waits(requestId, pool.name, wait);
}

/** Records the decision that the pool does not serve a request, for explanations and its timeline. */
export function recordLeave(pool: Pool, requestId: string, decision: string, refusal: Refusal): void {
  recordDecision(pool, requestId, decision, refusal.reason);
  pool.context.timelines.leaves(requestId, pool.name, refusal);
}

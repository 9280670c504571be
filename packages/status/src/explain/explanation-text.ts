/** Explanations of the state of a request, a node or a label, which launchers answer with, and their text. */

import type { JsonValue } from '@nodepool/core';
import { formatAge } from '@nodepool/store';

/** The JSON object that `/explain/...` of a launcher answers with. */
export interface Explanation {
  readonly kind: 'request' | 'node' | 'label';
  readonly id: string;
  /** One or more sentences. */
  readonly summary: string;
  /** Fields of the record; times are in unix seconds. */
  readonly facts: Readonly<Record<string, JsonValue>>;
  /** The states of all registered pools with regard to the subject. */
  readonly pools: readonly PoolExplanation[];
  /** The phases of its life without gaps, as recorded by the launcher; empty for a label. */
  readonly timeline: readonly PhaseExplanation[];
  /** Decisions of the launcher, oldest first; other launchers record their own. */
  readonly decisions: readonly DecisionExplanation[];
}

export interface PoolExplanation {
  /** The pool's name as `provider/pool`. */
  readonly pool: string;
  /** Host of the launcher that serves the pool. */
  readonly launcher: string;
  /** True if the launcher that explains serves the pool; it knows less about the pools of other launchers. */
  readonly own: boolean;
  readonly says: string;
}

export interface PhaseExplanation {
  readonly phase: string;
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

const CONTROLS = /\p{Cc}/gu;

/** Returns the explanation as text. `now` is in milliseconds since the epoch; ages have the form `DD:HH:MM:SS`. */
export function explanationText(explanation: Explanation, now: number): string {
  const { kind, id, summary, facts, pools, timeline, decisions } = explanation;
  const lines = [`${kind} ${id}`, `  ${summary}`];
  const known = Object.entries(facts).filter(([, value]) => value !== null && value !== '');
  if (known.length > 0) lines.push('', 'record:');
  for (const [name, value] of known)
    lines.push(`  ${name}: ${typeof value === 'string' ? value : JSON.stringify(value)}`);
  if (pools.length > 0) lines.push('', 'pools:');
  for (const { pool, launcher, says } of pools) lines.push(`  ${pool} (${launcher}): ${says}`);
  if (timeline.length > 0) lines.push('', `phases, ${total(timeline)} s in all:`);
  for (const phase of timeline) lines.push(`  ${phaseText(phase)}`);
  lines.push('', decisions.length === 0 ? 'decisions: none recorded' : 'decisions, with their age:');
  for (const decision of decisions) lines.push(`  ${decisionText(decision, now)}`);
  // Records may have arbitrary text, so control characters are replaced.
  return `${lines.map((line) => line.replace(CONTROLS, ' ')).join('\n')}\n`;
}

function decisionText({ by, decision, reason, last, times }: DecisionExplanation, now: number): string {
  const why = reason === null ? '' : `: ${reason}`;
  const often = times === 1 ? '' : ` (${times} times)`;
  return `${formatAge(now / 1000 - last)} ${by} ${decision}${why}${often}`;
}

function total(timeline: readonly PhaseExplanation[]): string {
  return timeline.reduce((sum, { seconds }) => sum + seconds, 0).toFixed(3);
}

function phaseText({ phase, seconds, lasts, by, detail, failed }: PhaseExplanation): string {
  const where = by === null ? '' : ` in ${by}`;
  const why = detail === null ? '' : `: ${detail}`;
  return `${phase}${where} ${lasts ? 'for' : 'took'} ${seconds.toFixed(3)} s${failed ? ', then failed' : ''}${why}`;
}

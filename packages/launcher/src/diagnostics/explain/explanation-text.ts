/** Formats an explanation as text. */

import { formatAge } from '@nodepool/store';
import type { DecisionExplanation, Explanation, PhaseExplanation } from './explanation.js';

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
  lines.push(
    '',
    decisions.length === 0
      ? 'decisions of this launcher: none recorded'
      : 'decisions of this launcher, with their age:',
  );
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

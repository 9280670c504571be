/** Reads the explanations of launchers, and merges those of several launchers. */

import { isJsonObject, type JsonObject, type JsonValue } from '@nodepool/core';
import {
  explanationText,
  type DecisionExplanation,
  type Explanation,
  type PhaseExplanation,
  type PoolExplanation,
} from '@nodepool/store';

/** An explanation with the web endpoint of its launcher. */
export interface LauncherExplanation {
  readonly launcher: string;
  readonly explanation: Explanation;
}

/** Reads the answer of a launcher, which may have another version. Absent members are empty. */
export function readExplanation(kind: Explanation['kind'], id: string, answer: JsonObject): Explanation {
  const { summary, facts } = answer;
  return {
    kind,
    id,
    summary: text(summary),
    facts: isJsonObject(facts) ? facts : {},
    pools: objects(answer['pools']).map(readPool),
    timeline: objects(answer['timeline']).map(readPhase),
    decisions: objects(answer['decisions']).map(readDecision),
  };
}

function readPool({ pool, launcher, own, says }: JsonObject): PoolExplanation {
  return { pool: text(pool), launcher: text(launcher), own: own === true, says: text(says) };
}

function readPhase({ phase, from, seconds, lasts, by, detail, failed }: JsonObject): PhaseExplanation {
  return {
    ...{ phase: text(phase), from: number(from), seconds: number(seconds), lasts: lasts === true },
    ...{ by: textOrNull(by), detail: textOrNull(detail), failed: failed === true },
  };
}

function readDecision({ by, decision, reason, first, last, times }: JsonObject): DecisionExplanation {
  return {
    ...{ by: text(by), decision: text(decision), reason: textOrNull(reason) },
    ...{ first: number(first), last: number(last), times: number(times) },
  };
}

/** Returns the explanations of all launchers as one text. `now` is in milliseconds since the epoch. */
export function mergedText(
  explanations: readonly [LauncherExplanation, ...LauncherExplanation[]],
  now: number,
): string {
  const [first, ...rest] = explanations;
  const best = rest.reduce((found, next) => (knowledge(next) > knowledge(found) ? next : found), first);
  const all = explanations.map(({ explanation }) => explanation);
  const merged: Explanation = {
    ...best.explanation,
    pools: mergedPools(all.flatMap(({ pools }) => pools)),
    decisions: mergedDecisions(all.flatMap(({ decisions }) => decisions)),
  };
  return explanationText(merged, now, otherSummaries(best, explanations));
}

/** Returns the number of decisions and phases that the launcher has recorded itself. */
function knowledge({ explanation: { decisions, timeline } }: LauncherExplanation): number {
  return decisions.length + timeline.filter(({ phase }) => phase !== 'elsewhere').length;
}

/** Returns each statement once; about a pool, only those of the launchers that serve it if there are any. */
function mergedPools(pools: readonly PoolExplanation[]): readonly PoolExplanation[] {
  const nameOf = ({ pool, launcher }: PoolExplanation): string => JSON.stringify([pool, launcher]);
  const described = new Set(pools.filter(({ own }) => own).map(nameOf));
  const merged = new Map<string, PoolExplanation>();
  for (const pool of pools) {
    if (pool.own || !described.has(nameOf(pool))) merged.set(`${nameOf(pool)} ${pool.says}`, pool);
  }
  return [...merged.values()];
}

/** Returns each decision once, oldest first: the pools of several launchers can have the same name. */
function mergedDecisions(decisions: readonly DecisionExplanation[]): readonly DecisionExplanation[] {
  const merged = new Map<string, DecisionExplanation>();
  for (const decision of decisions) {
    const key = JSON.stringify([decision.by, decision.decision, decision.reason]);
    const { first, last, times } = merged.get(key) ?? { first: Infinity, last: 0, times: 0 };
    merged.set(key, {
      ...decision,
      first: Math.min(first, decision.first),
      last: Math.max(last, decision.last),
      times: times + decision.times,
    });
  }
  return [...merged.values()].sort((a, b) => a.last - b.last);
}

/** Returns what the launchers that have decided about the subject say besides the summary of `best`. */
function otherSummaries(best: LauncherExplanation, all: readonly LauncherExplanation[]): readonly string[] {
  const others = all.filter(
    ({ explanation: { summary, decisions } }) => decisions.length > 0 && !best.explanation.summary.startsWith(summary),
  );
  return others.map(({ launcher, explanation }) => `The launcher at ${launcher}: ${explanation.summary}`);
}

function text(value: JsonValue | undefined): string {
  return typeof value === 'string' ? value : '';
}

function textOrNull(value: JsonValue | undefined): string | null {
  return typeof value === 'string' ? value : null;
}

function number(value: JsonValue | undefined): number {
  return typeof value === 'number' ? value : 0;
}

function objects(value: JsonValue | undefined): readonly JsonObject[] {
  return Array.isArray(value) ? value.filter(isJsonObject) : [];
}

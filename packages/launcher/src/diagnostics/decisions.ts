/**
 * What was decided about a request, a node or a label, by whom, when and why: so that somebody who asks why it is where
 * it is gets an answer. Bounded in memory: the newest decisions of the subjects that were last decided about are kept.
 */

import type { Clock } from '@nodepool/core';

export type DecisionSubject = 'request' | 'node' | 'label';

export interface Decision {
  /** Who decided, e.g. a pool as `provider/pool`. */
  readonly by: string;
  /** What, in words that are constant, e.g. `declined`. */
  readonly what: string;
  readonly reason: string | undefined;
  /** Milliseconds since the epoch: when it was decided so first, and last. */
  readonly first: number;
  readonly last: number;
  /** How often in a row the same was decided. */
  readonly times: number;
}

export interface DecisionLogOptions {
  readonly clock: Clock;
  /** Decisions kept of one subject, the newest. Default 20. */
  readonly perSubject?: number;
  /** Decisions kept in all. Default 20,000. */
  readonly total?: number;
}

/** Where decisions are reported. */
export interface DecisionRecorder {
  record(kind: DecisionSubject, id: string, by: string, what: string, reason?: string): void;
}

/** For programs and tests that explain nothing. */
export const silentDecisions: DecisionRecorder = { record: () => undefined };

type MutableDecision = { -readonly [K in keyof Decision]: Decision[K] };

export class DecisionLog implements DecisionRecorder {
  private readonly clock: Clock;
  private readonly perSubject: number;
  private readonly total: number;
  private readonly subjects: Readonly<Record<DecisionSubject, Map<string, MutableDecision[]>>> = {
    request: new Map(),
    node: new Map(),
    label: new Map(),
  };
  private kept = 0;

  constructor({ clock, perSubject = 20, total = 20_000 }: DecisionLogOptions) {
    this.clock = clock;
    this.perSubject = perSubject;
    this.total = total;
  }

  /** Decisions that are kept. */
  get size(): number {
    return this.kept;
  }

  record(kind: DecisionSubject, id: string, by: string, what: string, reason?: string): void {
    const subjects = this.subjects[kind];
    const decisions = subjects.get(id);
    const now = this.clock.now();
    if (decisions !== undefined) {
      const repeated = latestBy(decisions, by);
      if (repeated?.what === what && repeated.reason === reason) {
        repeated.last = now;
        repeated.times += 1;
        return;
      }
      // Subjects are dropped in the order of their last news.
      subjects.delete(id);
    }
    const kept = decisions ?? [];
    subjects.set(id, kept);
    kept.push({ by, what, reason, first: now, last: now, times: 1 });
    this.kept += 1;
    if (kept.length > this.perSubject) {
      kept.shift();
      this.kept -= 1;
    }
    if (this.kept > this.total) this.dropOldest(kind);
  }

  /** In the order in which they were first made. */
  of(kind: DecisionSubject, id: string): readonly Decision[] {
    return this.subjects[kind].get(id) ?? [];
  }

  /** Room is made among subjects of the same kind first: many requests shall not push out the labels. */
  private dropOldest(kind: DecisionSubject): void {
    for (const subjects of [this.subjects[kind], ...Object.values(this.subjects)]) {
      for (const [id, decisions] of subjects) {
        if (this.kept <= this.total) return;
        subjects.delete(id);
        this.kept -= decisions.length;
      }
    }
  }
}

function latestBy(decisions: readonly MutableDecision[], by: string): MutableDecision | undefined {
  for (let index = decisions.length - 1; index >= 0; index -= 1) {
    const decision = decisions[index];
    if (decision?.by === by) return decision;
  }
  return undefined;
}

/**
 * A log of decisions about requests, nodes and labels, with time and reason, for explanations of their state. Its size
 * is limited: it keeps the newest decisions of the most recently changed subjects.
 */

import type { Clock } from '@nodepool/core';

export type DecisionSubject = 'request' | 'node' | 'label';

export interface Decision {
  /** The deciding part of the launcher, e.g. a pool as `provider/pool`. */
  readonly by: string;
  /** The decision, as a constant phrase such as `declined`. */
  readonly what: string;
  readonly reason: string | undefined;
  /** Times of the first and the last decision, in milliseconds since the epoch. */
  readonly first: number;
  readonly last: number;
  /** Number of consecutive repetitions, the first decision included. */
  readonly times: number;
}

export interface DecisionLogOptions {
  readonly clock: Clock;
  /** Number of newest decisions kept per subject. Default 20. */
  readonly perSubject?: number;
  /** Number of decisions kept in total. Default 20,000. */
  readonly total?: number;
}

/** A sink for decisions. */
export interface DecisionRecorder {
  record(kind: DecisionSubject, id: string, by: string, what: string, reason?: string): void;
}

/** A recorder that discards all decisions, for programs and tests without explanations. */
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

  /** Number of decisions that are kept. */
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
      // Reinsertion orders subjects by their latest decision; the oldest are dropped first.
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

  /** Returns the decisions about a subject in the order in which they were first made. */
  of(kind: DecisionSubject, id: string): readonly Decision[] {
    return this.subjects[kind].get(id) ?? [];
  }

  /**
   * Drops the oldest subjects, first those of the same kind: decisions about many requests must not displace those
   * about labels.
   */
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

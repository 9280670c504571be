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
  /** Number of decisions kept about requests, about nodes and about labels, each. Default 10,000. */
  readonly perKind?: number;
}

export interface DecisionRecorder {
  record(kind: DecisionSubject, id: string, by: string, what: string, reason?: string): void;
}

/** A recorder that discards all decisions, for programs and tests without explanations. */
export const silentDecisions: DecisionRecorder = { record: () => undefined };

type MutableDecision = { -readonly [K in keyof Decision]: Decision[K] };

interface Kind {
  readonly subjects: Map<string, MutableDecision[]>;
  kept: number;
}

export class DecisionLog implements DecisionRecorder {
  private readonly clock: Clock;
  private readonly perSubject: number;
  private readonly perKind: number;
  private readonly kinds: Readonly<Record<DecisionSubject, Kind>> = {
    request: { subjects: new Map(), kept: 0 },
    node: { subjects: new Map(), kept: 0 },
    label: { subjects: new Map(), kept: 0 },
  };

  constructor({ clock, perSubject = 20, perKind = 10_000 }: DecisionLogOptions) {
    this.clock = clock;
    this.perSubject = perSubject;
    this.perKind = perKind;
  }

  get size(): number {
    return Object.values(this.kinds).reduce((sum, { kept }) => sum + kept, 0);
  }

  record(subject: DecisionSubject, id: string, by: string, what: string, reason?: string): void {
    const kind = this.kinds[subject];
    const { subjects } = kind;
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
    kind.kept += 1;
    if (kept.length > this.perSubject) {
      kept.shift();
      kind.kept -= 1;
    }
    if (kind.kept > this.perKind) this.dropOldest(kind);
  }

  /** Returns the decisions about a subject in the order in which they were first made. */
  of(kind: DecisionSubject, id: string): readonly Decision[] {
    return this.kinds[kind].subjects.get(id) ?? [];
  }

  /** Drops the oldest subjects of a kind: decisions about many requests must not displace those about labels. */
  private dropOldest(kind: Kind): void {
    for (const [id, decisions] of kind.subjects) {
      if (kind.kept <= this.perKind) return;
      kind.subjects.delete(id);
      kind.kept -= decisions.length;
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

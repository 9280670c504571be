/**
 * The life of a request or a node as consecutive phases without gaps, whose durations add up to the whole life. Times
 * are milliseconds since the epoch.
 */

import type { Resources } from '@nodepool/core';
import type { RefusalCause, RequestResult } from '../facts/timeline-recorder.js';

/** Phases of requests in the order of their lives; docs/monitoring.md describes them. */
const REQUEST_PHASES = [
  'limit',
  'order',
  'capacity',
  'image',
  'accepted',
  'creating',
  'booting',
  'login',
  'handover',
  'elsewhere',
] as const;

/** Phases of nodes after those of the launch. */
export const NODE_PHASES = [...REQUEST_PHASES, 'ready', 'in-use', 'held', 'deleting'] as const;

export type NodePhase = (typeof NODE_PHASES)[number];

/** A phase from `from` until the next one begins, or until the end of the life. */
export interface Segment {
  readonly phase: NodePhase;
  readonly from: number;
  /** The pool as `provider/pool`, or another program; undefined if unknown. */
  readonly by: string | undefined;
  detail: string | undefined;
  /** True if a launch attempt failed at the end of this phase. */
  failed: boolean;
}

/** A segment with its end. */
export type ClosedSegment = Segment & {
  /** Undefined while the phase lasts. */
  readonly to: number | undefined;
};

/** Limit of the segments of one life; the oldest ones are merged. */
const MAX_SEGMENTS = 60;

export class Life {
  /** Oldest first. Replaced by each addition: a list that has grown keeps room for 16 more, in thousands of lives. */
  segments: readonly Segment[] = [];
  /** Undefined while the life lasts. */
  end: number | undefined;
  /** Number of the segments that `takeClosed` has passed. */
  private reported = 0;

  constructor(readonly created: number) {}

  get phase(): NodePhase | undefined {
    return this.last?.phase;
  }

  /**
   * Enters a phase at `now`. The first phase starts at the creation. A new detail of the current phase replaces its
   * former detail; after a failure a new phase starts in any case.
   */
  enter(now: number, phase: NodePhase, by: string | undefined, detail?: string): void {
    if (this.end !== undefined) return;
    const last = this.segments[this.segments.length - 1];
    if (last !== undefined && last.phase === phase && last.by === by && !last.failed) {
      if (detail !== undefined) last.detail = detail;
      return;
    }
    // Prevents phases of negative length after the clock was set back.
    const from = last === undefined ? this.created : Math.max(last.from, now);
    this.append({ phase, from, by, detail, failed: false });
    if (this.segments.length > MAX_SEGMENTS) this.mergeOldest();
  }

  /** Adds a recorded phase as the last one. */
  append(segment: Segment): void {
    this.segments = this.segments.concat(segment);
  }

  /** Marks the current phase as the end of a failed launch attempt. */
  fail(detail: string): void {
    const { last } = this;
    if (last === undefined || this.end !== undefined) return;
    last.failed = true;
    last.detail = detail;
  }

  close(now: number): void {
    this.end ??= Math.max(now, this.last?.from ?? this.created);
  }

  /** Returns the phases with their ends, oldest first. */
  closed(): ClosedSegment[] {
    return this.segments.map((segment, index) => ({ ...segment, to: this.segments[index + 1]?.from ?? this.end }));
  }

  /** Lets `takeClosed` pass over the segments that have ended, which concern an earlier process or another launcher. */
  skipClosed(): void {
    while (this.takeClosed() !== undefined);
  }

  /** True if `takeClosed` returns a segment. */
  get hasClosed(): boolean {
    const { segments, reported } = this;
    return segments.length > reported + 1 || (this.end !== undefined && segments.length > reported);
  }

  /** Returns the next segment that has ended, with its duration in milliseconds; each segment once. */
  takeClosed(): { readonly phase: NodePhase; readonly ms: number } | undefined {
    const { segments, reported } = this;
    const segment = segments[reported];
    const to = segments[reported + 1]?.from ?? this.end;
    if (segment === undefined || to === undefined) return undefined;
    this.reported = reported + 1;
    return { phase: segment.phase, ms: to - segment.from };
  }

  /** Returns the milliseconds spent in each phase until the end of the life, or until `now` if it lasts. */
  durations(now: number): Map<NodePhase, number> {
    const sums = new Map<NodePhase, number>();
    this.segments.forEach(({ phase, from }, index) => {
      const to = this.segments[index + 1]?.from ?? this.end ?? Math.max(now, from);
      sums.set(phase, (sums.get(phase) ?? 0) + to - from);
    });
    return sums;
  }

  private get last(): Segment | undefined {
    return this.segments[this.segments.length - 1];
  }

  private mergeOldest(): void {
    const [first, second, third, ...others] = this.segments;
    if (first === undefined || second === undefined || third === undefined) return;
    const longer = second.from - first.from >= third.from - second.from ? first : second;
    const merged = { ...longer, from: first.from, detail: 'several phases, merged' };
    this.segments = [merged, third, ...others];
    this.reported = Math.max(0, this.reported - 1);
  }
}

export interface Attempt {
  readonly node: string;
  /** 1 for the first attempt. */
  readonly number: number;
  /** The pool as `provider/pool`. */
  readonly pool: string;
  readonly label: string;
  /** The offer in words: label, machine type, zone. */
  readonly offer: string;
  readonly ended: number;
  /** Undefined if the node is ready. */
  readonly error: LaunchFailure | undefined;
}

/** Shared by the lives that have none. */
export const NO_ATTEMPTS: readonly Attempt[] = [];

export interface LaunchFailure {
  readonly code: string;
  readonly message: string;
  /** The faulty part, see `FaultScope`; undefined for a failure that an older version recorded. */
  readonly scope: string | undefined;
}

/** Facts of a request that are kept after its record is deleted. */
export interface RequestFacts {
  readonly id: string;
  readonly labels: readonly string[];
  readonly requestor: string | null;
  readonly tenant: string | null;
  readonly priority: number;
}

/** The end of a request. */
export interface RequestEnd {
  /** `unseen`: the request was deleted, and this launcher cannot know how it had ended before. */
  readonly result: RequestResult | 'unseen';
  /** Kind of the reason why it failed; undefined if it did not fail, or if the kind is not known. */
  readonly cause: RefusalCause | undefined;
  /** The reason why it failed. */
  readonly reason: string | undefined;
  readonly nodes: readonly string[];
}

export interface NodeFacts {
  readonly id: string;
  readonly labels: readonly string[];
  readonly provider: string | null;
  readonly pool: string | null;
  /** The request that the node was launched for, or that used it last. */
  readonly request: string | null;
  /** The resources that the node uses; null if they are not known. */
  readonly resources: Resources | null;
}

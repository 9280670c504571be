/** Conversions that several documents need. */

import type { ClosedSegment } from '../timeline/life.js';
import type { Distribution } from '../history/distribution.js';
import type { Decision } from '../facts/decisions.js';
import type { WaitReason } from '../explain/wait-reason.js';
import type { DecisionStatus, Quantiles, TimelineSegment, WaitStatus } from '../client/model.js';
import { shortened } from './sources.js';

export const SHORT = 80;

export function textOrNull(text: string | null | undefined, length?: number): string | null {
  return text === null || text === undefined ? null : shortened(text, length);
}

export function secondsOrNull(ms: number | null): number | null {
  return ms === null ? null : Math.round(ms) / 1000;
}

export function quantiles(distribution: Distribution): Quantiles {
  return {
    count: distribution.count,
    p50: secondsOrNull(distribution.quantile(0.5)),
    p95: secondsOrNull(distribution.quantile(0.95)),
  };
}

export function timeline(segments: readonly ClosedSegment[]): TimelineSegment[] {
  return segments.map(({ phase, from, to, detail, failed, by }) => ({
    phase,
    from: from / 1000,
    to: to === undefined ? null : to / 1000,
    detail: textOrNull(detail),
    failed,
    by: textOrNull(by, SHORT),
  }));
}

export function decisions(list: readonly Decision[]): DecisionStatus[] {
  return list.map(({ by, what, reason, first, last, times }) => ({
    by: shortened(by),
    decision: shortened(what),
    reason: textOrNull(reason),
    first: first / 1000,
    last: last / 1000,
    times,
  }));
}

export function waitStatus({
  phase,
  text,
  pool,
  launcher,
  since,
  missing,
  heldBy,
  heldByMore,
}: WaitReason): WaitStatus {
  return {
    phase,
    text: shortened(text),
    pool,
    launcher: textOrNull(launcher, SHORT),
    since: since / 1000,
    missing,
    heldBy,
    heldByMore,
  };
}

/** Returns the labels with their numbers, in the order of the request. */
export function countedLabels(labels: readonly string[]): { readonly label: string; readonly count: number }[] {
  const counts = new Map<string, number>();
  for (const label of labels) counts.set(label, (counts.get(label) ?? 0) + 1);
  return [...counts].slice(0, 20).map(([label, count]) => ({ label: shortened(label, SHORT), count }));
}

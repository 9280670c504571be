/** Combines the measures of several replays of one configuration. */

import type { Day } from '../day/day.js';
import type { NodeMeasures, RequestMeasures, RunMeasures } from './measures.js';

/** A value in several runs: the median, and the range. */
export interface Spread {
  readonly median: number;
  readonly least: number;
  readonly most: number;
}

/** Quantiles of waits, seconds. A request that failed or was not answered waits for ever. */
export interface WaitSummary {
  readonly p50: Spread | null;
  readonly p95: Spread | null;
}

export interface NodeSummary {
  readonly mostNodes: Spread;
  readonly limit: number | null;
  /** Part of the time at the limit, 0 to 1. */
  readonly atLimit: Spread;
  readonly idleHours: Spread;
  readonly usedHours: Spread;
  readonly nodeHours: Spread;
}

export interface LabelSummary extends NodeSummary {
  readonly requests: number;
  readonly wait: WaitSummary;
  readonly failed: Spread;
  readonly unanswered: Spread;
}

export interface ProviderSummary extends NodeSummary {
  readonly wait: WaitSummary;
  readonly launches: Spread;
  readonly failedLaunches: Spread;
}

type ByName<T> = Readonly<Record<string, T>>;

export interface Summary {
  readonly labels: ByName<LabelSummary>;
  readonly providers: ByName<ProviderSummary>;
  /** By `provider/pool`. */
  readonly pools: ByName<NodeSummary>;
  readonly tenants: ByName<NodeSummary>;
  /** Failed requests by reason, on average over the runs. */
  readonly failures: ByName<number>;
}

/** The recorded ends of the requests of a label; quantiles in seconds. */
export interface RecordedLabel {
  readonly requests: number;
  readonly p50: number | null;
  readonly p95: number | null;
  readonly failed: number;
}

export function summarize(runs: readonly RunMeasures[]): Summary {
  return {
    labels: byName(runs, 'labels', (label) => ({
      requests: label[0]?.requests ?? 0,
      wait: waits(label.map((each) => sortedWaits(each))),
      failed: spread(label, ({ failed }) => failed),
      unanswered: spread(label, ({ unanswered }) => unanswered),
      ...nodes(label),
    })),
    providers: byName(runs, 'providers', (provider) => ({
      wait: waits(provider.map(({ waitsMs }) => waitsMs)),
      launches: spread(provider, ({ started }) => started),
      failedLaunches: spread(provider, ({ failed }) => failed),
      ...nodes(provider),
    })),
    pools: byName(runs, 'pools', nodes),
    tenants: byName(runs, 'tenants', nodes),
    failures: failuresOf(runs),
  };
}

/** Returns the recorded waits by label; labels without a recorded result are absent. */
export function recordedLabels({ requests }: Day): ByName<RecordedLabel> {
  const byLabel = new Map<string, { waitsMs: number[]; failed: number }>();
  for (const { labels, recorded, isInitial } of requests) {
    if (recorded === undefined || isInitial) continue;
    for (const label of new Set(labels)) {
      const known = byLabel.get(label) ?? { waitsMs: [], failed: 0 };
      byLabel.set(label, known);
      if (recorded.result === 'fulfilled') known.waitsMs.push(recorded.waitedMs);
      else if (recorded.result === 'failed') known.failed += 1;
    }
  }
  const entries = [...byLabel].sort().map(([label, { waitsMs, failed }]) => {
    const all = [...waitsMs.sort((a, b) => a - b), ...Array.from({ length: failed }, () => Infinity)];
    const recorded = { requests: all.length, p50: secondsAt(all, 0.5), p95: secondsAt(all, 0.95), failed };
    return [label, recorded] as const;
  });
  return Object.fromEntries(entries);
}

/** Returns the waits of a label, ascending; infinite ones for requests that got no nodes. */
export function sortedWaits({ waitsMs, failed, unanswered }: RequestMeasures): readonly number[] {
  return failed + unanswered === 0
    ? waitsMs
    : [...waitsMs, ...Array.from({ length: failed + unanswered }, () => Infinity)];
}

/** Returns a quantile of ascending values; undefined if there are none. */
export function quantile(sorted: readonly number[], part: number): number | undefined {
  return sorted[Math.max(0, Math.ceil(part * sorted.length) - 1)];
}

function waits(runs: readonly (readonly number[])[]): WaitSummary {
  const at = (part: number): Spread | null => spreadOf(runs.flatMap((sorted) => secondsAt(sorted, part) ?? []));
  return { p50: at(0.5), p95: at(0.95) };
}

function secondsAt(sorted: readonly number[], part: number): number | null {
  const ms = quantile(sorted, part);
  return ms === undefined ? null : ms / 1000;
}

function nodes(runs: readonly NodeMeasures[]): NodeSummary {
  return {
    mostNodes: spread(runs, ({ mostNodes }) => mostNodes),
    limit: runs[0]?.limit ?? null,
    atLimit: spread(runs, ({ atLimit }) => atLimit),
    idleHours: spread(runs, ({ idleHours }) => idleHours),
    usedHours: spread(runs, ({ usedHours }) => usedHours),
    nodeHours: spread(runs, ({ nodeHours }) => nodeHours),
  };
}

function failuresOf(runs: readonly RunMeasures[]): ByName<number> {
  const sums = new Map<string, number>();
  for (const { failures } of runs) {
    for (const [reason, count] of Object.entries(failures)) sums.set(reason, (sums.get(reason) ?? 0) + count);
  }
  return Object.fromEntries(
    [...sums].sort(([, a], [, b]) => b - a).map(([reason, sum]) => [reason, sum / runs.length]),
  );
}

type Subject = 'labels' | 'providers' | 'pools' | 'tenants';

/** Combines the measures of each name. A run without the name has measured nothing of it. */
function byName<S extends Subject, T>(
  runs: readonly RunMeasures[],
  subject: S,
  combine: (measures: readonly RunMeasures[S][string][]) => T,
): ByName<T> {
  const names = new Set(runs.flatMap((run) => Object.keys(run[subject])));
  const entries = [...names].sort().map((name) => {
    const measures = runs.flatMap((run): readonly RunMeasures[S][string][] => {
      const found = (run[subject] as ByName<RunMeasures[S][string]>)[name];
      return found === undefined ? [] : [found];
    });
    return [name, combine(measures)] as const;
  });
  return Object.fromEntries(entries);
}

function spread<T>(runs: readonly T[], valueOf: (run: T) => number): Spread {
  return spreadOf(runs.map(valueOf)) ?? { median: 0, least: 0, most: 0 };
}

function spreadOf(values: readonly number[]): Spread | null {
  const sorted = [...values].sort((a, b) => a - b);
  const [least] = sorted;
  const most = sorted.at(-1);
  const median = quantile(sorted, 0.5);
  return least === undefined || most === undefined || median === undefined ? null : { median, least, most };
}

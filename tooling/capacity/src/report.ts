/** The table of a series of runs. */

import type { RunResult } from './run.js';
import { quantile, writtenBetween } from './statistics.js';

/** Waits of one run (ms). */
export interface Summary {
  /** p95 of requests that were written during the disturbance. */
  readonly disturbedP95Ms: number;
  /** p95 of all requests. */
  readonly p95Ms: number;
  readonly longestMs: number;
  readonly requests: number;
  readonly failed: number;
  /** Greatest number of instances at the same time. */
  readonly maxInstances: number;
  /** Calls that created instances, per region. */
  readonly creations: readonly number[];
}

/** One line of the table: `brief` has a shorter disturbance, `without` has no circuit breakers and offers. */
export interface Row {
  readonly title: string;
  readonly now: Summary;
  readonly brief: Summary | undefined;
  readonly without: Summary | undefined;
}

/** Maximum p95, as a multiple of that of the undisturbed run (of regions: with one region fewer). */
export const BOUND = 1.3;
const HEADINGS = ['p95, disturbed', 'p95, whole run', 'longest', 'failed'] as const;

export function summarize({ waits, maxInstances, creations }: RunResult, fromMs: number, toMs: number): Summary {
  return {
    disturbedP95Ms: quantile(writtenBetween(waits, fromMs, toMs), 0.95),
    p95Ms: quantile(waits, 0.95),
    longestMs: quantile(waits, 1),
    requests: waits.length,
    failed: waits.filter(({ failure }) => failure !== undefined).length,
    maxInstances,
    creations,
  };
}

/** Returns the greatest p95 that meets the target. */
export function boundOf(baseline: Summary): number {
  return BOUND * baseline.p95Ms;
}

/** Returns the targets that the run misses, as sentences. */
export function misses({ now, brief = now, title }: Row, boundMs: number): readonly string[] {
  const slow = Math.max(now.disturbedP95Ms, now.p95Ms, brief.disturbedP95Ms);
  return [
    ...(slow > boundMs ? [`${title}: p95 is ${seconds(slow)}, above ${seconds(boundMs)}`] : []),
    ...(now.failed + brief.failed > 0 ? [`${title}: requests failed`] : []),
  ];
}

/** Returns the rows as a table in Markdown. */
export function markdownTable(rows: readonly Row[]): string {
  const headings = [
    'driver',
    'one of four regions',
    'p95, 15 min',
    ...HEADINGS,
    ...HEADINGS.map((heading) => `without: ${heading}`),
  ];
  const lines = rows.map(({ title, now, brief, without }) => [
    'example',
    title,
    brief === undefined ? '' : seconds(brief.disturbedP95Ms),
    ...cells(now),
    ...cells(without),
  ]);
  return tableOf(headings, lines, 2);
}

/** Returns a table in Markdown with p95 and longest wait of each row, for the documentation. */
export function summaryTable(rows: readonly Row[]): string {
  const waits = (summary: Summary | undefined): string =>
    summary === undefined ? '' : waitsOf(summary.disturbedP95Ms, summary.longestMs);
  const lines = rows.map(({ title, now, without }) => [title, waits(now), waits(without)]);
  const failed = rows.reduce((sum, { now, brief }) => sum + now.failed + (brief?.failed ?? 0), 0);
  return [tableOf(['one of four regions', 'waits', 'without'], lines, 1), failures(failed)].join('\n\n');
}

/** Returns a p95 and a longest wait in seconds, for a cell of a summary. */
export function waitsOf(p95Ms: number, longestMs: number): string {
  return [p95Ms, longestMs].map((ms) => (ms === Infinity ? 'never' : (ms / 1000).toFixed(1))).join(' / ');
}

/** Returns a sentence about failed requests. */
export function failures(count: number): string {
  return count === 0 ? 'No request failed.' : `${count} requests failed.`;
}

/** Returns a table in Markdown whose columns from `numbersFrom` on are aligned to the right. */
export function tableOf(
  headings: readonly string[],
  lines: readonly (readonly string[])[],
  numbersFrom: number,
): string {
  const widths = headings.map((heading, column) =>
    Math.max(heading.length, ...lines.map((line) => line[column]?.length ?? 0)),
  );
  const pad = (text: string, column: number): string =>
    column < numbersFrom ? text.padEnd(widths[column] ?? 0) : text.padStart(widths[column] ?? 0);
  const line = (texts: readonly string[]): string => `| ${texts.map(pad).join(' | ')} |`;
  const rule = widths.map((width, column) => (column < numbersFrom ? '-'.repeat(width) : `${'-'.repeat(width - 1)}:`));
  return [line(headings), `| ${rule.join(' | ')} |`, ...lines.map(line)].join('\n');
}

export function seconds(ms: number): string {
  return ms === Infinity ? 'never' : `${(ms / 1000).toFixed(1)} s`;
}

function cells(summary: Summary | undefined): readonly string[] {
  if (summary === undefined) return HEADINGS.map(() => '');
  const { disturbedP95Ms, p95Ms, longestMs, failed } = summary;
  return [seconds(disturbedP95Ms), seconds(p95Ms), seconds(longestMs), String(failed)];
}

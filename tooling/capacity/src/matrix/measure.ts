/** Measurements of the matrix: their orders, results and table. */

import { join } from 'node:path';
import { inProcesses } from '../measurements.js';
import { BOUND, seconds, tableOf } from '../report.js';
import { quantile, writtenBetween, type Wait } from '../statistics.js';
import type { CellPeriods } from './cell.js';
import { TARGETS } from './targets.js';
import { TROUBLES, type Trouble } from './troubles.js';

/** Periods of a cell. */
export const PERIODS: CellPeriods = { calmMs: 120_000, disturbedMs: 480_000, afterMs: 60_000 };
/** Duration of a disturbance that is noticed late (ms). */
export const LONG_DISTURBANCE_MS = 1_800_000;

export function periodsOf(trouble: Trouble | undefined): CellPeriods {
  return trouble?.isNoticedLate === true ? { ...PERIODS, disturbedMs: LONG_DISTURBANCE_MS } : PERIODS;
}

/** A cell to measure, as its process receives it. */
export interface CellOrder {
  /** Name for messages. */
  readonly what: string;
  readonly driver: string;
  /** Title of the trouble; undefined for an undisturbed run. */
  readonly trouble: string | undefined;
  readonly isPreferred: boolean;
  readonly seed: number;
  readonly log: boolean;
}

/** Waits of one cell (ms). */
export interface CellResult {
  /** p95 of the requests that were written during the disturbance. */
  readonly p95Ms: number;
  readonly longestMs: number;
  readonly requests: number;
  readonly failed: number;
}

/** One line of the table. */
export interface CellRow {
  readonly driver: string;
  readonly title: string;
  readonly boundMs: number;
  readonly equal: CellResult;
  readonly preferred: CellResult;
}

/** Titles of the troubles that only one cloud has, by driver. */
export const SPECIAL_TROUBLES: Readonly<Record<string, readonly string[]>> = {
  openstack: ['no valid host', 'quota exceeded', 'availability zone not available'],
  azure: ['showing an expired certificate', 'AllocationFailed', 'QuotaExceeded', 'image not replicated yet'],
  gce: ['ZONE_RESOURCE_POOL_EXHAUSTED', 'QUOTA_EXCEEDED', 'VM_MIN_COUNT_NOT_REACHED'],
  kubernetes: [
    'pods that cannot pull their image for 20 s',
    'pods whose secrets are not cached for 20 s',
    'pods that can never pull their image',
    'pods that arrive at full nodes (OutOfcpu)',
    'pods that fit on no node',
  ],
  aws: ['InsufficientInstanceCapacity', 'VcpuLimitExceeded', 'spot taken away in one zone'],
};

export function resultOf(waits: readonly Wait[], { calmMs, disturbedMs }: CellPeriods): CellResult {
  const disturbed = writtenBetween(waits, calmMs, calmMs + disturbedMs);
  return {
    p95Ms: quantile(disturbed, 0.95),
    longestMs: quantile(waits, 1),
    requests: waits.length,
    failed: waits.filter(({ failure }) => failure !== undefined).length,
  };
}

/** Measures the cells of the drivers, and reports each result as a line of text. */
export async function measureMatrix(
  options: {
    readonly drivers: readonly string[];
    readonly seed: number;
    readonly jobs: number;
    readonly log: boolean;
    /** Part of the titles of the troubles to measure. */
    readonly trouble: string;
  },
  onLine: (line: string) => void,
): Promise<readonly CellRow[]> {
  const { seed, log, jobs } = options;
  const orders: CellOrder[] = [];
  for (const driver of options.drivers) {
    const titles = [...TROUBLES.map(({ title }) => title), ...(SPECIAL_TROUBLES[driver] ?? [])];
    const wanted = titles.filter((title) => title.includes(options.trouble));
    for (const trouble of [undefined, ...wanted]) {
      for (const isPreferred of [false, true]) {
        const what = `${driver}, ${trouble ?? 'undisturbed'}${isPreferred ? ', preferred' : ''}`;
        orders.push({ what, driver, trouble, isPreferred, seed, log });
      }
    }
  }
  const results = await inProcesses<CellOrder, CellResult>(
    join(__dirname, 'worker.js'),
    orders,
    jobs,
    ({ what }, { p95Ms, longestMs, failed, requests }) =>
      onLine(`${what}: p95 ${seconds(p95Ms)}, longest ${seconds(longestMs)}; ${failed} of ${requests} failed`),
  );
  let calmMs = Infinity;
  return orders.flatMap(({ driver, trouble, isPreferred }, index) => {
    const [equal, preferred] = [results[index], results[index + 1]];
    if (isPreferred || equal === undefined || preferred === undefined) return [];
    if (trouble === undefined) calmMs = Math.max(equal.p95Ms, preferred.p95Ms);
    return [{ driver, title: trouble ?? 'undisturbed', boundMs: BOUND * calmMs, equal, preferred }];
  });
}

/** Returns the targets that a row misses, as sentences. */
export function cellMisses({ driver, title, boundMs, equal, preferred }: CellRow): readonly string[] {
  const of = (what: string, { p95Ms, failed }: CellResult): string[] => [
    ...(p95Ms > boundMs ? [`${what}: p95 is ${seconds(p95Ms)}, above ${seconds(boundMs)}`] : []),
    ...(failed > 0 ? [`${what}: requests failed`] : []),
  ];
  const what = `${driver}, ${title}`;
  return [...of(what, equal), ...of(`${what}, preferred`, preferred)];
}

/** Returns the rows as a table in Markdown. */
export function matrixTable(rows: readonly CellRow[]): string {
  const headings = ['driver', 'its cloud', 'p95', 'longest', 'failed', 'preferred: p95', 'longest', 'failed'];
  const lines = rows.map(({ driver, title, equal, preferred }) => [
    driver,
    title,
    ...[equal, preferred].flatMap(({ p95Ms, longestMs, failed }) => [
      seconds(p95Ms),
      seconds(longestMs),
      String(failed),
    ]),
  ]);
  return tableOf(headings, lines, 2);
}

/** Returns the names of the drivers of the matrix. */
export function matrixDrivers(): readonly string[] {
  return [...TARGETS.keys()];
}

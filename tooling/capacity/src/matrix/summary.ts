/** The summary of the matrix for the documentation: the worst waits per driver and kind of trouble. */

import { failures, tableOf, waitsOf } from '../report.js';
import { SPECIAL_TROUBLES, type CellRow } from './measure.js';
import { troubleNamed, TROUBLES } from './troubles.js';

/** Kinds of troubles, in the order of the table. */
const KINDS = [
  'undisturbed',
  'calls fail, or are not answered',
  'creations are refused, or fail',
  'only slow launches show it',
] as const;
type Kind = (typeof KINDS)[number];

/** Troubles of one cloud that affect all calls. */
const OF_ALL_CALLS: ReadonlySet<string> = new Set(['showing an expired certificate']);

export function kindOf(title: string): Kind {
  if (title === 'undisturbed') return 'undisturbed';
  if (troubleNamed(title).isNoticedLate === true) return 'only slow launches show it';
  const ofAnyCloud = TROUBLES.some((trouble) => trouble.title === title);
  return ofAnyCloud || OF_ALL_CALLS.has(title) ? 'calls fail, or are not answered' : 'creations are refused, or fail';
}

/** Returns a table in Markdown with a column per driver, and a sentence about failed requests. */
export function matrixSummary(rows: readonly CellRow[]): string {
  const drivers = Object.keys(SPECIAL_TROUBLES).filter((driver) => rows.some((row) => row.driver === driver));
  const lines = KINDS.map((kind) => [
    kind,
    ...drivers.map((driver) => worst(rows.filter((row) => row.driver === driver && kindOf(row.title) === kind))),
  ]);
  const failed = rows.reduce((sum, { equal, preferred }) => sum + equal.failed + preferred.failed, 0);
  return [tableOf(['the cloud', ...drivers], lines, 1), failures(failed)].join('\n\n');
}

/** Returns the worst p95 and the longest wait of the rows, in seconds. */
function worst(rows: readonly CellRow[]): string {
  const results = rows.flatMap(({ equal, preferred }) => [equal, preferred]);
  if (results.length === 0) return '';
  return waitsOf(Math.max(...results.map(({ p95Ms }) => p95Ms)), Math.max(...results.map((each) => each.longestMs)));
}

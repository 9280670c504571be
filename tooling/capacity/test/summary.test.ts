/** The summaries of the measurements for the documentation. */

import { expect, it } from '@jest/globals';
import type { CellResult, CellRow } from '../src/matrix/measure.js';
import { kindOf, matrixSummary } from '../src/matrix/summary.js';
import { summaryTable, type Summary } from '../src/report.js';

const result = (p95Ms: number, longestMs: number, failed = 0): CellResult => ({
  p95Ms,
  longestMs,
  failed,
  requests: 9,
});

function row(driver: string, title: string, equal: CellResult, preferred: CellResult): CellRow {
  return { driver, title, boundMs: 80_000, equal, preferred };
}

it.each([
  ['undisturbed', 'undisturbed'],
  ['silent', 'calls fail, or are not answered'],
  ['showing an expired certificate', 'calls fail, or are not answered'],
  ['QuotaExceeded', 'creations are refused, or fail'],
  ['answering after 5 s', 'only slow launches show it'],
  ['pods that fit on no node', 'only slow launches show it'],
])('the trouble "%s" is of the kind "%s"', (title, kind) => expect(kindOf(title)).toBe(kind));

const ROWS = [
  row('gce', 'undisturbed', result(62_800, 63_100), result(63_000, 63_100)),
  row('gce', 'silent', result(60_000, 140_000), result(60_100, 138_000)),
  row('gce', 'answering 503', result(60_000, 139_000), result(60_000, 140_200)),
  row('gce', 'QUOTA_EXCEEDED', result(61_000, 63_100), result(60_200, 63_100)),
];

it('the summary of the matrix has the worst waits of each kind and driver', () => {
  expect(matrixSummary(ROWS)).toBe(
    [
      '| the cloud                       |          gce |',
      '| ------------------------------- | -----------: |',
      '| undisturbed                     |  63.0 / 63.1 |',
      '| calls fail, or are not answered | 60.1 / 140.2 |',
      '| creations are refused, or fail  |  61.0 / 63.1 |',
      '| only slow launches show it      |              |',
      '',
      'No request failed.',
    ].join('\n'),
  );
});

it('the summary of the matrix names failed requests', () => {
  expect(matrixSummary([...ROWS, row('gce', 'silent', result(1, 1, 2), result(1, 1, 1))])).toContain(
    '3 requests failed.',
  );
});

it('the summary of the regions has the waits of each disturbance, with and without breakers', () => {
  const summary: Summary = {
    disturbedP95Ms: 74_700,
    p95Ms: 74_500,
    longestMs: 203_400,
    requests: 9,
    failed: 0,
    maxInstances: 1,
    creations: [1],
  };
  const never = { ...summary, longestMs: Infinity, failed: 1 };
  const rows = [
    { title: 'undisturbed', now: summary, brief: undefined, without: undefined },
    { title: 'silent', now: summary, brief: { ...summary, failed: 2 }, without: never },
  ];
  expect(summaryTable(rows)).toBe(
    [
      '| one of four regions |        waits |      without |',
      '| ------------------- | -----------: | -----------: |',
      '| undisturbed         | 74.7 / 203.4 |              |',
      '| silent              | 74.7 / 203.4 | 74.7 / never |',
      '',
      '2 requests failed.',
    ].join('\n'),
  );
});

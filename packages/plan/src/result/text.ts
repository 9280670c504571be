/** The result of a plan as text. */

import { toTable } from '@nodepool/store';
import type { PlanResult } from '../plan.js';
import type { Summary } from './summary.js';
import { amount, count, percent, seconds, withRange } from './units.js';

/** Number of reasons of failures that are named for each configuration. */
const MAX_REASONS = 5;

type Row = readonly string[];

export function planText(result: PlanResult): string {
  const { day, runs, configurations } = result;
  const named = configurations.map((summary) => [summary.name, summary] as const);
  const rows = <T>(
    of: (summary: Summary) => Readonly<Record<string, T>>,
    cells: (measures: T) => Row,
    first: (name: string) => readonly Row[] = () => [],
  ): readonly Row[] => {
    const names = [...new Set(configurations.flatMap((summary) => Object.keys(of(summary))))].sort();
    return names.flatMap((name) => [
      ...first(name),
      ...named.flatMap(([configuration, summary]) => {
        const measures = of(summary)[name];
        return measures === undefined ? [] : [[name, configuration, ...cells(measures)]];
      }),
    ]);
  };
  const labels = rows(
    (summary) => summary.labels,
    ({ requests, wait, failed, unanswered, mostNodes, idleHours }) => [
      String(requests),
      withRange(wait.p50, seconds),
      withRange(wait.p95, seconds),
      withRange(failed, count),
      withRange(unanswered, count),
      withRange(mostNodes, count),
      withRange(idleHours, amount),
    ],
    (label) => recordedRow(result, label),
  );
  const providers = rows(
    (summary) => summary.providers,
    ({ wait, limit, mostNodes, atLimit, launches, failedLaunches }) => [
      withRange(wait.p50, seconds),
      withRange(wait.p95, seconds),
      limit === null ? 'unknown' : String(limit),
      withRange(mostNodes, count),
      limit === null ? '-' : withRange(atLimit, percent),
      withRange(launches, count),
      withRange(failedLaunches, count),
    ],
  );
  const limited = rows(
    (summary) => ({ ...summary.pools, ...tenantsWithLimit(summary) }),
    ({ limit, mostNodes, atLimit, idleHours, usedHours, nodeHours }) => [
      limit === null ? 'none' : String(limit),
      withRange(mostNodes, count),
      limit === null ? '-' : withRange(atLimit, percent),
      withRange(idleHours, amount),
      withRange(usedHours, amount),
      withRange(nodeHours, amount),
    ],
  );
  return [
    `${day.requests} requests from ${day.from} to ${day.to}, ${day.launches} observed launches, ` +
      `${runs} ${runs === 1 ? 'run' : 'runs'} of each configuration`,
    '',
    table(['Label', 'Run', 'Requests', 'Wait p50', 'Wait p95', 'Failed', 'Unanswered', 'Nodes', 'Idle hours'], labels),
    '',
    table(
      ['Provider', 'Run', 'Wait p50', 'Wait p95', 'Cloud limit', 'Nodes', 'At limit', 'Launches', 'Failed'],
      providers,
    ),
    '',
    table(['Pool', 'Run', 'Limit', 'Nodes', 'At limit', 'Idle hours', 'Used hours', 'Node hours'], limited),
    ...section(
      'Why requests fail',
      named.flatMap(([name, { failures }]) => reasons(name, failures)),
    ),
    ...(configurations.length < 2
      ? []
      : section(
          'What changes',
          result.changes.length > 0 ? result.changes : ['Nothing beyond the range of the runs.'],
        )),
    ...section('What this rests on', result.assumptions),
  ].join('\n');
}

function recordedRow({ recorded }: PlanResult, label: string): readonly Row[] {
  const known = recorded[label];
  if (known === undefined) return [];
  const time = (value: number | null): string => (value === null ? '-' : seconds(value));
  return [
    [label, 'recorded', String(known.requests), time(known.p50), time(known.p95), String(known.failed), '', '', ''],
  ];
}

function tenantsWithLimit({ tenants }: Summary): Summary['tenants'] {
  const entries = Object.entries(tenants).filter(([, { limit }]) => limit !== null);
  return Object.fromEntries(entries.map(([name, measures]) => [`tenant ${name}`, measures]));
}

function reasons(name: string, failures: Summary['failures']): readonly string[] {
  const all = Object.entries(failures);
  const lines = all.slice(0, MAX_REASONS).map(([reason, number]) => `${name}: ${amount(number)} requests: ${reason}`);
  return all.length > MAX_REASONS ? [...lines, `${name}: ${all.length - MAX_REASONS} more reasons`] : lines;
}

/** Returns a titled list; nothing if it is empty. */
export function section(title: string, lines: readonly string[]): readonly string[] {
  return lines.length === 0 ? [] : ['', `${title}:`, ...lines.map((line) => `- ${line}`)];
}

export function table(headers: readonly string[], rows: readonly Row[]): string {
  return toTable({ columns: headers.map((header) => ({ field: header, header })), rows });
}

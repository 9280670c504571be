/**
 * Measures the launcher against its targets and prints one table.
 *
 *   --data memory|disk   where ZooKeeper keeps its data: /dev/shm, or the folder for temporary files (default)
 *   --only a,b,…         only these measurements, by the letter in front of them
 */

import { tmpdir } from 'node:os';
import { parseArgs } from 'node:util';
import { Bed, type BedOptions, type LauncherFacts } from './bed.js';
import { burst, idleShare, singleRequests, throughBottleneck } from './scenarios.js';
import { renderTable, type Row } from './table.js';

const MEBIBYTE = 2 ** 20;

interface Run {
  readonly rows: Row[];
  readonly launchers: LauncherFacts[];
}

/** A run of its own launcher, giving the rows that its letters stand for. */
interface Scenario {
  readonly letters: string;
  readonly what: string;
  readonly maxServers?: number;
  readonly eventLoopProbe?: boolean;
  measure(bed: Bed, signal: AbortSignal): Promise<Row[]>;
}

const SCENARIOS: readonly Scenario[] = [
  {
    letters: 'a h',
    what: '50 requests one after the other',
    measure: async (bed, signal) => {
      const { medianMs, transactionsPerLife } = await singleRequests(bed, 50, signal);
      return [
        row('a  one request on an idle launcher, median of 50', medianMs, 25, milliseconds, '2400 ms'),
        row('h  ZooKeeper transactions per node life', transactionsPerLife, 12, plain, '21', true),
      ];
    },
  },
  {
    letters: 'b d',
    what: '1,000 requests at once',
    measure: async (bed, signal) => {
      const { fulfilledMs, deletedMs, transactionsPerLife } = await burst(bed, 1000, signal);
      return [
        row('b  1,000 requests at once, all fulfilled', fulfilledMs, 2500, seconds, '22 s'),
        row('d  1,000 nodes released at once, all deleted', deletedMs, 3000, seconds, '-'),
        row('h  ZooKeeper transactions per node life, 1,000 at once', transactionsPerLife, 12, plain, '21', true),
      ];
    },
  },
  {
    letters: 'c',
    what: '2,000 requests at once',
    measure: async (bed, signal) => {
      const { fulfilledMs, deletedMs } = await burst(bed, 2000, signal);
      return [
        row('c  2,000 requests at once, all fulfilled', fulfilledMs, 5000, seconds, '56 s'),
        row('   2,000 nodes released at once, all deleted', deletedMs, undefined, seconds, '-'),
      ];
    },
  },
  {
    letters: 'e',
    what: '1,000 ready nodes, and nothing to do for 10 s',
    eventLoopProbe: false,
    measure: async (bed, signal) => [
      row(
        'e  1,000 idle ready nodes, share of a core over 10 s',
        await idleShare(bed, 1000, signal),
        0.01,
        percent,
        '-',
      ),
    ],
  },
  {
    letters: 'g',
    what: '1,000 requests to a pool with max-servers 100',
    maxServers: 100,
    measure: async (bed, signal) => [
      row('g  1,000 requests, max-servers 100', await throughBottleneck(bed, 1000, signal), 8000, seconds, '261 s'),
    ],
  },
];

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: { data: { type: 'string', default: 'disk' }, only: { type: 'string', default: '' } },
  });
  const wanted = values.only.split(',').filter((letter) => letter !== '');
  const bedOptions: BedOptions = { dataFolder: dataFolder(values.data) };
  const run: Run = { rows: [], launchers: [] };
  for (const scenario of SCENARIOS) {
    const letters = scenario.letters.split(' ');
    if (wanted.length > 0 && !wanted.some((letter) => letters.includes(letter))) continue;
    process.stderr.write(`${scenario.what} …\n`);
    try {
      await runScenario(scenario, bedOptions, run);
    } catch (error) {
      // The others can still be measured.
      process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
      process.exitCode = 1;
    }
  }
  run.rows.push(...launcherRows(run.launchers));
  process.stdout.write(`\nZooKeeper's data in ${bedOptions.dataFolder}\n\n${renderTable(run.rows)}\n`);
}

async function runScenario(scenario: Scenario, options: BedOptions, run: Run): Promise<void> {
  const { maxServers, eventLoopProbe = true } = scenario;
  const bed = await Bed.make({ ...options, eventLoopProbe, ...(maxServers === undefined ? {} : { maxServers }) });
  let facts: LauncherFacts | undefined;
  try {
    run.rows.push(...(await bed.measure(scenario.what, (signal) => scenario.measure(bed, signal))));
  } finally {
    facts = await bed.clear();
  }
  run.launchers.push(facts);
}

function launcherRows(launchers: readonly LauncherFacts[]): Row[] {
  if (launchers.length === 0) return [];
  const memory = Math.max(...launchers.map((facts) => facts.peakResidentBytes));
  const p99 = Math.max(...launchers.map((facts) => facts.eventLoopDelay?.p99 ?? 0));
  const longest = Math.max(...launchers.map((facts) => facts.eventLoopDelay?.max ?? 0));
  return [
    row('f  launcher, most memory resident in any of these', memory, 150 * MEBIBYTE, mebibytes, '-'),
    row('i  launcher, delay of its event loop, worst p99 of these', p99, undefined, milliseconds, '-'),
    row('   launcher, delay of its event loop, longest', longest, undefined, milliseconds, '-'),
  ];
}

function dataFolder(option: string): string {
  if (option === 'disk') return tmpdir();
  if (option === 'memory') return '/dev/shm';
  throw new Error(`--data is memory or disk, not "${option}"`);
}

function row(
  what: string,
  measured: number,
  target: number | undefined,
  format: (value: number) => string,
  existing: string,
  targetIncluded = false,
): Row {
  if (target === undefined) return { what, measured: format(measured), target: '-', existing, met: undefined };
  const met = targetIncluded ? measured <= target : measured < target;
  return { what, measured: format(measured), target: `${targetIncluded ? '≤' : '<'} ${format(target)}`, existing, met };
}

function plain(value: number): string {
  return String(Number(value.toFixed(2)));
}

function milliseconds(value: number): string {
  return `${Number(value.toFixed(1))} ms`;
}

function seconds(value: number): string {
  return `${Number((value / 1000).toFixed(2))} s`;
}

function percent(value: number): string {
  return `${Number((value * 100).toFixed(2))} %`;
}

function mebibytes(value: number): string {
  return `${Math.round(value / MEBIBYTE)} MiB`;
}

main().catch((error: unknown) => {
  process.stderr.write(`${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`);
  process.exitCode = 1;
});

/** Implements `pnpm capacity`: runs the scenarios, prints the table and updates the documentation. */

import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { runCommandLine, UsageError } from '@nodepool/harness';
import { DISTURBANCES, type Disturbance } from './disturbances.js';
import {
  cellMisses,
  LONG_DISTURBANCE_MS,
  matrixDrivers,
  matrixTable,
  measureMatrix,
  PERIODS,
} from './matrix/measure.js';
import { measureAll, type MeasurementOrder } from './measurements.js';
import { matrixSummary } from './matrix/summary.js';
import { boundOf, markdownTable, misses, seconds, summaryTable, type Row, type Summary } from './report.js';
import { REGION_INSTANCES } from './region.js';
import type { Periods } from './run.js';

const HELP = `Usage: pnpm capacity [options]

Measures on a virtual clock how long requests wait while a cloud fails, and compares their 95th percentile with 1.3 times
that of an undisturbed run. There are two series: one of four regions of the example driver fails, and the simulated
cloud of every other driver fails beside a healthy one. A run of the first series takes minutes, one of the second
series seconds.

  --series NAME    only this series: regions, drivers
  --driver NAME    only the second series, for this driver, repeatable: ${matrixDrivers().join(', ')}
  --trouble TEXT   only the troubles of the second series whose titles contain the text
  --scenario NAME  only this one of the first series, repeatable: ${DISTURBANCES.map(({ name }) => name).join(', ')}
  --seed N         seed of all random values (default 1)
  --calm MINUTES   time before the disturbance of regions (default 120)
  --disturbed MINUTES
                   duration of the disturbance of regions (default 30)
  --scale PART     part of the full number of instances and requests, for shorter runs (default 1)
  --jobs N         number of runs at a time (default 1)
  --now            omit the runs without circuit breakers and offers
  --write          write summaries to docs/capacity.md; only whole ones, so not with --driver, --trouble, --scenario
  --log            print warnings and errors of the launcher
  --help           this text

Exit status: 0 all targets are met, 1 one is missed, 2 wrong usage or a run failed.

Example:
  $ pnpm capacity --scenario down --seed 7
  $ pnpm capacity --driver kubernetes --trouble silent
  $ pnpm capacity --series drivers --jobs 2 --write
`;

const MINUTE_MS = 60_000;
const PAGE = join(__dirname, '..', '..', '..', 'docs', 'capacity.md');
const END = '<!-- /generated -->';

/** Periods of the runs with a brief disturbance: the load is complete after `calmMs`. */
const SHORT_PERIODS: Periods = { calmMs: 12 * MINUTE_MS, disturbedMs: 15 * MINUTE_MS, afterMs: 15 * MINUTE_MS };

/** Explains the columns that only the full table has. */
const COLUMNS =
  `The column "p95, 15 min" is from runs with ${SHORT_PERIODS.calmMs / MINUTE_MS} minutes before the disturbance and ` +
  `${SHORT_PERIODS.disturbedMs / MINUTE_MS} minutes of it.`;

interface Selection {
  readonly scenarios: readonly Disturbance[];
  readonly drivers: readonly string[];
  readonly trouble: string;
  readonly order: Pick<MeasurementOrder, 'seed' | 'scale' | 'periods' | 'log'>;
  readonly compare: boolean;
  readonly write: boolean;
  readonly jobs: number;
}

async function main(): Promise<void> {
  const wanted = readArguments();
  if (wanted === undefined) {
    process.stdout.write(HELP);
    return;
  }
  const missed: string[] = [];
  if (wanted.scenarios.length > 0) missed.push(...(await measureRegions(wanted)));
  if (wanted.drivers.length > 0) missed.push(...(await measureDrivers(wanted)));
  for (const sentence of missed) process.stdout.write(`missed: ${sentence}\n`);
  process.exitCode = missed.length === 0 ? 0 : 1;
}

/** Measures the second series, and resolves with the targets that are missed. */
async function measureDrivers({ drivers, trouble, order, jobs, write }: Selection): Promise<readonly string[]> {
  const { seed, log } = order;
  const rows = await measureMatrix({ drivers, trouble, seed, log, jobs }, (line) => {
    process.stderr.write(`${line}\n`);
  });
  const minutes = PERIODS.disturbedMs / MINUTE_MS;
  const longMinutes = LONG_DISTURBANCE_MS / MINUTE_MS;
  const parameters = `Measured with ${minutes} minutes of the disturbance (${longMinutes} if only slow launches show it) and seed ${seed}.`;
  process.stdout.write(`${parameters}\n\n${matrixTable(rows)}\n`);
  if (write) await writePage('drivers', `${parameters}\n\n${matrixSummary(rows)}`);
  return rows.flatMap(cellMisses);
}

/** Measures the first series, and resolves with the targets that are missed. */
async function measureRegions(wanted: Selection): Promise<readonly string[]> {
  const { scenarios, order, compare } = wanted;
  const orders: MeasurementOrder[] = [];
  const add = (what: string, more: Partial<MeasurementOrder>): number =>
    orders.push({ what, ...order, regions: 4, scenario: undefined, capacity: undefined, ...more }) - 1;
  const baseline = add('three regions, undisturbed', { regions: 3 });
  const undisturbed = add('undisturbed', {});
  const disturbed = scenarios.map(({ name: scenario, title }) => ({
    title,
    now: add(title, { scenario }),
    brief: add(`${title}, for 15 minutes`, { scenario, periods: SHORT_PERIODS }),
    without: compare
      ? add(`${title}, without breakers and offers`, { scenario, capacity: { breakers: false, offers: false } })
      : -1,
  }));
  const summaries = await measureAll(orders, wanted.jobs, ({ what }, summary) => {
    process.stderr.write(`${what}: ${describe(summary)}\n`);
  });
  const [three, calm] = [summaries[baseline], summaries[undisturbed]];
  if (three === undefined || calm === undefined) throw new Error('a run has no result');
  const rows: Row[] = [{ title: 'undisturbed', now: calm, brief: undefined, without: undefined }];
  for (const { title, now, brief, without } of disturbed) {
    rows.push({ title, now: summaries[now] ?? calm, brief: summaries[brief], without: summaries[without] });
  }
  const bound = boundOf(three);
  const target = `With three undisturbed regions, the 95th percentile of the wait is ${seconds(three.p95Ms)}; the target is at most ${seconds(bound)}.`;
  const text = (...parts: readonly string[]): string => [measuredWith(order), target, ...parts].join('\n\n');
  process.stdout.write(`${text(COLUMNS, markdownTable(rows))}\n`);
  if (wanted.write) await writePage('measured', text(summaryTable(rows)));
  return rows.flatMap((row) => misses(row, bound));
}

function measuredWith({ seed, scale, periods: { calmMs, disturbedMs } }: Selection['order']): string {
  return (
    `Measured with ${REGION_INSTANCES * scale} instances per region, ${calmMs / MINUTE_MS} minutes before the ` +
    `disturbance, ${disturbedMs / MINUTE_MS} minutes of it, and seed ${seed}. The runs of "without" have no circuit ` +
    'breakers and offers.'
  );
}

function describe(summary: Summary): string {
  const { disturbedP95Ms, p95Ms, longestMs, failed, requests, maxInstances, creations } = summary;
  return (
    `p95 ${seconds(disturbedP95Ms)} while disturbed, ${seconds(p95Ms)} in the whole run, longest ${seconds(longestMs)}; ` +
    `${failed} of ${requests} failed; at most ${maxInstances} instances, ${creations.join(' + ')} creations`
  );
}

function readArguments(): Selection | undefined {
  const { values } = parseArgs({
    options: {
      scenario: { type: 'string', multiple: true },
      series: { type: 'string' },
      driver: { type: 'string', multiple: true },
      trouble: { type: 'string', default: '' },
      seed: { type: 'string', default: '1' },
      calm: { type: 'string', default: '120' },
      disturbed: { type: 'string', default: '30' },
      scale: { type: 'string', default: '1' },
      jobs: { type: 'string', default: '1' },
      now: { type: 'boolean', default: false },
      write: { type: 'boolean', default: false },
      log: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) return undefined;
  const { series, scenario: chosen, driver } = values;
  if (series !== undefined && series !== 'regions' && series !== 'drivers') {
    throw new UsageError(`there is no series ${series}`);
  }
  const isPart = chosen !== undefined || driver !== undefined || values.trouble !== '';
  if (values.write && isPart) throw new UsageError('--write is not possible with --driver, --trouble or --scenario');
  const hasRegions = series !== 'drivers' && driver === undefined;
  const hasDrivers = series !== 'regions' && chosen === undefined;
  const names = chosen ?? (hasRegions ? DISTURBANCES.map(({ name }) => name) : []);
  const drivers = driver ?? (hasDrivers ? matrixDrivers() : []);
  const unknown = drivers.find((driver) => !matrixDrivers().includes(driver));
  if (unknown !== undefined) throw new UsageError(`there is no driver ${unknown}`);
  const scenarios = names.map((name) => {
    const scenario = DISTURBANCES.find((each) => each.name === name);
    if (scenario === undefined) throw new UsageError(`there is no scenario ${name}`);
    return scenario;
  });
  const calmMs = wholeNumber('--calm', values.calm) * MINUTE_MS;
  const disturbedMs = wholeNumber('--disturbed', values.disturbed) * MINUTE_MS;
  return {
    scenarios,
    drivers,
    trouble: values.trouble,
    order: {
      seed: wholeNumber('--seed', values.seed),
      scale: partOf('--scale', values.scale),
      periods: { calmMs, disturbedMs, afterMs: 30 * MINUTE_MS },
      log: values.log,
    },
    compare: !values.now,
    write: values.write,
    jobs: Math.max(wholeNumber('--jobs', values.jobs), 1),
  };
}

function wholeNumber(option: string, text: string): number {
  if (!/^[0-9]{1,9}$/.test(text)) throw new UsageError(`${option} must be a whole number, not "${text}"`);
  return Number(text);
}

function partOf(option: string, text: string): number {
  const part = Number(text);
  if (!(part > 0 && part <= 1)) throw new UsageError(`${option} must be more than 0 and at most 1, not "${text}"`);
  return part;
}

async function writePage(section: string, text: string): Promise<void> {
  const page = await readFile(PAGE, 'utf8');
  const begin = `<!-- generated: ${section} -->`;
  const from = page.indexOf(begin);
  const to = page.indexOf(END, from);
  if (from === -1 || to === -1) throw new Error(`docs/capacity.md needs ${begin} and ${END}`);
  await writeFile(PAGE, `${page.slice(0, from + begin.length)}\n\n${text}\n\n${page.slice(to)}`);
}

runCommandLine(HELP, main, 2);

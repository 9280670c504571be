/** Implements `pnpm capacity`: runs the scenarios, prints the table and updates the documentation. */

import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { DISTURBANCES, type Disturbance } from './disturbances.js';
import { terminalLog } from './log.js';
import { boundOf, markdownTable, misses, seconds, summarize, type Row, type Summary } from './report.js';
import { REGION_INSTANCES } from './region.js';
import { run, type Periods, type RunOptions } from './run.js';

const HELP = `Usage: pnpm capacity [options]

Measures on a virtual clock how long requests wait while one of four regions fails, and compares their 95th percentile
with 1.3 times that of an undisturbed run with three regions. Each run takes about a minute.

  --scenario NAME  only this one, repeatable: ${DISTURBANCES.map(({ name }) => name).join(', ')}
  --seed N         seed of all random values (default 1)
  --calm MINUTES   time before the disturbance (default 120)
  --disturbed MINUTES
                   duration of the disturbance (default 30)
  --scale PART     part of the full number of instances and requests, for shorter runs (default 1)
  --now            omit the runs without circuit breakers and offers
  --write          write the table to docs/capacity.md
  --log            print warnings and errors of the launcher
  --help           this text

Exit status: 0 all targets are met, 1 one is missed, 2 wrong usage or a run failed.

Example:
  $ pnpm capacity --scenario down --seed 7
`;

const MINUTE_MS = 60_000;
const PAGE = join(__dirname, '..', '..', '..', 'docs', 'capacity.md');
const BEGIN = '<!-- generated: measured -->';
const END = '<!-- /generated -->';

interface Wanted {
  readonly scenarios: readonly Disturbance[];
  readonly seed: number;
  readonly periods: Periods;
  readonly scale: number;
  readonly compare: boolean;
  readonly write: boolean;
  readonly log: RunOptions['log'];
}

async function main(): Promise<number> {
  const wanted = readArguments();
  if (wanted === undefined) {
    process.stdout.write(HELP);
    return 0;
  }
  const baseline = await measure(wanted, 'three regions, undisturbed', { regions: 3 });
  const rows: Row[] = [{ title: 'undisturbed', now: await measure(wanted, 'undisturbed', {}), without: undefined }];
  for (const disturbance of wanted.scenarios) {
    const { title } = disturbance;
    const now = await measure(wanted, title, { disturbance });
    const capacity = { breakers: false, offers: false };
    const without = wanted.compare
      ? await measure(wanted, `${title}, without breakers and offers`, { disturbance, capacity })
      : undefined;
    rows.push({ title, now, without });
  }
  const bound = boundOf(baseline);
  const text = [
    `Measured with ${REGION_INSTANCES * wanted.scale} instances per region, ${wanted.periods.calmMs / MINUTE_MS} minutes before the disturbance, ` +
      `${wanted.periods.disturbedMs / MINUTE_MS} minutes of it, and seed ${wanted.seed}. ` +
      'The columns "without" are from runs with circuit breakers and offers disabled.',
    `With three undisturbed regions, the 95th percentile of the wait is ${seconds(baseline.p95Ms)}; the target is at most ${seconds(bound)}.`,
    markdownTable(rows),
  ].join('\n\n');
  process.stdout.write(`${text}\n`);
  if (wanted.write) await writePage(text);
  const missed = rows.flatMap((row) => misses(row, bound));
  for (const sentence of missed) process.stdout.write(`missed: ${sentence}\n`);
  return missed.length === 0 ? 0 : 1;
}

async function measure(
  { seed, periods, scale, log }: Wanted,
  what: string,
  options: Partial<Pick<RunOptions, 'regions' | 'disturbance' | 'capacity'>>,
): Promise<Summary> {
  process.stderr.write(`${what} …\n`);
  const result = await run({ seed, regions: 4, scale, ...periods, log, ...options });
  const summary = summarize(result, periods.calmMs, periods.calmMs + periods.disturbedMs);
  process.stderr.write(
    `  p95 ${seconds(summary.disturbedP95Ms)} while disturbed, ${seconds(summary.p95Ms)} in the whole run, ` +
      `longest ${seconds(summary.longestMs)}; ${summary.failed} of ${summary.requests} failed; ` +
      `at most ${result.mostInstances} instances, ${result.creations.join(' + ')} creations\n`,
  );
  return summary;
}

function readArguments(): Wanted | undefined {
  const { values } = parseArgs({
    options: {
      scenario: { type: 'string', multiple: true },
      seed: { type: 'string', default: '1' },
      calm: { type: 'string', default: '120' },
      disturbed: { type: 'string', default: '30' },
      scale: { type: 'string', default: '1' },
      now: { type: 'boolean', default: false },
      write: { type: 'boolean', default: false },
      log: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) return undefined;
  const names = values.scenario ?? DISTURBANCES.map(({ name }) => name);
  const scenarios = names.map((name) => {
    const scenario = DISTURBANCES.find((each) => each.name === name);
    if (scenario === undefined) throw new Error(`there is no scenario ${name}; see --help`);
    return scenario;
  });
  const calmMs = wholeNumber('--calm', values.calm) * MINUTE_MS;
  const disturbedMs = wholeNumber('--disturbed', values.disturbed) * MINUTE_MS;
  return {
    scenarios,
    seed: wholeNumber('--seed', values.seed),
    periods: { calmMs, disturbedMs, afterMs: 30 * MINUTE_MS },
    scale: partOf('--scale', values.scale),
    compare: !values.now,
    write: values.write,
    log: values.log ? terminalLog : undefined,
  };
}

function wholeNumber(option: string, text: string): number {
  if (!/^[0-9]{1,9}$/.test(text)) throw new Error(`${option} is a whole number, not "${text}"`);
  return Number(text);
}

function partOf(option: string, text: string): number {
  const part = Number(text);
  if (!(part > 0 && part <= 1)) throw new Error(`${option} is more than 0 and at most 1, not "${text}"`);
  return part;
}

async function writePage(text: string): Promise<void> {
  const page = await readFile(PAGE, 'utf8');
  const from = page.indexOf(BEGIN);
  const to = page.indexOf(END, from);
  if (from === -1 || to === -1) throw new Error(`docs/capacity.md needs ${BEGIN} and ${END}`);
  await writeFile(PAGE, `${page.slice(0, from + BEGIN.length)}\n\n${text}\n\n${page.slice(to)}`);
}

main().then(
  (code) => (process.exitCode = code),
  (error: unknown) => {
    process.stderr.write(`${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`);
    process.exitCode = 2;
  },
);

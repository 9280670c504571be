/** Measures the launcher and prints one table. */

import { loadavg } from 'node:os';
import { parseArgs } from 'node:util';
import { listOption, runCommandLine } from '@nodepool/harness';
import { dataFolder } from './data-folder.js';
import type { EnvironmentOptions, LauncherFacts } from './environment.js';
import { SCENARIOS } from './plan.js';
import type { MeasuredLoop } from './scenario.js';
import { mebibytes, milliseconds, row } from './rows.js';
import { renderTable, type Row } from './table.js';

const HELP = `Usage: pnpm bench [options]

Measures the launcher and prints one table. Takes minutes; stderr says what is measured.

  --data memory|disk   where ZooKeeper keeps its data: /dev/shm, or the folder for temporary files (default)
  --only a,b,…         only these measurements, by the letter in front of them
  --help               this text

Example:
  $ pnpm bench --data memory --only a,c
`;

/** The facts of a launcher, with the measurement that it ran in. */
interface MeasuredLauncher {
  readonly what: string;
  readonly facts: LauncherFacts;
  /** Load average of the machine at the end of the measurement. */
  readonly load: string;
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      data: { type: 'string', default: 'disk' },
      only: { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) {
    process.stdout.write(HELP);
    return;
  }
  const known = SCENARIOS.flatMap(({ letters }) => letters.split(' '));
  const wanted = values.only === undefined ? known : listOption('--only', values.only, known);
  const environmentOptions: EnvironmentOptions = { dataFolder: dataFolder(values.data) };
  const rows: Row[] = [];
  const launchers: MeasuredLauncher[] = [];
  const loops: MeasuredLoop[] = [];
  for (const scenario of SCENARIOS) {
    const letters = scenario.letters.split(' ');
    if (!wanted.some((letter) => letters.includes(letter))) continue;
    process.stderr.write(`${scenario.what} …\n`);
    try {
      const outcome = await scenario.run(environmentOptions);
      const load = (loadavg()[0] ?? NaN).toFixed(1);
      rows.push(...outcome.rows.map((each) => ({ ...each, load })));
      launchers.push(...outcome.launchers.map((facts) => ({ what: scenario.what, facts, load })));
      loops.push(...outcome.eventLoops);
    } catch (error) {
      // The remaining scenarios are still measured.
      process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
      process.exitCode = 1;
    }
  }
  rows.push(...memoryRows(launchers), ...eventLoopRows(loops));
  process.stdout.write(`\nZooKeeper's data in ${environmentOptions.dataFolder}\n\n${renderTable(rows)}\n`);
}

/** Returns a row per measurement: the most memory that its launcher used. The targets are those of the single rows. */
function memoryRows(measured: readonly MeasuredLauncher[]): Row[] {
  return measured.map(({ what, facts, load }, index) => ({
    ...row(
      `${index === 0 ? 'f  most memory resident: ' : '   … '}${what}`,
      facts.peakResidentBytes,
      undefined,
      mebibytes,
      '-',
    ),
    load,
  }));
}

/** Returns rows with the worst delays, which name their measurements, and a row of each measurement. */
function eventLoopRows(loops: readonly MeasuredLoop[]): Row[] {
  const worst = (title: string, of: Exclude<keyof MeasuredLoop, 'what'>): Row[] => {
    const [first] = [...loops].sort((a, b) => b[of] - a[of]);
    return first === undefined ? [] : [row(`${title} (${first.what})`, first[of], undefined, milliseconds, '-')];
  };
  return [
    ...worst('i  delay of the event loop, worst p99', 'p99'),
    ...worst('   … longest', 'max'),
    ...worst('   … worst p99 without waits for a processor', 'ownP99'),
    ...worst('   … longest without waits for a processor', 'ownMax'),
    ...worst('   … processor time of the longest turn', 'busiest'),
    ...loops.map(({ what, p99, max, ownP99, ownMax, busiest }) => {
      const measured = [p99, max, ownP99, ownMax, busiest].map((ms) => ms.toFixed(0)).join(', ');
      const title = `   … p99, longest, the same without waits, longest turn: ${what}`;
      return row(title, NaN, undefined, () => `${measured} ms`, '-');
    }),
  ];
}

runCommandLine(HELP, main);

/** Measures the launcher against its targets and prints one table. */

import { loadavg, tmpdir } from 'node:os';
import { parseArgs } from 'node:util';
import type { EnvironmentOptions, LauncherFacts } from './environment.js';
import { SCENARIOS, type MeasuredLoop } from './plan.js';
import { MEBIBYTE, mebibytes, milliseconds, row } from './rows.js';
import { renderTable, type Row } from './table.js';

const HELP = `Usage: pnpm bench [options]

Measures the launcher against its targets and prints one table. Takes minutes; stderr says what is measured.

  --data memory|disk   where ZooKeeper keeps its data: /dev/shm, or the folder for temporary files (default)
  --only a,b,…         only these measurements, by the letter in front of them
  --help               this text

Example:
  $ pnpm bench --data memory --only a,c
`;

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      data: { type: 'string', default: 'disk' },
      only: { type: 'string', default: '' },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) {
    process.stdout.write(HELP);
    return;
  }
  const wanted = values.only.split(',').filter((letter) => letter !== '');
  const environmentOptions: EnvironmentOptions = { dataFolder: dataFolder(values.data) };
  const rows: Row[] = [];
  const launchers: LauncherFacts[] = [];
  const loops: MeasuredLoop[] = [];
  for (const scenario of SCENARIOS) {
    const letters = scenario.letters.split(' ');
    if (wanted.length > 0 && !wanted.some((letter) => letters.includes(letter))) continue;
    process.stderr.write(`${scenario.what} …\n`);
    try {
      const outcome = await scenario.run(environmentOptions);
      const load = loadavg().map((average) => average.toFixed(1));
      rows.push(...outcome.rows.map((each) => ({ ...each, load: load[0] ?? '-' })));
      launchers.push(...outcome.launchers);
      loops.push(...outcome.eventLoops);
    } catch (error) {
      // The remaining scenarios are still measured.
      process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
      process.exitCode = 1;
    }
  }
  rows.push(...launcherRows(launchers), ...eventLoopRows(loops));
  process.stdout.write(`\nZooKeeper's data in ${environmentOptions.dataFolder}\n\n${renderTable(rows)}\n`);
}

function launcherRows(launchers: readonly LauncherFacts[]): Row[] {
  if (launchers.length === 0) return [];
  const memory = Math.max(...launchers.map((facts) => facts.peakResidentBytes));
  return [row('f  launcher, most memory resident in any of these', memory, 150 * MEBIBYTE, mebibytes, '-')];
}

/** Returns rows with the worst delays, which name their measurements, and a row of each measurement. */
function eventLoopRows(loops: readonly MeasuredLoop[]): Row[] {
  const worst = (title: string, of: 'p99' | 'max' | 'busiest', target: number | undefined): Row[] => {
    const [first] = [...loops].sort((a, b) => b[of] - a[of]);
    return first === undefined ? [] : [row(`${title} (${first.what})`, first[of], target, milliseconds, '-')];
  };
  return [
    ...worst('i  delay of the event loop, worst p99', 'p99', 50),
    ...worst('   … longest', 'max', 150),
    ...worst('   … processor time of the longest turn', 'busiest', 150),
    ...loops.map(({ what, p99, max, busiest }) => {
      const measured = [p99, max, busiest].map((ms) => ms.toFixed(0)).join(', ');
      return row(`   … p99, longest, longest turn: ${what}`, NaN, undefined, () => `${measured} ms`, '-');
    }),
  ];
}

function dataFolder(option: string): string {
  if (option === 'disk') return tmpdir();
  if (option === 'memory') return '/dev/shm';
  throw new Error(`--data is memory or disk, not "${option}"`);
}

main().catch((error: unknown) => {
  process.stderr.write(`${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`);
  process.exitCode = 1;
});

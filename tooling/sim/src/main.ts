/** Implements `pnpm sim`: runs seeds on all processors until one fails, or replays one step by step. */

import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { runCommandLine, UsageError } from '@nodepool/harness';
import { simulateBridges } from './github/simulate-bridges.js';
import { KNOWN_GAPS } from './known-gaps.js';
import { runSeeds } from './run-seeds.js';
import { simulate, type RunResult } from './simulate.js';

const HELP = `usage: pnpm sim [--seeds N] [--seed S] [--steps] [--strict] [--keep-going] [--workers N] [--bridges]
  --seeds N     run N seeds, from S on or from 1 (default 100)
  --seed S      the first seed; without --seeds, the only one
  --steps       print every step of the only seed
  --strict      rules that are known not to hold yet must hold, too
  --keep-going  do not stop at the first seed that fails
  --bridges     run bridges for GitHub Actions, with faults of their own
  --workers N   processes that run seeds (default: as many as there are processors)
  --help        this text

Exit status: 0 all rules held, 1 one did not, 2 wrong usage. More in docs/simulation.md.

Example:
  $ pnpm sim --seed 42 --steps
`;

/** Interval between progress reports, in seeds. */
const PROGRESS_EVERY = 10;

interface Wanted {
  readonly first: number;
  readonly count: number;
  readonly steps: boolean;
  readonly keepGoing: boolean;
  readonly workers: number;
  readonly without: readonly string[];
  readonly bridges: boolean;
}

async function main(): Promise<void> {
  const wanted = read();
  if (wanted === undefined) {
    process.stdout.write(HELP);
    return;
  }
  process.exitCode = wanted.count === 1 ? await replay(wanted) : await runAll(wanted);
}

/** Runs the seed in this process, so that it can be debugged. */
async function replay({ first: seed, steps, without, bridges }: Wanted): Promise<number> {
  const options = { seed, without: new Set(without), ...(steps ? { onStep: printLine } : {}) };
  const result = await (bridges ? simulateBridges(options) : simulate(options));
  if (result.violation === undefined) printLine(`seed ${seed}: all rules held in ${result.steps} steps`);
  else tell(result, !steps, bridges);
  return result.violation === undefined ? 0 : 1;
}

async function runAll(wanted: Wanted): Promise<number> {
  let done = 0;
  let failed = 0;
  await runSeeds(wanted, (result) => {
    done += 1;
    if (result.violation !== undefined) {
      failed += 1;
      tell(result, true, wanted.bridges);
    }
    if (done % PROGRESS_EVERY === 0 || done === wanted.count) {
      process.stderr.write(`${done} of ${wanted.count} seeds, ${failed} failed\n`);
    }
  });
  return failed === 0 ? 0 : 1;
}

/** Returns undefined if the help is wanted. */
function read(): Wanted | undefined {
  const { values } = parseArgs({
    options: {
      seeds: { type: 'string' },
      seed: { type: 'string' },
      steps: { type: 'boolean', default: false },
      strict: { type: 'boolean', default: false },
      'keep-going': { type: 'boolean', default: false },
      workers: { type: 'string' },
      bridges: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) return undefined;
  const first = integer('--seed', values.seed ?? '1', 0);
  const count = integer('--seeds', values.seeds ?? (values.seed === undefined ? '100' : '1'), 1);
  const workers = integer('--workers', values.workers ?? String(availableParallelism()), 1);
  const without = values.strict ? [] : [...KNOWN_GAPS];
  return {
    first,
    count,
    workers,
    bridges: values.bridges,
    steps: values.steps,
    keepGoing: values['keep-going'],
    without,
  };
}

function integer(option: string, text: string, least: number): number {
  const value = Number(text);
  if (text.trim() !== '' && Number.isInteger(value) && value >= least) return value;
  throw new UsageError(`${option} must be an integer of at least ${least}, not ${JSON.stringify(text)}`);
}

function tell({ seed, violation, lastSteps }: RunResult, withSteps: boolean, bridges: boolean): void {
  if (violation === undefined) return;
  if (withSteps) for (const step of lastSteps) printLine(step);
  printLine(`seed ${seed}: rule ${violation.rule} does not hold at ${violation.at} ms: ${violation.what}`);
  printLine(`replay it with: pnpm sim --seed ${seed} --steps${bridges ? ' --bridges' : ''}`);
}

function printLine(line: string): void {
  process.stdout.write(`${line}\n`);
}

runCommandLine(HELP, main);

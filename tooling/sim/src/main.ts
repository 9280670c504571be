/** Implements `pnpm sim`: runs seeds on all processors until one fails, or replays one step by step. */

import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { runCommandLine, UsageError } from '@nodepool/harness';
import { simulateBridges } from './github/simulate-bridges.js';
import { KNOWN_GAPS } from './known-gaps.js';
import { runSeeds } from './run-seeds.js';
import { RUN_KINDS, type RunKind } from './run-kinds.js';
import { simulate, type RunResult } from './simulate.js';

const HELP = `usage: pnpm sim [--seeds N] [--seed S] [--kind K] [--bridges] [--steps] [--strict] [--keep-going]
                [--workers N]
  --seeds N     run N seeds, from S on or from 1 (default 100)
  --seed S      the first seed; without --seeds, the only one
  --kind K      kind of the runs: ${RUN_KINDS.join(', ')}
                (default all, which has no backing nodes and no image tests); docs/simulation.md describes the kinds
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
  readonly kind: RunKind;
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
async function replay({ first: seed, kind, steps, without, bridges }: Wanted): Promise<number> {
  const options = { seed, without: new Set(without), ...(steps ? { onStep: printLine } : {}) };
  const result = await (bridges ? simulateBridges(options) : simulate({ ...options, fault: kind }));
  if (result.violation === undefined) printLine(`seed ${seed}: all rules held in ${result.steps} steps`);
  else tell(result, selection(kind, bridges), !steps);
  return result.violation === undefined ? 0 : 1;
}

async function runAll(wanted: Wanted): Promise<number> {
  let done = 0;
  let failed = 0;
  await runSeeds(wanted, (result) => {
    done += 1;
    if (result.violation !== undefined) {
      failed += 1;
      tell(result, selection(wanted.kind, wanted.bridges), true);
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
      kind: { type: 'string', default: 'all' },
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
    kind: kindOf(values.kind),
    bridges: values.bridges,
    workers,
    steps: values.steps,
    keepGoing: values['keep-going'],
    without,
  };
}

function kindOf(text: string): RunKind {
  const kind = RUN_KINDS.find((each) => each === text);
  if (kind !== undefined) return kind;
  throw new UsageError(`--kind must be one of ${RUN_KINDS.join(', ')}, not ${JSON.stringify(text)}`);
}

function integer(option: string, text: string, least: number): number {
  const value = Number(text);
  if (text.trim() !== '' && Number.isInteger(value) && value >= least) return value;
  throw new UsageError(`${option} must be an integer of at least ${least}, not ${JSON.stringify(text)}`);
}

/** Returns the options that select the kind of the runs. */
function selection(kind: RunKind, bridges: boolean): string {
  if (bridges) return '--bridges ';
  return kind === 'all' ? '' : `--kind ${kind} `;
}

function tell({ seed, violation, lastSteps }: RunResult, selected: string, withSteps: boolean): void {
  if (violation === undefined) return;
  if (withSteps) for (const step of lastSteps) printLine(step);
  printLine(`seed ${seed}: rule ${violation.rule} does not hold at ${violation.at} ms: ${violation.what}`);
  printLine(`replay it with: pnpm sim ${selected}--seed ${seed} --steps`);
}

function printLine(line: string): void {
  process.stdout.write(`${line}\n`);
}

runCommandLine(HELP, main);

/** Implements `pnpm sim`: runs seeds on all processors until one fails, or replays one step by step. */

import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { runCommandLine, UsageError } from '@nodepool/harness';
import { KNOWN_GAPS } from './known-gaps.js';
import { runSeeds } from './run-seeds.js';
import { RUN_KINDS, type RunKind } from './run-kinds.js';
import { simulate, type RunResult } from './simulate.js';

const HELP = `usage: pnpm sim [--seeds N] [--seed S] [--kind K] [--steps] [--strict] [--keep-going] [--workers N]
  --seeds N     run N seeds, from S on or from 1 (default 100)
  --seed S      the first seed; without --seeds, the only one
  --kind K      kind of the runs: ${RUN_KINDS.join(', ')}
                (default all, which has no backing nodes and no image tests); docs/simulation.md describes the kinds
  --steps       print every step of the only seed
  --strict      rules that are known not to hold yet must hold, too
  --keep-going  do not stop at the first seed that fails
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
async function replay({ first: seed, kind, steps, without }: Wanted): Promise<number> {
  const options = { seed, fault: kind, without: new Set(without) };
  const result = await simulate({ ...options, ...(steps ? { onStep: printLine } : {}) });
  if (result.violation === undefined) printLine(`seed ${seed}: all rules held in ${result.steps} steps`);
  else tell(result, kind, !steps);
  return result.violation === undefined ? 0 : 1;
}

async function runAll(wanted: Wanted): Promise<number> {
  let done = 0;
  let failed = 0;
  await runSeeds(wanted, (result) => {
    done += 1;
    if (result.violation !== undefined) {
      failed += 1;
      tell(result, wanted.kind, true);
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

function tell({ seed, violation, lastSteps }: RunResult, kind: RunKind, withSteps: boolean): void {
  if (violation === undefined) return;
  if (withSteps) for (const step of lastSteps) printLine(step);
  printLine(`seed ${seed}: rule ${violation.rule} does not hold at ${violation.at} ms: ${violation.what}`);
  printLine(`replay it with: pnpm sim ${kind === 'all' ? '' : `--kind ${kind} `}--seed ${seed} --steps`);
}

function printLine(line: string): void {
  process.stdout.write(`${line}\n`);
}

runCommandLine(HELP, main);

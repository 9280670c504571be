/** `pnpm sim`: runs seeds until one fails, or replays one step by step. */

import { parseArgs } from 'node:util';
import { KNOWN_GAPS } from './known-gaps.js';
import { simulate, type RunResult } from './simulate.js';

const USAGE = `usage: pnpm sim [--seeds N] [--seed S] [--steps] [--strict] [--keep-going]
  --seeds N     run N seeds, from S on or from 1 (default 100)
  --seed S      the first seed; without --seeds, the only one
  --steps       print every step
  --strict      rules that are known not to hold yet must hold, too
  --keep-going  do not stop at the first seed that fails
`;

interface Wanted {
  readonly first: number;
  readonly count: number;
  readonly steps: boolean;
  readonly keepGoing: boolean;
  readonly without: ReadonlySet<string>;
}

async function main(): Promise<number> {
  const wanted = read();
  if (wanted === undefined) {
    process.stderr.write(USAGE);
    return 2;
  }
  const failures: RunResult[] = [];
  for (let seed = wanted.first; seed < wanted.first + wanted.count; seed += 1) {
    const result = await simulate({ seed, without: wanted.without, ...(wanted.steps ? { onStep: printLine } : {}) });
    if (result.violation === undefined) {
      if (wanted.count === 1) printLine(`seed ${seed}: all rules held in ${result.steps} steps`);
    } else {
      failures.push(result);
      tell(result, !wanted.steps);
      if (!wanted.keepGoing) break;
    }
    progress(seed - wanted.first + 1, wanted.count, failures.length);
  }
  return failures.length === 0 ? 0 : 1;
}

function read(): Wanted | undefined {
  try {
    const { values } = parseArgs({
      options: {
        seeds: { type: 'string' },
        seed: { type: 'string' },
        steps: { type: 'boolean', default: false },
        strict: { type: 'boolean', default: false },
        'keep-going': { type: 'boolean', default: false },
      },
    });
    const first = Number(values.seed ?? 1);
    const count = Number(values.seeds ?? (values.seed === undefined ? 100 : 1));
    if (!Number.isInteger(first) || !Number.isInteger(count) || count < 1) return undefined;
    const without = values.strict ? new Set<string>() : KNOWN_GAPS;
    return { first, count, steps: values.steps, keepGoing: values['keep-going'], without };
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
    return undefined;
  }
}

function tell({ seed, violation, lastSteps }: RunResult, withSteps: boolean): void {
  if (violation === undefined) return;
  if (withSteps) for (const step of lastSteps) printLine(step);
  printLine(`seed ${seed}: rule ${violation.rule} does not hold at ${violation.at} ms: ${violation.what}`);
  printLine(`replay it with: pnpm sim --seed ${seed} --steps`);
}

function progress(done: number, of: number, failed: number): void {
  if (of === 1 || (done % 10 !== 0 && done !== of)) return;
  process.stderr.write(`${done} of ${of} seeds, ${failed} failed\n`);
}

function printLine(line: string): void {
  process.stdout.write(`${line}\n`);
}

main().then(
  (code) => (process.exitCode = code),
  (error: unknown) => {
    process.stderr.write(
      `the simulation itself failed: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`,
    );
    process.exitCode = 1;
  },
);

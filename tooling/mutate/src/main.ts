/** Implements `pnpm mutate`: applies the defects one by one, and runs the tests that should see them. */

import { readFile, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { interruption, runCommandLine, UsageError } from '@nodepool/harness';
import { MUTATIONS } from './mutations/index.js';
import type { Mutation } from './mutation.js';
import { MisfitError, placesOf } from './places.js';
import { insertNumbers, isExpected } from './report.js';
import { ResultsFile } from './results-file.js';
import { runMutation, type MutationResult } from './run-mutation.js';

const HELP = `Usage: pnpm mutate [options] [ID...]

Applies deliberate defects to the sources, one at a time and without changing a file, and runs the tests that should
see them, until the first one fails. Without ids, all defects.

  --part FOLDER    only defects of this folder, e.g. packages/core; repeatable
  --jobs N         number of defects at a time (default 1)
  --limit SECONDS  stop a test file after this time, or later on a busy machine; it counts as failed if it ends without
                   the defect (default 300)
  --results FILE   continue an interrupted run: add each result to FILE, and repeat those only that are unexpected,
                   or whose sources or tests have changed since; defects named by their ids are always repeated
  --list           print the defects without running tests
  --check          only check that each defect fits the sources, that its tests exist, and the numbers of
                   defects in docs/development.md
  --output         print the output of tests that see nothing
  --write          only write the numbers of defects to docs/development.md
  --help           this text

Exit status: 0 every defect is seen, except those with a reason; 1 otherwise, 2 wrong usage.

Example:
  $ pnpm mutate --part packages/driver-gce
  $ pnpm mutate --results mutations.jsonl
`;

const ROOT = resolve(__dirname, '..', '..', '..');
const PAGE = join(ROOT, 'docs', 'development.md');

interface Selection {
  readonly mutations: readonly Mutation[];
  readonly jobs: number;
  readonly limitMs: number;
  /** Path of the file of results. */
  readonly results: string | undefined;
  /** Results of the file are not used. */
  readonly repeat: boolean;
  readonly list: boolean;
  readonly check: boolean;
  readonly output: boolean;
  readonly write: boolean;
}

async function main(): Promise<void> {
  const selection = readArguments();
  if (selection === undefined) {
    process.stdout.write(HELP);
    return;
  }
  if (selection.list) {
    for (const { id, file, breaks } of selection.mutations) process.stdout.write(`${id}  ${file}  ${breaks}\n`);
    return;
  }
  if (selection.write) {
    await writeFile(PAGE, insertNumbers(await readFile(PAGE, 'utf8'), MUTATIONS));
    return;
  }
  checkAll(selection.mutations);
  if (selection.check) {
    const page = await readFile(PAGE, 'utf8');
    if (insertNumbers(page, MUTATIONS) !== page)
      throw new Error(`the numbers of defects in ${PAGE} are outdated; use --write`);
    return;
  }
  const results = await runAll(selection);
  const unexpected = results.filter((result) => !isExpected(result));
  process.stdout.write(`\n${results.length - unexpected.length} of ${results.length} as expected\n`);
  if (unexpected.length > 0) process.exitCode = 1;
}

function readArguments(): Selection | undefined {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      part: { type: 'string', multiple: true },
      jobs: { type: 'string', default: '1' },
      limit: { type: 'string', default: '300' },
      results: { type: 'string' },
      list: { type: 'boolean', default: false },
      check: { type: 'boolean', default: false },
      output: { type: 'boolean', default: false },
      write: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) return undefined;
  const unknown = positionals.filter((id) => !MUTATIONS.some((mutation) => mutation.id === id));
  if (unknown.length > 0) throw new UsageError(`there is no defect ${unknown.join(', ')}; --list prints them`);
  const parts = values.part ?? [];
  const mutations = MUTATIONS.filter(
    ({ id, file }) =>
      (positionals.length === 0 || positionals.includes(id)) &&
      (parts.length === 0 || parts.some((part) => file.startsWith(`${part.replace(/\/$/, '')}/`))),
  );
  if (mutations.length === 0) throw new UsageError(`there is no defect in ${parts.join(', ')}; --list prints all`);
  return {
    mutations,
    jobs: positive('--jobs', values.jobs),
    limitMs: positive('--limit', values.limit) * 1000,
    results: values.results,
    repeat: positionals.length > 0,
    list: values.list,
    check: values.check,
    output: values.output,
    write: values.write,
  };
}

function positive(option: string, text: string): number {
  const value = Number(text);
  if (Number.isInteger(value) && value > 0) return value;
  throw new UsageError(`${option}: expected a whole number above 0, found ${JSON.stringify(text)}`);
}

/** Prints the files that have been moved. Throws if a defect does not fit the sources. */
function checkAll(mutations: readonly Mutation[]): void {
  const problems: string[] = [];
  for (const mutation of mutations) {
    try {
      for (const moved of placesOf(mutation, ROOT).moved) process.stdout.write(`${mutation.id}: ${moved}\n`);
    } catch (error) {
      if (!(error instanceof MisfitError)) throw error;
      problems.push(error.message);
    }
  }
  if (problems.length > 0) throw new Error(problems.join('\n'));
}

async function runAll(selection: Selection): Promise<readonly MutationResult[]> {
  const { mutations, jobs, limitMs, output, repeat } = selection;
  const signal = interruption();
  const file = selection.results === undefined ? undefined : ResultsFile.read(resolve(selection.results), ROOT);
  const earlier = repeat ? [] : mutations.flatMap((mutation) => file?.find(mutation) ?? []);
  const results = earlier.filter(isExpected);
  const known = new Set(results.map(({ mutation }) => mutation));
  const left = mutations.filter((mutation) => !known.has(mutation));
  const work = async (): Promise<void> => {
    for (let mutation = left.shift(); mutation !== undefined; mutation = left.shift()) {
      const result = await runMutation(mutation, { root: ROOT, limitMs, signal });
      results.push(result);
      await file?.add(result);
      process.stdout.write(`${lineOf(result, results.length, mutations.length)}\n`);
      if (output && result.seenBy === undefined) process.stdout.write(`${result.output}\n`);
    }
  };
  await Promise.all(Array.from({ length: jobs }, work));
  return results;
}

function lineOf(result: MutationResult, count: number, total: number): string {
  const { mutation, seenBy, stopped, failedTest } = result;
  const how = stopped ? ', which does not end' : failedTest === undefined ? '' : `: ${failedTest}`;
  const outcome = seenBy === undefined ? 'SURVIVES' : `seen by ${seenBy}${how}`;
  const seconds = Math.round(result.ms / 1000);
  return `[${count}/${total}] ${mutation.id} (${seconds} s)${isExpected(result) ? '' : ' UNEXPECTED'}: ${outcome}`;
}

runCommandLine(HELP, main);

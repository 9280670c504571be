/** Implements `pnpm mutate`: applies the defects one by one, and runs the tests that should see them. */

import { readFile, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { runCommandLine, UsageError } from '@nodepool/harness';
import { MUTATIONS } from './mutations/index.js';
import type { Mutation } from './mutation.js';
import { isExpected, markdown } from './report.js';
import { ResultsFile } from './results-file.js';
import { runMutation, type MutationResult } from './run-mutation.js';

const HELP = `Usage: pnpm mutate [options] [ID...]

Applies deliberate defects to the sources, one at a time and without changing a file, and runs the tests that should
see them. Without ids, all defects.

  --part FOLDER    only defects of this folder, e.g. packages/core; repeatable
  --jobs N         number of defects at a time (default 1)
  --limit SECONDS  stop a test file, or the tests of a package, after this time; it counts as failed (default 600)
  --results FILE   read the defects that tests have seen from FILE, run the others only, and add their results
  --list           print the defects without running tests
  --output         print the output of tests that see nothing
  --write          write the table to docs/development.md
  --help           this text

Exit status: 0 every defect is seen, except those with a reason; 1 otherwise, 2 wrong usage.

Example:
  $ pnpm mutate --part packages/driver-gce
  $ pnpm mutate --results /tmp/mutations.jsonl --write
`;

const ROOT = resolve(__dirname, '..', '..', '..');
const PAGE = join(ROOT, 'docs', 'development.md');
const BEGIN = '<!-- generated: mutations -->';
const END = '<!-- /generated -->';

interface Selection {
  readonly mutations: readonly Mutation[];
  readonly jobs: number;
  readonly limitMs: number;
  /** Path of the file of results. */
  readonly results: string | undefined;
  readonly list: boolean;
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
  const results = await runAll(selection);
  const unexpected = results.filter((result) => !isExpected(result));
  process.stdout.write(`\n${results.length - unexpected.length} of ${results.length} as expected\n`);
  if (selection.write) await writeTable(markdown(results));
  if (unexpected.length > 0) process.exitCode = 1;
}

function readArguments(): Selection | undefined {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      part: { type: 'string', multiple: true },
      jobs: { type: 'string', default: '1' },
      limit: { type: 'string', default: '600' },
      results: { type: 'string' },
      list: { type: 'boolean', default: false },
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
  if (values.write && mutations.length < MUTATIONS.length) throw new UsageError('--write needs all defects');
  return {
    mutations,
    jobs: positive('--jobs', values.jobs),
    limitMs: positive('--limit', values.limit) * 1000,
    results: values.results,
    list: values.list,
    output: values.output,
    write: values.write,
  };
}

function positive(option: string, text: string): number {
  const value = Number(text);
  if (Number.isInteger(value) && value > 0) return value;
  throw new UsageError(`${option}: expected a whole number above 0, found ${JSON.stringify(text)}`);
}

async function runAll(selection: Selection): Promise<readonly MutationResult[]> {
  const { mutations, jobs, limitMs, output } = selection;
  const file = selection.results === undefined ? undefined : await ResultsFile.read(selection.results);
  const results = mutations.flatMap((mutation) => file?.find(mutation) ?? []);
  const known = new Set(results.map(({ mutation }) => mutation));
  const left = mutations.filter((mutation) => !known.has(mutation));
  const work = async (): Promise<void> => {
    for (let mutation = left.shift(); mutation !== undefined; mutation = left.shift()) {
      const result = await runMutation(mutation, { root: ROOT, limitMs });
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
  const { mutation, seenBy, stopped } = result;
  const how = stopped ? ', whose tests did not end' : '';
  const outcome = seenBy === undefined ? 'SURVIVES' : `seen by ${seenBy}${how}`;
  return `[${count}/${total}] ${mutation.id}: ${outcome}${isExpected(result) ? '' : ' (unexpected)'}`;
}

async function writeTable(table: string): Promise<void> {
  const text = await readFile(PAGE, 'utf8');
  const [begin, end] = [text.indexOf(BEGIN), text.indexOf(END, text.indexOf(BEGIN))];
  if (begin < 0 || end < 0) throw new Error(`${PAGE} lacks ${BEGIN} … ${END}`);
  await writeFile(PAGE, `${text.slice(0, begin + BEGIN.length)}\n\n${table}\n\n${text.slice(end)}`);
}

runCommandLine(HELP, main);

/** The table of the results, for the documentation. */

import { packageOf } from './places.js';
import type { MutationResult } from './run-mutation.js';

/** Returns true if the result is the expected one. */
export function isExpected({ mutation, seenBy }: MutationResult): boolean {
  return (seenBy !== undefined) === (mutation.survives === undefined);
}

/** Returns a table with a row per package, the duration of all tests, and a list of the defects that no test sees. */
export function markdown(results: readonly MutationResult[]): string {
  const parts = new Map<string, { total: number; seen: number }>();
  for (const { mutation, seenBy } of results) {
    const part = packageOf(mutation.file);
    const { total, seen } = parts.get(part) ?? { total: 0, seen: 0 };
    parts.set(part, { total: total + 1, seen: seen + (seenBy === undefined ? 0 : 1) });
  }
  const rows = [...parts].toSorted(([a], [b]) => (a < b ? -1 : 1));
  const table = [
    '| package | defects | seen by tests |',
    '| --- | --- | --- |',
    ...rows.map(([part, { total, seen }]) => `| \`${part}\` | ${total} | ${seen} |`),
    `| all | ${results.length} | ${results.filter(({ seenBy }) => seenBy !== undefined).length} |`,
  ];
  const minutes = Math.ceil(results.reduce((sum, { ms }) => sum + ms, 0) / 60_000);
  const survivors = results.filter(({ seenBy }) => seenBy === undefined).toSorted(byFile);
  const list = survivors.map(
    ({ mutation: { breaks, file, survives = 'a test is missing' } }) => `- ${breaks} (\`${file}\`): ${survives}`,
  );
  return [
    ...table,
    '',
    `The tests of the last run of each defect took ${minutes} minutes together.`,
    '',
    ...(list.length === 0 ? ['Tests see all of them.'] : ['Not seen:', '', ...list]),
  ].join('\n');
}

function byFile(a: MutationResult, b: MutationResult): number {
  return a.mutation.file < b.mutation.file ? -1 : 1;
}

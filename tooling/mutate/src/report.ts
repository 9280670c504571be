/** Expected results, and the numbers of the defects for the documentation. */

import type { Mutation } from './mutation.js';
import { packageOf } from './places.js';
import type { MutationResult } from './run-mutation.js';

const BEGIN = '<!-- generated: mutations -->';
const END = '<!-- /generated -->';

/** Returns true if the result is the expected one. */
export function isExpected({ mutation, seenBy }: MutationResult): boolean {
  return (seenBy !== undefined) === (mutation.survives === undefined);
}

/** Returns the page with the numbers of the defects. Throws if the page has no place for them. */
export function insertNumbers(page: string, mutations: readonly Mutation[]): string {
  const [begin, end] = [page.indexOf(BEGIN), page.indexOf(END, page.indexOf(BEGIN))];
  if (begin < 0 || end < 0) throw new Error(`the page lacks ${BEGIN} … ${END}`);
  return `${page.slice(0, begin + BEGIN.length)}\n\n${numbersOf(mutations)}\n\n${page.slice(end)}`;
}

/** Returns a list in Markdown with a line per package, and one line for all drivers. */
function numbersOf(mutations: readonly Mutation[]): string {
  const areas = new Map<string, Mutation[]>();
  for (const mutation of mutations) {
    const area = `\`${packageOf(mutation.file).replace(/\/driver-.*/, '/driver-*')}\``;
    areas.set(area, [...(areas.get(area) ?? []), mutation]);
  }
  const sorted = [...areas].toSorted(([a], [b]) => (a < b ? -1 : 1));
  return [...sorted, ['together', mutations] as const].map(([area, own]) => lineOf(area, own)).join('\n');
}

function lineOf(area: string, mutations: readonly Mutation[]): string {
  const accepted = mutations.filter(({ survives }) => survives !== undefined).length;
  return `- ${area}: ${mutations.length}${accepted === 0 ? '' : `, ${accepted} of them without a test`}`;
}

/** Filters, facets, order and parts of long lists, in one pass over the records. */

import type { Facet, Paging } from '../client/model.js';
import { shortened } from './sources.js';
import { SHORT } from './texts.js';
import type { Filter, Parameters } from './parameters.js';

const MAX_FACET_VALUES = 100;

export interface ListDefinition<R> {
  /** Returns the values of a record by filter, except for `q`. */
  readonly values: Readonly<Partial<Record<Filter, (record: R) => readonly string[]>>>;
  /** Texts that `q` searches. */
  readonly texts: (record: R) => readonly (string | null)[];
  /** Keys of the order by name. */
  readonly sorts: Readonly<Record<string, (record: R) => string | number>>;
}

export interface Selection<R> {
  readonly records: readonly R[];
  readonly paging: Paging;
  /** The values of each filter in the records that all other filters admit. */
  readonly facets: ReadonlyMap<Filter, Facet>;
}

/** Selects a part of the records, which are in the list's own order. */
export function select<R>(
  records: Iterable<R>,
  { values, texts, sorts }: ListDefinition<R>,
  { filters, sort, offset, limit }: Parameters,
): Selection<R> {
  const named = Object.entries(values) as [Filter, (record: R) => readonly string[]][];
  const counts = new Map(named.map(([filter]) => [filter, new Map<string, number>()]));
  // Several states are separated by commas; other names can contain commas.
  const wantedBy = new Map(
    named.map(([filter]) => [filter, filter === 'state' ? filters[filter]?.split(',') : wrapped(filters[filter])]),
  );
  const search = filters.q?.toLowerCase();
  const matching: R[] = [];
  for (const record of records) {
    if (search !== undefined && !texts(record).some((text) => text?.toLowerCase().includes(search) === true)) continue;
    const found = named.map(([filter, of]) => ({ filter, has: of(record) }));
    const failing = found.filter(({ filter, has }) => {
      const wanted = wantedBy.get(filter);
      return wanted !== undefined && !has.some((value) => wanted.includes(value));
    });
    for (const { filter, has } of found) {
      // A facet counts the records that the choice of each value would show.
      if (failing.some((other) => other.filter !== filter)) continue;
      const sums = counts.get(filter);
      for (const value of has) sums?.set(value, (sums.get(value) ?? 0) + 1);
    }
    if (failing.length === 0) matching.push(record);
  }
  const ordered = sort === undefined ? matching : sorted(matching, sorts, sort);
  // Shows the last page if there are now fewer rows.
  const first = Math.min(offset, Math.max(0, Math.floor((ordered.length - 1) / Math.max(limit, 1)) * limit));
  return {
    records: ordered.slice(first, first + limit),
    paging: { matching: matching.length, offset: first, limit },
    facets: new Map([...counts].map(([filter, sums]) => [filter, facetOf(sums)])),
  };
}

function wrapped(value: string | undefined): readonly string[] | undefined {
  return value === undefined ? undefined : [value];
}

function sorted<R>(records: readonly R[], sorts: ListDefinition<R>['sorts'], sort: string): R[] {
  const keyOf = sorts[sort.replace(/^-/u, '')];
  if (keyOf === undefined) return [...records];
  const direction = sort.startsWith('-') ? -1 : 1;
  return records
    .map((record) => ({ record, key: keyOf(record) }))
    .sort((a, b) => (a.key < b.key ? -direction : a.key > b.key ? direction : 0))
    .map(({ record }) => record);
}

function facetOf(counts: ReadonlyMap<string, number>): Facet {
  return [...counts]
    .sort(([a, m], [b, n]) => n - m || (a < b ? -1 : 1))
    .slice(0, MAX_FACET_VALUES)
    .map(([value, count]) => ({ value: shortened(value, SHORT), count }));
}

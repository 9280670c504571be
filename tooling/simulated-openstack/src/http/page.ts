/** Pagination of listings: `limit`, `marker`, and the link to the next page. */

import type { OpenStackRequest } from './request-context.js';

export interface PageOptions {
  /** Page size if the caller specifies none. */
  readonly defaultLimit: number;
  /** Maximum page size. */
  readonly maxLimit: number;
  /** Returns the error for a marker that is not in the listing. */
  readonly unknownMarker: (marker: string) => Error;
}

export interface Page<R> {
  readonly items: readonly R[];
  /** Query of the next page without its question mark; undefined for the last page. */
  readonly next: string | undefined;
}

/**
 * Returns the page of a sorted listing for `limit` and `marker`. A full page always has a next one, which may be empty.
 */
export function pageOf<R extends { readonly id: string }>(
  sorted: readonly R[],
  { query }: OpenStackRequest,
  options: PageOptions,
): Page<R> {
  const marker = query.get('marker');
  const start = marker === null ? 0 : sorted.findIndex(({ id }) => id === marker) + 1;
  if (marker !== null && start === 0) throw options.unknownMarker(marker);
  const asked = query.get('limit');
  const limit = Math.min(asked === null ? options.defaultLimit : Number(asked), options.maxLimit);
  const items = sorted.slice(start, start + limit);
  const last = items.at(-1);
  if (last === undefined || items.length < limit) return { items, next: undefined };
  const next = new URLSearchParams(query);
  next.delete('marker');
  if (asked === null) next.delete('limit');
  next.append('marker', last.id);
  return { items, next: next.toString() };
}

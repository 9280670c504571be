/** The parameters of a document: the name of its subject, and the checked query of a list. */

import { BadQueryError } from '@nodepool/daemon/web';

export interface Parameters {
  /** Id or name of the subject; '' for a list. */
  readonly id: string;
  /** Filters by name; an absent one admits everything. */
  readonly filters: Readonly<Partial<Record<Filter, string>>>;
  /** A column, with `-` in front for the descending order; undefined for the document's own order. */
  readonly sort: string | undefined;
  readonly offset: number;
  readonly limit: number;
}

export const FILTERS = ['state', 'provider', 'pool', 'label', 'requestor', 'q'] as const;
export type Filter = (typeof FILTERS)[number];

export interface ListParameters {
  readonly filters: readonly Filter[];
  readonly states: readonly string[];
  readonly sorts: readonly string[];
}

const MAX_LENGTH = 200;
const DEFAULT_LIMIT = 100;
const MAX_LIMIT = 1000;

/** Returns the checked parameters. Throws `BadQueryError`. */
export function readParameters(
  id: string,
  query: Readonly<Record<string, unknown>>,
  { filters, states, sorts }: ListParameters,
): Parameters {
  const known: readonly string[] = sorts.length === 0 ? [] : [...filters, 'sort', 'offset', 'limit'];
  const values = new Map<string, string>();
  for (const [name, value] of Object.entries(query)) {
    if (!known.includes(name)) {
      const choice = known.length === 0 ? 'this page has no parameters' : `known are ${known.join(', ')}`;
      throw new BadQueryError(`unknown parameter ${JSON.stringify(name.slice(0, 40))}; ${choice}`);
    }
    if (typeof value !== 'string') throw new BadQueryError(`${name}: given more than once`);
    if (value.length > MAX_LENGTH) throw new BadQueryError(`${name}: longer than ${MAX_LENGTH} characters`);
    if (value !== '') values.set(name, value);
  }
  const sort = values.get('sort');
  if (sort !== undefined && !sorts.includes(sort.replace(/^-/u, ''))) {
    throw new BadQueryError(`sort: not one of ${sorts.join(', ')}, each with - in front for the descending order`);
  }
  if (
    values
      .get('state')
      ?.split(',')
      .every((state) => states.includes(state)) === false
  ) {
    throw new BadQueryError(`state: not one or several of ${states.join(', ')}, with commas in between`);
  }
  const given = filters.flatMap((name) => {
    const value = values.get(name);
    return value === undefined ? [] : [[name, value] as const];
  });
  return {
    id,
    filters: Object.fromEntries(given),
    sort,
    offset: wholeNumber(values, 'offset', 0, Number.MAX_SAFE_INTEGER),
    limit: wholeNumber(values, 'limit', DEFAULT_LIMIT, MAX_LIMIT),
  };
}

function wholeNumber(values: ReadonlyMap<string, string>, name: string, otherwise: number, most: number): number {
  const text = values.get(name);
  if (text === undefined) return otherwise;
  const value = /^\d{1,15}$/u.test(text) ? Number(text) : NaN;
  if (!(value <= most)) throw new BadQueryError(`${name}: not a whole number from 0 to ${most}`);
  return value;
}

/** Filters and pages of EC2's lists. */

import type { Filter } from '@aws-sdk/client-ec2';
import { AwsError, invalidCombination, invalidValue } from '../protocol/aws-error.js';
import type { Resource } from './table.js';

/** Values of a resource by filter name; a resource fits a filter if one of its values does. */
export type Filterable<T> = Readonly<Record<string, (item: T) => string | undefined | readonly (string | undefined)[]>>;

const MAX_FILTER_VALUES = 200;
const MIN_PAGE = 5;
const MAX_PAGE = 1000;

/** Returns the items that fit all filters. Throws for an unknown filter. */
export function filtered<T extends { readonly tags: ReadonlyMap<string, string> }>(
  items: readonly T[],
  filters: readonly Filter[] | undefined,
  filterable: Filterable<T>,
): readonly T[] {
  return filteredBy(items, filters, filterable, ({ tags }) => tags);
}

/** Like `filtered`, for items without tags. */
export function filteredBy<T>(
  items: readonly T[],
  filters: readonly Filter[] | undefined,
  filterable: Filterable<T>,
  tagsOf?: (item: T) => ReadonlyMap<string, string>,
): readonly T[] {
  let left = items;
  for (const { Name: name = '', Values: values = [] } of filters ?? []) {
    if (values.length > MAX_FILTER_VALUES) {
      throw new AwsError(
        'FilterLimitExceeded',
        `The maximum number of filter values specified on a single call is 200.`,
      );
    }
    const patterns = values.map(patternOf);
    const valuesOf = accessor(name, filterable, tagsOf);
    left = left.filter((item) => valuesOf(item).some((value) => patterns.some((pattern) => pattern.test(value))));
  }
  return left;
}

function accessor<T>(
  name: string,
  filterable: Filterable<T>,
  tagsOf: ((item: T) => ReadonlyMap<string, string>) | undefined,
): (item: T) => readonly string[] {
  if (tagsOf !== undefined && name.startsWith('tag:')) {
    const key = name.slice('tag:'.length);
    return (item) => [tagsOf(item).get(key)].filter((value) => value !== undefined);
  }
  if (tagsOf !== undefined && name === 'tag-key') return (item) => [...tagsOf(item).keys()];
  const read = Object.hasOwn(filterable, name) ? filterable[name] : undefined;
  if (read === undefined) throw invalidValue(`The filter '${name}' is invalid`);
  return (item) => [read(item)].flat().filter((value) => value !== undefined);
}

/** Values may contain the wildcards `*` and `?`, and a backslash before characters that are none. */
function patternOf(value: string): RegExp {
  const source = value.replaceAll(/\\(.)|([*])|([?])|([.$^+()[\]{}|\\])/gs, (whole, escaped, star, one) => {
    if (star !== undefined) return '.*';
    if (one !== undefined) return '.';
    const literal = String(escaped ?? whole);
    return /\w/.test(literal) ? literal : `\\${literal}`;
  });
  return new RegExp(`^${source}$`, 's');
}

export interface Paging {
  readonly MaxResults?: number | undefined;
  readonly NextToken?: string | undefined;
}

export interface Page<T> {
  readonly items: readonly T[];
  readonly NextToken: string | undefined;
}

/** Returns a page of resources, oldest first. Changes between two pages neither repeat nor omit others. */
export function pageOf<T extends Resource>(items: readonly T[], paging: Paging, defaultSize: number): Page<T> {
  const after = positionIn(paging.NextToken);
  const rest = items.filter(({ order }) => order > after);
  const size = sizeOf(paging, defaultSize);
  const page = rest.slice(0, size);
  return { items: page, NextToken: rest.length > size ? tokenOf(page.at(-1)?.order ?? 0) : undefined };
}

/** Returns a page of a list that does not change. */
export function pageOfConstant<T>(items: readonly T[], paging: Paging, defaultSize: number): Page<T> {
  const start = positionIn(paging.NextToken) + 1;
  const end = start + sizeOf(paging, defaultSize);
  return { items: items.slice(start, end), NextToken: end < items.length ? tokenOf(end - 1) : undefined };
}

function sizeOf({ MaxResults: size }: Paging, defaultSize: number): number {
  if (size === undefined) return defaultSize;
  if (size < MIN_PAGE || size > MAX_PAGE) {
    throw invalidValue(`Value ( ${size} ) for parameter maxResults is invalid. Expecting a value of 5 to 1000.`);
  }
  return size;
}

function tokenOf(position: number): string {
  return Buffer.from(`after ${position}`).toString('base64url');
}

function positionIn(token: string | undefined): number {
  if (token === undefined || token === '') return -1;
  const position = /^after (\d+)$/.exec(Buffer.from(token, 'base64url').toString('latin1'))?.[1];
  if (position === undefined) throw new AwsError('InvalidNextToken', `The token '${token}' is invalid`);
  return Number(position);
}

/** Refuses pages of named resources, which EC2 does not have. */
export function refusePaging(ids: readonly string[] | undefined, { MaxResults }: Paging, set: string): void {
  if (ids === undefined || ids.length === 0 || MaxResults === undefined) return;
  throw invalidCombination(`The parameter ${set} cannot be used with the parameter maxResults`);
}

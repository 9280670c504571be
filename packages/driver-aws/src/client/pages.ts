/** Reads all pages of a list. */

import { DriverError } from '@nodepool/core';

interface Page<T> {
  readonly items: readonly T[];
  readonly next: string | undefined;
}

/** Maximum number of pages, above that of any account. A list with more never ends. */
const MAX_PAGES = 10_000;

export async function allPages<T>(read: (token: string | undefined) => Promise<Page<T>>): Promise<readonly T[]> {
  const all: T[] = [];
  let token: string | undefined;
  for (let page = 0; page < MAX_PAGES; page += 1) {
    const { items, next } = await read(token);
    all.push(...items);
    if (next === undefined || next === '') return all;
    token = next;
  }
  throw new DriverError('unexpected', `AWS returned more than ${MAX_PAGES} pages of a list`);
}

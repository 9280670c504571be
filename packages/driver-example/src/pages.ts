/** Listings that come in pages. */

import type { Page } from './cloud/types.js';

/**
 * All items of all pages. Rejects when one page fails: a listing must be complete, because what it lacks counts as gone.
 */
export async function allPages<T>(getPage: (marker: string | null) => Promise<Page<T>>): Promise<readonly T[]> {
  let page = await getPage(null);
  if (page.next === null) return page.items;
  const items = [...page.items];
  while (page.next !== null) {
    page = await getPage(page.next);
    items.push(...page.items);
  }
  return items;
}

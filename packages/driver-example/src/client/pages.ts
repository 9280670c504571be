import type { Page } from '../cloud/types.js';

/** Resolves with the items of all pages. Rejects if one page fails: an item that a list lacks counts as deleted. */
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

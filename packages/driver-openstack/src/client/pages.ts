/** Reads paginated lists. */

import { entriesAt, stringAt, TransientError, type Call, type JsonObject } from '@nodepool/core';
import { listOf } from './answers.js';
import { nameOf } from './caller.js';
import type { ApiRequest, Session } from './session.js';

/**
 * Returns each item of all pages once, although items are created and deleted meanwhile. Follows only the query of the
 * next link (`<key>_links` of nova, neutron and cinder; `next` of glance), because links may name unreachable hosts.
 * Rejects if a page fails: items missing from a list count as deleted.
 */
export async function allPages(
  session: Session,
  request: ApiRequest,
  key: string,
  call: Call,
): Promise<readonly JsonObject[]> {
  const items = new Map<string, JsonObject>();
  const [path = ''] = request.path.split('?');
  const read = new Set<string>();
  for (let next: string | undefined = request.path; next !== undefined;) {
    if (read.has(next)) throw new TransientError(`${nameOf(request)}: the pages of the list form a cycle`);
    read.add(next);
    const body: JsonObject = await session.requestJson({ ...request, path: next }, call);
    const page = listOf(body, key, nameOf(request));
    for (const item of page) items.set(stringAt(item, 'id') ?? `no id ${items.size}`, item);
    const query = page.length === 0 ? undefined : nextQuery(body, key);
    next = query === undefined ? undefined : path + query;
  }
  return [...items.values()];
}

function nextQuery(body: JsonObject, key: string): string | undefined {
  const link = entriesAt(body, `${key}_links`).find(({ section }) => stringAt(section, 'rel') === 'next');
  const href = stringAt(body, 'next') ?? (link === undefined ? undefined : stringAt(link.section, 'href'));
  if (href === undefined) return undefined;
  const start = href.indexOf('?');
  return start < 0 ? undefined : href.slice(start);
}

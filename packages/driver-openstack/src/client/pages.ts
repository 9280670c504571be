import type { Call, JsonObject } from '@nodepool/core';
import { entriesAt, isDriverError, nameOfCall, stringAt, TransientError } from '@nodepool/core';
import { UnknownPathError } from '../errors.js';
import { listOf } from './answers.js';
import type { ServiceRequest, Session } from './session.js';

/** The service has no such list. */
export class MissingListError extends TransientError {}

/**
 * Returns each item of all pages once, although items are created and deleted meanwhile. Follows only the query of the
 * next link (`<key>_links` of nova, neutron and cinder; `next` of glance), because links may name unreachable hosts.
 * Rejects if a page fails: items missing from a list count as deleted.
 */
export async function allPages(
  session: Session,
  request: ServiceRequest,
  key: string,
  call: Call,
): Promise<readonly JsonObject[]> {
  const items = new Map<string, JsonObject>();
  const [path = ''] = request.path.split('?');
  const read = new Set<string>();
  for (let next: string | undefined = request.path; next !== undefined;) {
    if (read.has(next)) throw new TransientError(`${nameOfCall(request)}: the pages of the list form a cycle`);
    read.add(next);
    const body = await pageAt(session, { ...request, path: next }, read.size > 1, call);
    const page = listOf(body, key, nameOfCall(request));
    for (const item of page) items.set(stringAt(item, 'id') ?? `no id ${items.size}`, item);
    const query = page.length === 0 ? undefined : nextQuery(body, key);
    next = query === undefined ? undefined : path + query;
  }
  return [...items.values()];
}

/** Texts of nova and glance for a page after a deleted item, with status 400. The other services answer 404. */
const UNKNOWN_MARKER = /marker \[.*\] not found|No image found with ID/;

/**
 * Reads a page. A 404 means that the service has no such list, or that the item before the page was deleted, but never
 * that an object of the caller is deleted.
 */
async function pageAt(session: Session, request: ServiceRequest, isLater: boolean, call: Call): Promise<JsonObject> {
  try {
    return await session.requestJson(request, call);
  } catch (error) {
    if (!isDriverError(error)) throw error;
    const lostItem = isLater && UNKNOWN_MARKER.test(error.message);
    if (!lostItem && error.code !== 'not-found' && !(error instanceof UnknownPathError)) throw error;
    const options = { cause: error, outcome: 'not-applied' } as const;
    throw isLater ? new TransientError(error.message, options) : new MissingListError(error.message, options);
  }
}

function nextQuery(body: JsonObject, key: string): string | undefined {
  const link = entriesAt(body, `${key}_links`).find(({ section }) => stringAt(section, 'rel') === 'next');
  const href = stringAt(body, 'next') ?? (link === undefined ? undefined : stringAt(link.section, 'href'));
  if (href === undefined) return undefined;
  const start = href.indexOf('?');
  return start < 0 ? undefined : href.slice(start);
}

/**
 * The requests that a pool could serve, in the order of service. Those that want the same are kept together: when there
 * is no room for the first of them, there is none for the others, and nobody has to look at them.
 */

import { compareRequests, MIN_READY_REQUESTOR, type NodeRequest, type RequestEntry } from '@nodepool/core';

/** Requests that want the same, sorted by `compareRequests`. */
export type Alike = readonly RequestEntry[];

export class WaitingRequests {
  private readonly groups = new Map<string, RequestEntry[]>();
  private readonly byId = new Map<string, RequestEntry>();

  get size(): number {
    return this.byId.size;
  }

  /** Adds the request, or moves it to where its priority now says. */
  put(entry: RequestEntry): void {
    this.remove(entry.id);
    this.byId.set(entry.id, entry);
    const key = keyOf(entry.request);
    const group = this.groups.get(key);
    if (group === undefined) this.groups.set(key, [entry]);
    else group.splice(position(group, entry), 0, entry);
  }

  /** False when it was not there. */
  remove(id: string): boolean {
    const entry = this.byId.get(id);
    if (entry === undefined) return false;
    this.byId.delete(id);
    const key = keyOf(entry.request);
    const group = this.groups.get(key);
    if (group === undefined) return true;
    if (group.length === 1) this.groups.delete(key);
    else group.splice(position(group, entry), 1);
    return true;
  }

  has(id: string): boolean {
    return this.byId.has(id);
  }

  /** The first in the order of service, of those that want something else than what is passed over. */
  first(passedOver?: ReadonlySet<Alike>): RequestEntry | undefined {
    let first: RequestEntry | undefined;
    for (const group of this.groups.values()) {
      const [entry] = group;
      if (entry === undefined || passedOver?.has(group) === true) continue;
      if (first === undefined || compareRequests(entry.request, first.request) < 0) first = entry;
    }
    return first;
  }

  /** All that want the same as this one, which is among them. */
  alike({ request }: RequestEntry): Alike {
    return this.groups.get(keyOf(request)) ?? [];
  }

  *[Symbol.iterator](): Iterator<RequestEntry> {
    yield* this.byId.values();
  }
}

/** The same for requests that need the same room, and could use the same nodes. */
function keyOf({ node_types: labels, tenant_name: tenant, reuse, requestor }: NodeRequest): string {
  const kind = requestor === MIN_READY_REQUESTOR ? 'min-ready' : 'demand';
  return [kind, String(reuse), tenant === null ? '' : `of ${tenant}`, ...labels].join('\n');
}

/** Index of the entry, or where it belongs. */
function position(group: readonly RequestEntry[], entry: RequestEntry): number {
  let low = 0;
  let high = group.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    const other = group[middle];
    if (other !== undefined && compareRequests(other.request, entry.request) < 0) low = middle + 1;
    else high = middle;
  }
  return low;
}

/**
 * Requests that no launcher works on, in classes: those of one class need the same, and the same pools can serve them, so
 * that a decision about the first of them holds for all. One per launcher, shared by all of its pools.
 */

import { compareRequests, MIN_READY_REQUESTOR, type NodeRequest } from '@nodepool/core';
import type { Change, NodeEntry, RequestEntry, Store } from '@nodepool/store';

/** Requests that are decided as one, in the order of service. */
export class RequestClass {
  readonly entries: RequestEntry[] = [];
  private latest: NodeRequest;

  constructor(
    readonly key: string,
    /** A lost request that has nodes already; a class of its own. */
    readonly begun: boolean,
    first: RequestEntry,
  ) {
    this.latest = first.request;
  }

  get first(): RequestEntry | undefined {
    return this.entries[0];
  }

  /** The first request; of an empty class the last one that it had. */
  get request(): NodeRequest {
    this.latest = this.entries[0]?.request ?? this.latest;
    return this.latest;
  }

  get labels(): readonly string[] {
    return this.latest.node_types;
  }
}

/** The order of service, of classes by their first requests. Lost requests that have nodes already come first. */
export function compareClasses(a: RequestClass, b: RequestClass): number {
  if (a.begun !== b.begun) return a.begun ? -1 : 1;
  return compareRequests(a.request, b.request);
}

export class OpenRequests {
  private readonly byKey = new Map<string, RequestClass>();
  private readonly byId = new Map<string, { readonly entry: RequestEntry; readonly of: RequestClass }>();
  /** In the hands of a pool of this launcher, or left alone for a while. */
  private readonly hidden = new Set<string>();
  private readonly unsubscribe: readonly (() => void)[];

  constructor(
    private readonly store: Pick<Store, 'requests' | 'nodes'>,
    /** Called when a class has another first request, or none. `sooner`: it comes before the one that was the first. */
    private readonly firstChanged: (of: RequestClass, sooner: boolean) => void,
  ) {
    const { requests, nodes } = store;
    this.unsubscribe = [
      requests.onChange(({ id }) => this.update(id)),
      nodes.onChange((change) => this.nodeChanged(change)),
    ];
    for (const { id } of requests.all()) this.update(id);
  }

  get classes(): Iterable<RequestClass> {
    return this.byKey.values();
  }

  get classCount(): number {
    return this.byKey.size;
  }

  /** Takes the request out until `show`. */
  hide(id: string): void {
    this.hidden.add(id);
    this.update(id);
  }

  show(id: string): void {
    this.hidden.delete(id);
    this.update(id);
  }

  stop(): void {
    for (const unsubscribe of this.unsubscribe) unsubscribe();
  }

  /** The nodes of a lost request decide how it goes on. */
  private nodeChanged({ before, after }: Change<NodeEntry>): void {
    const of = new Set([before?.node.allocated_to, after?.node.allocated_to]);
    for (const id of of) {
      if (typeof id !== 'string' || this.hidden.has(id)) continue;
      this.update(id);
      const known = this.byId.get(id);
      if (known?.of.begun === true) this.firstChanged(known.of, true);
    }
  }

  private update(id: string): void {
    const known = this.byId.get(id);
    const entry = this.hidden.has(id) ? undefined : this.store.requests.get(id);
    const isOpen =
      entry?.locked === false && (entry.request.state === 'requested' || entry.request.state === 'pending');
    if (!isOpen) {
      if (known !== undefined) this.remove(id, known);
      return;
    }
    const begun = this.store.nodes.allocatedTo(id).length > 0;
    const key = begun ? `begun\n${id}` : keyOf(entry.request);
    if (known?.entry === entry && known.of.key === key) return;
    if (known !== undefined) this.remove(id, known);
    this.add(id, entry, key, begun);
  }

  private add(id: string, entry: RequestEntry, key: string, begun: boolean): void {
    let of = this.byKey.get(key);
    if (of === undefined) {
      of = new RequestClass(key, begun, entry);
      this.byKey.set(key, of);
    }
    const at = position(of.entries, entry);
    of.entries.splice(at, 0, entry);
    this.byId.set(id, { entry, of });
    if (at === 0) this.firstChanged(of, true);
  }

  private remove(id: string, { entry, of }: { readonly entry: RequestEntry; readonly of: RequestClass }): void {
    this.byId.delete(id);
    const at = position(of.entries, entry);
    of.entries.splice(at, 1);
    if (of.entries.length === 0) this.byKey.delete(of.key);
    if (at === 0) this.firstChanged(of, false);
  }
}

/** The same for requests that need the same room, could use the same nodes and may be served by the same pools. */
function keyOf(request: NodeRequest): string {
  const { node_types, tenant_name, reuse, requestor, state, provider, declined_by } = request;
  const isMinReady = requestor === MIN_READY_REQUESTOR;
  return JSON.stringify([node_types, tenant_name, reuse, isMinReady, state, provider, declined_by]);
}

/** Index of the entry, or where it belongs. */
function position(entries: readonly RequestEntry[], entry: RequestEntry): number {
  let low = 0;
  let high = entries.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    const other = entries[middle];
    if (other !== undefined && compareRequests(other.request, entry.request) < 0) low = middle + 1;
    else high = middle;
  }
  return low;
}

/**
 * Requests that no launcher works on, grouped in classes. Requests of a class have the same needs and the same pools,
 * so a decision about the first of them applies to all.
 */

import { compareRequests, MIN_READY_REQUESTOR, type NodeRequest } from '@nodepool/core';
import type { QueuePosition } from '@nodepool/status';
import type { Change, NodeEntry, RequestEntry, Store } from '@nodepool/store';
import { resumableNodes } from '../deletion/node-lifecycle.js';
import { ProjectHeads } from './project-heads.js';
import { ServiceOrder } from '../fairness/service-order.js';
import { position } from './sorted-entries.js';

/** Requests that are scheduled together, in the order of service. */
export class RequestClass {
  readonly entries: RequestEntry[] = [];
  /** Time (ms since the epoch) at which a pool last accepted a request of the class; undefined if none did. */
  servedAt: number | undefined;
  /** Chooses the first request by the shares of projects; undefined while only priorities count. */
  private heads: ProjectHeads | undefined;
  private latest: NodeRequest;

  constructor(
    readonly key: string,
    /** True if the class consists of one lost request that has nodes to continue with. */
    readonly resumable: boolean,
    first: RequestEntry,
    /** Ids of pools that have given up the requests. */
    readonly abandonedBy: ReadonlySet<string>,
    /** The pools among them that failed recently and leave the requests to other pools for a while. */
    readonly deferredBy: ReadonlySet<string>,
  ) {
    this.latest = first.request;
  }

  get first(): RequestEntry | undefined {
    return this.heads === undefined ? this.entries[0] : this.heads.first;
  }

  /** The first request; for an empty class, the last request that it had. */
  get request(): NodeRequest {
    this.latest = this.first?.request ?? this.latest;
    return this.latest;
  }

  /** Chooses the first request by this order. */
  orderBy(order: ServiceOrder): void {
    this.heads = order.fair === undefined || this.resumable ? undefined : new ProjectHeads(order, this.entries);
  }

  /** Returns true if the request became the first one. */
  add(entry: RequestEntry): boolean {
    this.entries.splice(position(this.entries, entry), 0, entry);
    this.heads?.add(entry);
    return this.first === entry;
  }

  /** Returns true if the request was the first one. */
  remove(entry: RequestEntry): boolean {
    const wasFirst = this.first === entry;
    this.entries.splice(position(this.entries, entry), 1);
    this.heads?.remove(entry);
    return wasFirst;
  }

  get labels(): readonly string[] {
    return this.latest.node_types;
  }
}

/** Orders classes by their first requests in the order of service. Lost requests that already have nodes come first. */
export function compareClasses(a: RequestClass, b: RequestClass, order?: ServiceOrder): number {
  if (a.resumable !== b.resumable) return a.resumable ? -1 : 1;
  return order === undefined ? compareRequests(a.request, b.request) : order.compare(a.request, b.request);
}

export class OpenRequests {
  private readonly byKey = new Map<string, RequestClass>();
  private readonly byId = new Map<string, { readonly entry: RequestEntry; readonly requestClass: RequestClass }>();
  /** Ids of requests that a pool of this launcher has accepted, or that wait for a retry. */
  private readonly hidden = new Set<string>();
  /** Ids of pools that have given up a request without declining it, by request. */
  private readonly givenUp = new Map<string, Set<string>>();
  /** Ids of pools that failed recently, by request. */
  private readonly left = new Map<string, Set<string>>();
  private readonly unsubscribe: readonly (() => void)[];

  constructor(
    private readonly store: Pick<Store, 'requests' | 'nodes'>,
    /** Called when a class gets another first request, or none. `sooner`: it precedes the former first request. */
    private readonly firstChanged: (requestClass: RequestClass, sooner: boolean) => void,
    /** Called when a request becomes open or changes. */
    private readonly opened: (entry: RequestEntry) => void,
    private readonly order: ServiceOrder = new ServiceOrder(),
  ) {
    const { requests, nodes } = store;
    this.unsubscribe = [
      requests.onChange(({ id, after }) => {
        if (after === undefined) {
          this.givenUp.delete(id);
          this.left.delete(id);
        }
        this.update(id);
      }),
      nodes.onChange(this.nodeChanged),
    ];
    for (const { id } of requests.all()) this.update(id);
  }

  get classes(): Iterable<RequestClass> {
    return this.byKey.values();
  }

  /** Yields the waiting requests, in no order. */
  *requests(): Iterable<NodeRequest> {
    for (const { entry } of this.byId.values()) yield entry.request;
  }

  /** Chooses the first requests of all classes again, after a change of the order of service. */
  reorder(): void {
    for (const requestClass of this.byKey.values()) {
      const { first } = requestClass;
      requestClass.orderBy(this.order);
      if (requestClass.first !== first) this.firstChanged(requestClass, true);
    }
  }

  /** Returns the request and its class; undefined if the request is not open or is hidden. */
  find(id: string): { readonly entry: RequestEntry; readonly requestClass: RequestClass } | undefined {
    return this.byId.get(id);
  }

  /** Returns the place in the order of service; undefined if the request is not open or is hidden. */
  queuePosition(id: string): QueuePosition | undefined {
    const known = this.byId.get(id);
    if (known === undefined) return undefined;
    const { entries, first } = known.requestClass;
    const place = this.order.placeOf(id, () => this.requests());
    return {
      first: first?.id ?? id,
      ahead: first?.id === id ? 0 : Math.max(position(entries, known.entry), first === entries[0] ? 0 : 1),
      ...(place === undefined ? {} : { place: place.place, order: place.reason }),
    };
  }

  /** Hides the request until `show`. */
  hide(id: string): void {
    this.hidden.add(id);
    this.update(id);
  }

  /** Records that a pool has given up the request, so that other pools precede it. */
  giveUp(id: string, pool: string): void {
    if (this.store.requests.get(id) === undefined) return;
    const pools = this.givenUp.get(id) ?? new Set();
    this.givenUp.set(id, pools.add(pool));
    this.left.set(id, new Set([...(this.left.get(id) ?? []), pool]));
  }

  /** Makes the pool serve the request again if no other pool does. */
  readmit(id: string, pool: string): void {
    if (this.left.get(id)?.delete(pool) === true) this.update(id);
  }

  show(id: string): void {
    this.hidden.delete(id);
    this.update(id);
  }

  stop(): void {
    for (const unsubscribe of this.unsubscribe) unsubscribe();
  }

  /** Reports a lost request as changed when its nodes change, because they determine how it continues. */
  private readonly nodeChanged = ({ before, after }: Change<NodeEntry>): void => {
    const old = before?.node.allocated_to ?? null;
    const now = after?.node.allocated_to ?? null;
    if (old !== null && this.byId.has(old)) this.nodesChanged(old);
    if (now !== null && now !== old && this.byId.has(now)) this.nodesChanged(now);
  };

  private nodesChanged(id: string): void {
    this.update(id);
    const known = this.byId.get(id);
    if (known?.requestClass.resumable === true) this.firstChanged(known.requestClass, true);
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
    const resumable = resumableNodes(this.store, entry.request).length > 0;
    const abandonedBy = this.givenUp.get(id) ?? NONE;
    const deferredBy = this.left.get(id) ?? NONE;
    const key = resumable ? `resumable\n${id}` : keyOf(entry.request, abandonedBy, deferredBy);
    if (known?.entry === entry && known.requestClass.key === key) return;
    if (known !== undefined) this.remove(id, known);
    this.add(id, entry, key, { resumable, abandonedBy, deferredBy });
  }

  private add(
    id: string,
    entry: RequestEntry,
    key: string,
    { resumable, abandonedBy, deferredBy }: Pick<RequestClass, 'resumable' | 'abandonedBy' | 'deferredBy'>,
  ): void {
    let requestClass = this.byKey.get(key);
    if (requestClass === undefined) {
      requestClass = new RequestClass(key, resumable, entry, new Set(abandonedBy), new Set(deferredBy));
      requestClass.orderBy(this.order);
      this.byKey.set(key, requestClass);
    }
    const isFirst = requestClass.add(entry);
    this.byId.set(id, { entry, requestClass });
    this.opened(entry);
    if (isFirst) this.firstChanged(requestClass, true);
  }

  private remove(
    id: string,
    { entry, requestClass }: { readonly entry: RequestEntry; readonly requestClass: RequestClass },
  ): void {
    this.byId.delete(id);
    const wasFirst = requestClass.remove(entry);
    if (requestClass.entries.length === 0) this.byKey.delete(requestClass.key);
    if (wasFirst) this.firstChanged(requestClass, false);
  }
}

const NONE: ReadonlySet<string> = new Set();

/** Returns the same key for requests with the same needs that the same pools may serve. */
function keyOf(request: NodeRequest, abandonedBy: ReadonlySet<string>, deferredBy: ReadonlySet<string>): string {
  const { node_types, tenant_name, reuse, requestor, state, provider, declined_by } = request;
  const isMinReady = requestor === MIN_READY_REQUESTOR;
  return JSON.stringify([
    node_types,
    tenant_name,
    reuse,
    isMinReady,
    state,
    provider,
    declined_by,
    [...abandonedBy],
    [...deferredBy],
  ]);
}

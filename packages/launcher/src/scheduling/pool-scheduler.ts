/**
 * Scheduling, the stage that decides whether an admitted request is served now or waits for capacity (EASY backfill).
 * Capacity is reserved for a request that does not fit; smaller requests of the same priority may overtake it only
 * during the backfill window. docs/limits-and-waiting.md describes the order of service.
 */

import { MIN_READY_REQUESTOR, toDriverError, type NodeRequest, type NodeRequestHandler } from '@nodepool/core';
import type { RequestEntry } from '@nodepool/store';
import type { ProviderLimits } from '../quota/provider-limits.js';
import type { CapacityHold, QuotaLedger } from '../quota/quota-ledger.js';
import { describeShortfall, waitFor, type QuotaScope, type Shortfall } from '../quota/quota-scope.js';
import type { ScheduledRequest } from '../requests/acceptance.js';
import { machineTypesOf, nameOf, USABLE_ANYWAY, type BlockedOffer } from '../capacity/pool-offers.js';
import { describeExcess } from '../quota/need.js';
import { canBeServedElsewhere } from '../pool/other-pools.js';
import { allocate, describeMissing, offersOf, useOfAll, type Allocation } from '../requests/allocation.js';
import type { Pool } from '../pool/pool.js';
import { requestInfo } from '../requests/request-info.js';
import type { Refusal } from '@nodepool/status';
import { recordDecision, recordLeave, recordWait } from '../requests/request-outcome.js';
import type { Concurrency } from './concurrency.js';
import { Evictor } from './evictor.js';
import { compareClasses, type RequestClass } from './open-requests.js';
import { WaitingClasses } from './waiting-classes.js';

export type SchedulingDecision =
  | { readonly kind: 'serve'; readonly scheduled: ScheduledRequest }
  /** It could be served now, but another launcher acts first. `nodes` are the ready nodes that it would get. */
  | {
      readonly kind: 'stand-by';
      readonly waitMs: number;
      readonly hold: CapacityHold | undefined;
      readonly nodes: readonly string[];
    }
  /** It is scheduled again when there may be capacity. */
  | { readonly kind: 'wait' }
  | ({ readonly kind: 'decline' } & Refusal)
  /** A lost request that has nodes here releases them, because there is no capacity for the others. */
  | { readonly kind: 'requeue'; readonly reason: string };

/** A class of requests and the first of them, with the nodes allocated to it. */
interface Candidate {
  readonly requestClass: RequestClass;
  readonly entry: RequestEntry;
  readonly driverHandler: NodeRequestHandler;
  readonly allocation: Allocation;
  /** The limits that apply to the request. */
  readonly scopes: readonly QuotaScope[];
}

export interface PoolSchedulerOptions {
  readonly ledger: QuotaLedger;
  readonly limits: ProviderLimits;
  readonly concurrency: Concurrency;
  /** Called when these classes must be scheduled again. */
  readonly onCapacity: (classes: Iterable<RequestClass>) => void;
  /** Returns true if a ready node is being allocated to a request. */
  readonly isClaimed: (nodeId: string) => boolean;
  /** Returns the time (ms) for which a request is left to other launchers; 0 if this one may serve it now. */
  readonly waitForOthers: (request: NodeRequest, isResumed: boolean) => number;
}

const WAIT: SchedulingDecision = { kind: 'wait' };

export class PoolScheduler {
  private readonly waiting: WaitingClasses;
  /** The waiting classes that wait for a permit of the provider. */
  private readonly awaitingPermit = new Set<RequestClass>();
  private readonly evictor: Evictor;
  /** Listener for more capacity. Scopes and the concurrency limit identify the pool by this function. */
  readonly wake = (): void => this.options.onCapacity(this.waiting.classes());

  constructor(
    private readonly pool: Pool,
    private readonly options: PoolSchedulerOptions,
  ) {
    const { context, name } = pool;
    this.waiting = new WaitingClasses(context, options.ledger.order);
    this.evictor = new Evictor(context, options.ledger, name, this.wake);
  }

  get size(): number {
    let size = 0;
    for (const { entries } of this.waiting.classes()) size += entries.length;
    return size;
  }

  get next(): RequestEntry | undefined {
    const { order } = this.options.ledger;
    let next: RequestClass | undefined;
    for (const each of this.waiting.classes())
      if (next === undefined || compareClasses(each, next, order) < 0) next = each;
    return next?.first;
  }

  /** True if a class waits for capacity that another pool may have. */
  get isBlocked(): boolean {
    return [...this.waiting.all()].some(({ blocking }) => blocking);
  }

  /** Decides about the first request of a class, which the pool has admitted. */
  schedule(requestClass: RequestClass, entry: RequestEntry): SchedulingDecision {
    if (this.cannotProceed(requestClass, entry)) return WAIT;
    if (this.waiting.get(requestClass) === undefined) recordDecision(this.pool, entry.id, 'can serve it');
    const allocated = this.allocate(entry);
    if ('cause' in allocated) return { kind: 'decline', ...allocated };
    const scopes = this.options.ledger.scopesOf(this.pool.place, entry.request.tenant_name);
    const candidate = { requestClass, entry, scopes, ...allocated };
    const { blocked } = candidate.allocation;
    const isUsableAnyway = blocked === undefined || this.isUsableAnyway(blocked, entry);
    if (!isUsableAnyway) return this.block(candidate, blocked);
    const shortfalls = this.shortfalls(candidate);
    if (shortfalls !== undefined) return this.useNextTypes(candidate, shortfalls);
    if (candidate.allocation.missing.length > 0) return this.waitForNodes(candidate);
    return this.acquire(candidate);
  }

  /** Releases everything that is reserved for the class, which no longer waits in this pool. */
  forget(requestClass: RequestClass): void {
    this.waiting.leave(requestClass);
    this.awaitingPermit.delete(requestClass);
  }

  /** Handles another first request of the class, or none. */
  firstChanged(requestClass: RequestClass): void {
    const waiting = this.waiting.get(requestClass);
    if (waiting === undefined) return;
    if (requestClass.first === undefined) this.forget(requestClass);
    // Capacity reserved for the first one may be free for requests that come before the next one.
    else for (const scope of waiting.reserved) scope.changed();
  }

  /** Leaves the line for permits unless a class still waits for one. To be called when everything is scheduled. */
  settle(): void {
    if (this.awaitingPermit.size === 0) this.options.concurrency.leave(this.wake);
  }

  stop(): void {
    this.evictor.stop();
    this.options.concurrency.leave(this.wake);
    for (const requestClass of [...this.waiting.classes()]) this.forget(requestClass);
  }

  /** Acquires capacity and a permit for the request, or waits for a permit. */
  private acquire({ requestClass, entry, allocation, driverHandler, scopes }: Candidate): SchedulingDecision {
    const { concurrency, ledger, onCapacity } = this.options;
    const priority = ledger.order.permitRank(entry.request);
    if (!concurrency.isAvailable(this.wake, priority)) {
      this.waiting.enter(requestClass);
      this.awaitingPermit.add(requestClass);
      concurrency.wait(this.wake, priority);
      const isDrained = this.pool.provider.config.maxConcurrency === 0;
      const reason = isDrained
        ? 'the provider is paused (max-concurrency: 0)'
        : 'the provider works on as many requests as max-concurrency allows';
      recordWait(this.pool, entry.id, 'waits for its turn', { kind: 'limit', reason });
      return WAIT;
    }
    const waitMs = this.options.waitForOthers(entry.request, requestClass.resumable);
    const hold = this.hold(entry.request, allocation, scopes);
    this.forget(requestClass);
    if (waitMs > 0) {
      const nodes = allocation.nodes.flatMap((node) => (node.kind === 'ready' ? [node.entry.id] : []));
      return { kind: 'stand-by', waitMs, hold, nodes };
    }
    const { abandonedBy } = requestClass;
    const endProbes = this.pool.beginProbes(offersOf(allocation));
    const permit = concurrency.acquire(this.wake);
    // Classes that wait for a permit must join the line again.
    if (this.awaitingPermit.size > 0) onCapacity(this.awaitingPermit);
    const release = (): void => {
      permit.release();
      endProbes();
    };
    return { kind: 'serve', scheduled: { entry, allocation, driverHandler, abandonedBy, hold, permit: { release } } };
  }

  /** Holds the capacity that the request needs, in limits and in the share of its tenant. */
  private hold(request: NodeRequest, allocation: Allocation, scopes: readonly QuotaScope[]): CapacityHold | undefined {
    const { ledger } = this.options;
    const limits = needsCapacity(allocation) ? ledger.hold(scopes, allocation) : undefined;
    const endShare = ledger.order.hold(request, () => useOfAll(allocation));
    if (endShare === undefined) return limits;
    let isHeld = true;
    return {
      release: () => {
        limits?.release();
        if (isHeld) endShare();
        isHeld = false;
      },
    };
  }

  /** Returns a refusal if the request cannot be served in this pool. */
  private allocate({ id, request }: RequestEntry, skip = 0): Pick<Candidate, 'allocation' | 'driverHandler'> | Refusal {
    const { pool } = this;
    try {
      const driverHandler = pool.provider.getRequestHandler(pool.config.name, requestInfo(request));
      const isProtected = (nodeId: string): boolean =>
        this.waiting.isProtected(nodeId, request) || this.options.isClaimed(nodeId);
      const allocation = allocate(request, { pool, driverHandler, isProtected, skip });
      if (allocation !== undefined) return { allocation, driverHandler };
      return { cause: 'label', reason: 'the pool does not have its labels any more' };
    } catch (error) {
      const failure = toDriverError(error);
      pool.log.error('The driver failed to say how it would serve a request', failure, { node_request_id: id });
      return { cause: 'launch', reason: `the driver failed: ${failure.message}` };
    }
  }

  /**
   * Returns true if a waiting class certainly continues to wait: a limit has no capacity for a single node, and no
   * ready node can be used or evicted.
   */
  private cannotProceed(requestClass: RequestClass, { request }: RequestEntry): boolean {
    const waiting = this.waiting.get(requestClass);
    if (requestClass.resumable || waiting === undefined) return false;
    const { context, place, provider: cloud } = this.pool;
    if (cloud.config.createsNodes === false) {
      return request.node_types.every((label) => isEmpty(context.store.nodes.available({ label, ...place })));
    }
    const now = context.clock.now();
    const full = this.options.ledger
      .scopesOf(place, request.tenant_name)
      .find(
        (scope) =>
          scope.instances === waiting.used.get(scope) &&
          this.waiting.hasReservation(requestClass, scope) &&
          scope.isFull(request, now),
      );
    if (full === undefined || full.free.get('instances') > 0) return false;
    const { provider, pool } = place;
    const [label = ''] = request.node_types;
    const [ready] = request.reuse ? context.store.nodes.available({ label, provider, pool }) : [];
    if (ready !== undefined) return false;
    full.wait(this.wake);
    return true;
  }

  /** Returns the shortfalls of the request, or undefined if there is capacity. */
  private shortfalls({ requestClass, entry, allocation, scopes }: Candidate): readonly Shortfall[] | undefined {
    if (!needsCapacity(allocation)) return undefined;
    const { ledger, limits } = this.options;
    const { request } = entry;
    limits.needed();
    const { need, tenantNeed } = allocation;
    const now = this.pool.context.clock.now();
    const shortfalls = ledger.shortfalls(scopes, { request, need, tenantNeed, now, claimant: requestClass });
    return shortfalls.length === 0 ? undefined : shortfalls;
  }

  /**
   * Serves the request with the next machine types of its labels that fit into the limits. If none does, waits for
   * capacity for the machine types that need least.
   */
  private useNextTypes(candidate: Candidate, shortfalls: readonly Shortfall[]): SchedulingDecision {
    const { entry } = candidate;
    let least = { candidate, shortfalls };
    for (let skip = 1; skip < this.typesToTry(entry, shortfalls); skip += 1) {
      const allocated = this.allocate(entry, skip);
      if ('cause' in allocated || allocated.allocation.blocked !== undefined) break;
      const next = { ...candidate, ...allocated };
      const lacking = this.shortfalls(next);
      if (lacking === undefined) {
        const tried = offersOf(candidate.allocation).map(nameOf).join('; ');
        const reason = shortfalls.map(describeShortfall).join('; ');
        recordDecision(this.pool, entry.id, 'tried an offer without capacity', `${tried}: ${reason}`);
        return this.acquire(next);
      }
      const needsLess = describeExcess('', least.candidate.allocation.need, next.allocation.need) === undefined;
      if (needsLess) least = { candidate: next, shortfalls: lacking };
    }
    return this.wait(least.candidate, least.shortfalls);
  }

  /** Returns the greatest number of machine types of a label. None helps if a limit has no capacity for the nodes. */
  private typesToTry({ request }: RequestEntry, shortfalls: readonly Shortfall[]): number {
    const { context, labels } = this.pool;
    if (!context.capacity.offers || shortfalls.some(({ resource }) => resource === 'instances')) return 0;
    return Math.max(...request.node_types.map((name) => machineTypesOf(labels.label(name)).length));
  }

  /** Waits for nodes of a pool that creates no nodes. Nodes that are ready are protected for the request. */
  private waitForNodes(candidate: Candidate): SchedulingDecision {
    const { requestClass, entry, allocation } = candidate;
    const reason = describeMissing(allocation);
    if (mustRelease(candidate)) return this.requeue(candidate, reason);
    recordWait(this.pool, entry.id, 'waits for nodes', { kind: 'limit', reason });
    // Limits do not determine when a node is returned, so nothing remains reserved in them.
    this.forget(requestClass);
    const waiting = this.waiting.enter(requestClass);
    waiting.blocking = true;
    waiting.reason = reason;
    this.waiting.protect(
      waiting,
      allocation.nodes.flatMap((node) => (node.kind === 'ready' ? [node.entry.id] : [])),
    );
    return WAIT;
  }

  private requeue({ requestClass }: Candidate, reason: string): SchedulingDecision {
    this.forget(requestClass);
    return { kind: 'requeue', reason };
  }

  /** Returns what the class waits for; undefined if it does not wait for capacity. */
  waitOf(requestClass: RequestClass): string | undefined {
    return this.waiting.get(requestClass)?.reason;
  }

  /** Returns true if the blocked offer is used nevertheless, because no better offer can serve the request. */
  private isUsableAnyway({ cause }: BlockedOffer, { request }: RequestEntry): boolean {
    return USABLE_ANYWAY.has(cause) && !canBeServedElsewhere(request, this.pool);
  }

  /** Leaves the request to another pool, or waits until one of its offers can be used. */
  private block(candidate: Candidate, { cause, reason }: BlockedOffer): SchedulingDecision {
    const { requestClass, entry, scopes } = candidate;
    const { request } = entry;
    if (mustRelease(candidate)) return this.requeue(candidate, reason);
    if (canBeServedElsewhere(request, this.pool)) {
      this.forget(requestClass);
      recordLeave(this.pool, entry.id, 'leaves it to other pools', { cause: 'launch', reason });
      return WAIT;
    }
    const isFull = cause === 'quota' || cause === 'capacity';
    if (isFull && request.requestor === MIN_READY_REQUESTOR) {
      this.forget(requestClass);
      return { kind: 'decline', cause: 'limit', reason: `there is no capacity for min-ready nodes: ${reason}` };
    }
    // A request that also waits for a limit keeps its place in the order of service.
    const shortfalls = isFull ? this.shortfalls(candidate) : undefined;
    if (shortfalls !== undefined) return this.wait(candidate, shortfalls);
    recordWait(this.pool, entry.id, 'waits for capacity', { kind: 'capacity', reason });
    // A request that could not use capacity has none reserved.
    this.forget(requestClass);
    this.waiting.enter(requestClass).reason = reason;
    const provider = scopes.find(({ kind }) => kind === 'provider') ?? scopes[0];
    if (isFull && provider !== undefined) {
      this.evictor.evictOne(provider, request, this.protection(candidate).isProtected);
    }
    return WAIT;
  }

  /** Returns the ready nodes of the allocation, and a function that returns true for nodes that must not be evicted. */
  private protection({ entry, allocation }: Candidate): { own: Set<string>; isProtected: (nodeId: string) => boolean } {
    const own = new Set(allocation.nodes.flatMap((node) => (node.kind === 'ready' ? [node.entry.id] : [])));
    const isProtected = (nodeId: string): boolean =>
      own.has(nodeId) || this.waiting.isProtected(nodeId, entry.request) || this.options.isClaimed(nodeId);
    return { own, isProtected };
  }

  private wait(candidate: Candidate, shortfalls: readonly Shortfall[]): SchedulingDecision {
    const { requestClass, entry, allocation, scopes } = candidate;
    const { request } = entry;
    const reason = shortfalls.map(describeShortfall).join('; ');
    if (mustRelease(candidate)) return this.requeue(candidate, reason);
    if (request.requestor === MIN_READY_REQUESTOR) {
      this.forget(requestClass);
      return { kind: 'decline', cause: 'limit', reason: `there is no capacity for min-ready nodes: ${reason}` };
    }
    recordWait(this.pool, entry.id, 'waits for quota', waitFor(shortfalls, reason));
    const waiting = this.waiting.enter(requestClass);
    this.awaitingPermit.delete(requestClass);
    waiting.reason = reason;
    const { own, isProtected } = this.protection(candidate);
    const { need, tenantNeed } = allocation;
    const demand = { request, need, tenantNeed, now: this.pool.context.clock.now(), claimant: requestClass };
    waiting.blocking = shortfalls.some(({ scope }) => scope.kind !== 'tenant');
    waiting.used = new Map(scopes.map((scope) => [scope, scope.instances]));
    if (shortfalls.some(({ scope }) => scope.kind === 'provider')) this.options.limits.awaited();
    this.waiting.reserve(waiting, demand, scopes, shortfalls);
    for (const scope of waiting.full) scope.wait(this.wake);
    this.evictor.evictFor(demand, scopes, isProtected);
    this.waiting.protect(waiting, [...own]);
    return WAIT;
  }
}

/**
 * Returns true if the request holds something that it must release before it waits. After the release it holds
 * nothing, so a request is requeued at most once for each launcher that it has lost.
 */
function mustRelease({ requestClass, entry, allocation }: Candidate): boolean {
  const holdsNode = allocation.nodes.some((node) => node.kind !== 'new' && node.entry.node.allocated_to === entry.id);
  return requestClass.resumable && (entry.request.state === 'pending' || holdsNode);
}

/** Returns true if the allocation counts against limits. */
function needsCapacity({ tenantNeed }: Allocation): boolean {
  return tenantNeed.entries().length > 0;
}

function isEmpty(entries: Iterable<unknown>): boolean {
  const [first] = entries;
  return first === undefined;
}

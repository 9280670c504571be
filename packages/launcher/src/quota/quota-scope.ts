/** A limit and the amounts that count against it: of a pool, of a provider, or of a tenant. */

import type { Wait } from '@nodepool/status';
import { MIN_READY_REQUESTOR, QuotaInformation, type NodeRequest, type Resources } from '@nodepool/core';
import type { ServiceOrder } from '../fairness/service-order.js';
import { needIn, type Need } from './need.js';
import { Tally } from './tally.js';

export type ScopeKind = 'pool' | 'provider' | 'tenant';

/** A limit that a demand exceeds, with the amounts. */
export interface Shortfall {
  readonly scope: QuotaScope;
  readonly resource: string;
  readonly limit: number;
  /** In use, or held for launches that are about to begin. */
  readonly used: number;
  readonly needed: number;
  /** The request for which the remaining capacity is reserved; undefined if none remains. */
  readonly reservedFor: string | undefined;
}

/** Requests that share one reservation. */
export interface Claimant {
  /** The first of these requests. */
  readonly request: NodeRequest;
}

/** Capacity that is reserved for requests that wait for it. */
export interface CapacityReservation {
  readonly claimant: Claimant;
  readonly need: QuotaInformation;
  /** Returns the time (ms since the epoch) from which on later requests of the same priority must not use it. */
  from(): number;
  /** The pool that reserves the capacity. Each pool that can serve the request has a reservation. */
  readonly owner: object;
  /** True if it counts only while the scope is too full for the request, which waits for other scopes. */
  readonly onlyIfFull?: boolean;
}

/** The resources that a request asks for at a moment. */
export interface Demand extends Need {
  readonly request: NodeRequest;
  readonly claimant: Claimant;
  /** Milliseconds since the epoch. */
  readonly now: number;
}

export class QuotaScope {
  /** Sum of all records until they are removed. */
  readonly recorded = new Tally();
  /** Sum of launches that are decided but not recorded yet. */
  readonly held = new Tally();
  /** Sum of records whose nodes are being deleted. */
  readonly leaving = new Tally();
  /** Sum of ready nodes that are allocated to no request. */
  readonly free = new Tally();
  /** By claimant, then by owner. */
  private readonly reservations = new Map<Claimant, Map<object, CapacityReservation>>();
  private readonly waiting = new Set<() => void>();
  private allowed = QuotaInformation.limit({});
  /** The scopes of other providers in the same project of the cloud, whose nodes count against the same limit. */
  private neighbours: readonly QuotaScope[] = [];
  /** The scopes that have this one as a neighbour. */
  private readonly neighbourOf = new Set<QuotaScope>();

  /** `name` is for messages, e.g. `pool main of provider demo`. */
  constructor(
    readonly kind: ScopeKind,
    readonly key: string,
    readonly name: string,
    private readonly order: ServiceOrder,
  ) {}

  /** Sets the limit, which the nodes of this scope and of its neighbours share. */
  setLimit(limit: QuotaInformation, neighbours: readonly QuotaScope[] = []): void {
    this.allowed = limit;
    for (const each of this.neighbours) each.neighbourOf.delete(this);
    this.neighbours = neighbours;
    for (const each of neighbours) each.neighbourOf.add(this);
    this.changed();
  }

  /** Returns the limit without the records of the neighbours. */
  get limit(): QuotaInformation {
    return this.neighbours.reduce((limit, { recorded }) => limit.subtract(recorded.read()), this.allowed);
  }

  /**
   * Returns the limit of a resource without the records of the neighbours. `uncounted` returns the amount of a
   * neighbour's records that do not count.
   */
  limitOf(resource: string, uncounted: (neighbour: QuotaScope) => number = () => 0): number {
    let limit = this.allowed.get(resource);
    for (const each of this.neighbours) limit -= each.recorded.get(resource) - uncounted(each);
    return limit;
  }

  /** Returns true if the records and the launches that are about to begin do not exceed the limit. */
  hasRoomForHeld(): boolean {
    return this.held.isWithin((resource) => this.availableOf(resource) - this.recorded.get(resource));
  }

  /** Returns the limit of a resource without what the neighbours use, or hold for launches that are about to begin. */
  private availableOf(resource: string): number {
    return this.limitOf(resource, ({ held }) => -held.get(resource));
  }

  /** Returns the amounts that the limit leaves; resources without a limit are omitted. */
  get available(): Resources {
    const limited = this.allowed.entries().filter(([, limit]) => Number.isFinite(limit));
    return Object.fromEntries(
      limited.map(([resource]) => {
        const used = this.recorded.get(resource) + this.held.get(resource);
        return [resource, Math.max(0, this.availableOf(resource) - used)];
      }),
    );
  }

  /** Returns the shortfall if the demand does not fit now. Capacity reserved for preceding requests counts as used. */
  shortfall(demand: Demand): Shortfall | undefined {
    const needs = needIn(this, demand).entries();
    for (let index = 0; index < needs.length; index += 1) {
      const each = needs[index];
      if (each === undefined || each[1] <= 0) continue;
      const resource = each[0];
      const needed = each[1];
      const limit = this.availableOf(resource);
      if (limit === Infinity) continue;
      const used = this.recorded.get(resource) + this.held.get(resource);
      if (used + needed > limit) return { scope: this, resource, limit, used, needed, reservedFor: undefined };
      let left = limit - used - needed;
      for (const { need, claimant } of this.reservedBefore(demand)) {
        left -= need.get(resource);
        if (left < 0) return { scope: this, resource, limit, used, needed, reservedFor: claimant.request.id };
      }
    }
    return undefined;
  }

  /** Returns by resource the amounts that the demand lacks, assuming that all nodes being deleted are removed. */
  missing(demand: Demand): Map<string, number> {
    const missing = new Map<string, number>();
    for (const [resource, needed] of needIn(this, demand).entries()) {
      const limit = this.limitOf(resource, ({ held, leaving }) => leaving.get(resource) - held.get(resource));
      if (needed <= 0 || limit === Infinity) continue;
      let over = this.recorded.get(resource) + this.held.get(resource) - this.leaving.get(resource) + needed - limit;
      for (const { need } of this.reservedBefore(demand)) over += need.get(resource);
      if (over > 0) missing.set(resource, over);
    }
    return missing;
  }

  reserveCapacity(reservation: CapacityReservation): void {
    const { claimant, owner } = reservation;
    const owners = this.reservations.get(claimant) ?? new Map<object, CapacityReservation>();
    owners.set(owner, reservation);
    this.reservations.set(claimant, owners);
  }

  hasReservation(claimant: Claimant, owner: object): boolean {
    return this.reservations.get(claimant)?.has(owner) === true;
  }

  /** Releases the owner's reservation for the claimant; those of other owners stay. */
  releaseReservation(claimant: Claimant, owner: object): void {
    const owners = this.reservations.get(claimant);
    if (owners?.delete(owner) !== true) return;
    if (owners.size === 0) this.reservations.delete(claimant);
    this.changed();
  }

  /** Instances in use, or held for launches that are about to be recorded. */
  get instances(): number {
    return this.recorded.get('instances') + this.held.get('instances');
  }

  /** Returns true if the scope has no capacity for any node of this request, however small. */
  isFull(request: NodeRequest, now: number): boolean {
    let left = this.availableOf('instances') - this.instances;
    if (left < 1) return true;
    for (const [claimant, owners] of this.reservations) {
      const reserved = this.reservedBy(owners);
      if (reserved === undefined) continue;
      if (!precedes({ request: claimant.request, from: reserved.from() }, request, now, this.order)) continue;
      left -= reserved.need.get('instances');
      if (left < 1) return true;
    }
    return false;
  }

  /** Calls the listener once, when there may be more capacity. */
  wait(listener: () => void): void {
    this.waiting.add(listener);
  }

  /** Notifies the waiting listeners that there may be more capacity. */
  changed(): void {
    for (const scope of this.neighbourOf) scope.notify();
    this.notify();
  }

  private notify(): void {
    if (this.waiting.size === 0) return;
    const listeners = [...this.waiting];
    this.waiting.clear();
    for (const listener of listeners) listener();
  }

  private *reservedBefore({ request, claimant: own, now }: Demand): Iterable<CapacityReservation> {
    for (const [claimant, owners] of this.reservations) {
      const reserved = claimant === own ? undefined : this.reservedBy(owners);
      if (reserved === undefined) continue;
      if (precedes({ request: claimant.request, from: reserved.from() }, request, now, this.order)) yield reserved;
    }
  }

  /** Returns the reservation that counts for a claimant at the moment, from any owner. */
  private reservedBy(owners: ReadonlyMap<object, CapacityReservation>): CapacityReservation | undefined {
    for (const each of owners.values()) if (each.onlyIfFull !== true || this.isTooFullFor(each.need)) return each;
    return undefined;
  }

  private isTooFullFor(need: QuotaInformation): boolean {
    for (const [resource, needed] of need.entries()) {
      const used = this.recorded.get(resource) + this.held.get(resource);
      if (needed > 0 && used + needed > this.availableOf(resource)) return true;
    }
    return false;
  }
}

/**
 * Returns true if `request` must not use the reserved capacity, because the claimant has a higher priority, or came
 * earlier and has waited for the backfill window. Min-ready requests must not use any reserved capacity.
 */
export function precedes(
  reserved: { readonly request: NodeRequest; readonly from: number },
  request: NodeRequest,
  now: number,
  order: ServiceOrder,
): boolean {
  if (reserved.request.id === request.id) return false;
  if (request.requestor === MIN_READY_REQUESTOR) return true;
  if (order.compare(reserved.request, request) >= 0) return false;
  return reserved.from <= now || order.isStrict(reserved.request, request);
}

/** Returns the shortfall in words, for explanations. */
export function describeShortfall({ scope, resource, limit, used, needed, reservedFor }: Shortfall): string {
  const numbers = `${scope.name} uses ${used} of ${limit} ${resource}, ${needed} more ${needed === 1 ? 'is' : 'are'} needed`;
  return reservedFor === undefined
    ? numbers
    : `${numbers}; the rest is reserved for request ${reservedFor}, which comes before`;
}

/** Returns the wait of a request with these shortfalls. Without a shortfall, it waits for capacity of the cloud. */
export function waitFor(shortfalls: readonly Shortfall[], reason: string): Wait {
  const full = shortfalls.find(({ reservedFor }) => reservedFor === undefined) ?? shortfalls[0];
  if (full === undefined) return { kind: 'capacity', reason };
  const { scope, resource, limit, used, needed, reservedFor } = full;
  const facts = { scope: scope.kind, name: scope.name, resource, limit, used, needed };
  if (reservedFor === undefined) return { kind: 'limit', reason, limit: facts };
  return { kind: 'order', reason, limit: facts, behind: reservedFor };
}

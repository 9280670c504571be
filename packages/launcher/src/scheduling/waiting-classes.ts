/** The classes of requests that wait in a pool, each with its reserved capacity and protected ready nodes. */

import type { NodeRequest } from '@nodepool/core';
import type { LauncherContext } from '../context.js';
import type { ServiceOrder } from '../fairness/service-order.js';
import { needIn } from '../quota/need.js';
import { precedes, type Demand, type QuotaScope, type Shortfall } from '../quota/quota-scope.js';
import type { RequestClass } from './open-requests.js';

export interface WaitingClass {
  readonly requestClass: RequestClass;
  /** Every scope that was once too full for the class. */
  readonly full: Set<QuotaScope>;
  /** Scopes in which capacity is reserved for the class. */
  readonly reserved: Set<QuotaScope>;
  /** Milliseconds since the epoch. */
  readonly since: number;
  /** Ready nodes of the pool that the first request needs. */
  nodes: readonly string[];
  /** Instances in use in each scope when the class was last scheduled. */
  used: ReadonlyMap<QuotaScope, number>;
  /** True if the class waits for capacity that another pool may have. */
  blocking: boolean;
  /** The obstacle that the class waits for, in words. */
  reason: string;
}

export class WaitingClasses {
  private readonly waiting = new Map<RequestClass, WaitingClass>();
  /** Ready nodes that are protected, by id, for a class with reserved capacity. */
  private readonly protectedNodes = new Map<string, RequestClass>();

  constructor(
    private readonly context: Pick<LauncherContext, 'clock' | 'backfillWindowMs'>,
    private readonly order: ServiceOrder,
  ) {}

  classes(): Iterable<RequestClass> {
    return this.waiting.keys();
  }

  all(): Iterable<WaitingClass> {
    return this.waiting.values();
  }

  get(requestClass: RequestClass): WaitingClass | undefined {
    return this.waiting.get(requestClass);
  }

  /** Returns the waiting entry of the class; its wait starts now if it did not wait before. */
  enter(requestClass: RequestClass): WaitingClass {
    let waiting = this.waiting.get(requestClass);
    if (waiting === undefined) {
      waiting = {
        requestClass,
        full: new Set(),
        reserved: new Set(),
        since: this.context.clock.now(),
        nodes: [],
        used: new Map(),
        blocking: false,
        reason: '',
      };
      this.waiting.set(requestClass, waiting);
    }
    return waiting;
  }

  /** Releases everything that is reserved for the class. */
  leave(requestClass: RequestClass): void {
    const waiting = this.waiting.get(requestClass);
    if (waiting === undefined) return;
    this.protect(waiting, []);
    this.waiting.delete(requestClass);
    for (const scope of waiting.reserved) scope.releaseReservation(requestClass, this);
  }

  /** Reserves capacity in scopes that are or were too full. Reservations in other `scopes` count once those are. */
  reserve(
    waiting: WaitingClass,
    demand: Demand,
    scopes: readonly QuotaScope[],
    shortfalls: readonly Shortfall[],
  ): void {
    const { requestClass, full, reserved } = waiting;
    for (const { scope } of shortfalls) full.add(scope);
    const exceedsTenant = shortfalls.some(({ scope }) => scope.kind === 'tenant');
    for (const scope of new Set([...scopes, ...reserved])) {
      // While a request waits for its tenant's limit, other requests may use the other limits.
      if (exceedsTenant && scope.kind !== 'tenant') {
        scope.releaseReservation(requestClass, this);
        reserved.delete(scope);
        continue;
      }
      scope.reserveCapacity({
        claimant: requestClass,
        need: needIn(scope, demand),
        from: () => this.reservedFrom(waiting),
        owner: this,
        onlyIfFull: !full.has(scope),
      });
      reserved.add(scope);
    }
  }

  hasReservation(requestClass: RequestClass, scope: QuotaScope): boolean {
    return scope.hasReservation(requestClass, this);
  }

  /** Protects these nodes for the class instead of its former ones. */
  protect(waiting: WaitingClass, nodes: readonly string[]): void {
    const { requestClass } = waiting;
    for (const id of waiting.nodes) if (this.protectedNodes.get(id) === requestClass) this.protectedNodes.delete(id);
    waiting.nodes = nodes;
    for (const id of nodes) this.protectedNodes.set(id, requestClass);
  }

  /** Returns true if a ready node is protected for a class that precedes the request. */
  isProtected(nodeId: string, request: NodeRequest): boolean {
    const requestClass = this.protectedNodes.get(nodeId);
    const waiting = requestClass === undefined ? undefined : this.waiting.get(requestClass);
    if (requestClass === undefined || waiting === undefined) return false;
    const reserved = { request: requestClass.request, from: this.reservedFrom(waiting) };
    return precedes(reserved, request, this.context.clock.now(), this.order);
  }

  /** Returns the end of the backfill window in milliseconds since the epoch. */
  private reservedFrom({ requestClass, since }: WaitingClass): number {
    const { clock, backfillWindowMs } = this.context;
    const created = (requestClass.request.created_time ?? Infinity) * 1000;
    return (created <= clock.now() ? created : since) + backfillWindowMs;
  }
}

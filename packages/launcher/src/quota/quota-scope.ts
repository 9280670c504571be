/** A limit, and what counts against it: of a pool, of a provider, or of a tenant. */

import {
  compareRequests,
  MIN_READY_REQUESTOR,
  priorityOf,
  QuotaInformation,
  type NodeRequest,
  type Resources,
} from '@nodepool/core';
import type { RequestClass } from '../scheduling/open-requests.js';

export type ScopeKind = 'pool' | 'provider' | 'tenant';

/** What does not fit, in words and numbers. */
export interface Lack {
  readonly scope: QuotaScope;
  readonly resource: string;
  readonly limit: number;
  /** In use, or set aside for launches that are about to begin. */
  readonly used: number;
  readonly needed: number;
  /** The request for which what is left is kept; undefined: nothing is left. */
  readonly keptFor: string | undefined;
}

/** Room that is kept for a request that waits for it. */
export interface KeptRoom {
  /** Reserved for the first of these requests. */
  readonly of: RequestClass;
  readonly need: QuotaInformation;
  /** Milliseconds since the epoch from which on later requests of the same priority leave it alone. */
  from(): number;
  /** Who keeps it: the pools that could serve the request each do. */
  readonly owner: object;
  /** It is kept only while the scope is too full for the request, which waits for other scopes. */
  readonly onlyIfFull?: boolean;
}

/** The resources that a request needs. */
export interface Need {
  /** Counted in the limits of the pool and of the provider: nodes that are launched. */
  readonly need: QuotaInformation;
  /** Counted in the tenant's limit: also ready nodes that counted for another tenant. */
  readonly tenantNeed: QuotaInformation;
}

/** Who wants how much, and when. */
export interface Wish extends Need {
  readonly request: NodeRequest;
  /** The class of the request. */
  readonly of: RequestClass;
  /** Milliseconds since the epoch. */
  readonly now: number;
}

/** A sum of amounts by resource that changes. */
export class Tally {
  private readonly amounts = new Map<string, number>();

  get(resource: string): number {
    return this.amounts.get(resource) ?? 0;
  }

  add(use: QuotaInformation): void {
    this.change(use, 1);
  }

  subtract(use: QuotaInformation): void {
    this.change(use, -1);
  }

  /** What it says now. */
  read(): QuotaInformation {
    return QuotaInformation.use(Object.fromEntries(this.amounts));
  }

  private change(use: QuotaInformation, sign: 1 | -1): void {
    for (const [resource, amount] of use.entries()) {
      const sum = this.get(resource) + sign * amount;
      if (sum === 0) this.amounts.delete(resource);
      else this.amounts.set(resource, sum);
    }
  }
}

export class QuotaScope {
  /** Of every record, until it is removed. */
  readonly recorded = new Tally();
  /** Decided, but not recorded yet. */
  readonly held = new Tally();
  /** Of records whose nodes are on their way out. */
  readonly leaving = new Tally();
  /** Of nodes that are ready and that nobody has. */
  readonly free = new Tally();
  /** By class, then by owner. */
  private readonly kept = new Map<RequestClass, Map<object, KeptRoom>>();
  private readonly waiting = new Set<() => void>();
  private allowed = QuotaInformation.limit({});

  /** `name`: for people, e.g. `pool main of provider demo`. */
  constructor(
    readonly kind: ScopeKind,
    readonly key: string,
    readonly name: string,
  ) {}

  get limit(): QuotaInformation {
    return this.allowed;
  }

  setLimit(limit: QuotaInformation): void {
    this.allowed = limit;
    this.changed();
  }

  /** Why this does not fit now; undefined: it does. Room that is kept for requests that come before counts as used. */
  lack(wish: Wish): Lack | undefined {
    for (const [resource, needed] of needIn(this, wish).entries()) {
      const limit = this.allowed.get(resource);
      if (needed <= 0 || limit === Infinity) continue;
      const used = this.recorded.get(resource) + this.held.get(resource);
      if (used + needed > limit) return { scope: this, resource, limit, used, needed, keptFor: undefined };
      let left = limit - used - needed;
      for (const kept of this.keptBefore(wish)) {
        left -= kept.need.get(resource);
        if (left < 0) return { scope: this, resource, limit, used, needed, keptFor: kept.of.request.id };
      }
    }
    return undefined;
  }

  /** How much is missing until this fits, by resource, if all that is leaving had left. */
  missing(wish: Wish): Map<string, number> {
    const missing = new Map<string, number>();
    for (const [resource, needed] of needIn(this, wish).entries()) {
      const limit = this.allowed.get(resource);
      if (needed <= 0 || limit === Infinity) continue;
      let over = this.recorded.get(resource) + this.held.get(resource) - this.leaving.get(resource) + needed - limit;
      for (const kept of this.keptBefore(wish)) over += kept.need.get(resource);
      if (over > 0) missing.set(resource, over);
    }
    return missing;
  }

  keep(room: KeptRoom): void {
    const owners = this.kept.get(room.of) ?? new Map<object, KeptRoom>();
    owners.set(room.owner, room);
    this.kept.set(room.of, owners);
  }

  /** Returns true if the owner keeps room for the class. */
  keeps(of: RequestClass, owner: object): boolean {
    return this.kept.get(of)?.has(owner) === true;
  }

  /** Room that another owner keeps for the class stays. */
  forget(of: RequestClass, owner: object): void {
    const owners = this.kept.get(of);
    if (owners?.delete(owner) !== true) return;
    if (owners.size === 0) this.kept.delete(of);
    this.changed();
  }

  /** In use, or set aside for launches that are about to begin. */
  get instances(): number {
    return this.recorded.get('instances') + this.held.get('instances');
  }

  /** Returns true if there is no room for any node of this request, whatever it needs. */
  isFull(request: NodeRequest, now: number): boolean {
    let left = this.allowed.get('instances') - this.instances;
    if (left < 1) return true;
    for (const [of, owners] of this.kept) {
      const kept = this.keptBy(owners);
      if (kept === undefined || !precedes({ request: of.request, from: kept.from() }, request, now)) continue;
      left -= kept.need.get('instances');
      if (left < 1) return true;
    }
    return false;
  }

  /** Calls once when there may be more room than now. */
  wait(listener: () => void): void {
    this.waiting.add(listener);
  }

  /** To be called when there may be more room than before. */
  changed(): void {
    if (this.waiting.size === 0) return;
    const listeners = [...this.waiting];
    this.waiting.clear();
    for (const listener of listeners) listener();
  }

  private *keptBefore({ request, of: own, now }: Wish): Iterable<KeptRoom> {
    for (const [of, owners] of this.kept) {
      const kept = of === own ? undefined : this.keptBy(owners);
      if (kept === undefined) continue;
      if (precedes({ request: of.request, from: kept.from() }, request, now)) yield kept;
    }
  }

  /** The room that is kept for a class at the moment, whichever owner keeps it. */
  private keptBy(owners: ReadonlyMap<object, KeptRoom>): KeptRoom | undefined {
    for (const kept of owners.values()) if (kept.onlyIfFull !== true || this.isTooFullFor(kept.need)) return kept;
    return undefined;
  }

  private isTooFullFor(need: QuotaInformation): boolean {
    for (const [resource, needed] of need.entries()) {
      const used = this.recorded.get(resource) + this.held.get(resource);
      if (needed > 0 && used + needed > this.allowed.get(resource)) return true;
    }
    return false;
  }
}

/**
 * Returns true if `request` must leave alone what is kept: for a request of a better priority, or, once that has waited
 * for the backfill window, for one that comes earlier. Min-ready requests leave alone everything that is kept.
 */
export function precedes(
  kept: { readonly request: NodeRequest; readonly from: number },
  request: NodeRequest,
  now: number,
): boolean {
  if (kept.request.id === request.id) return false;
  if (request.requestor === MIN_READY_REQUESTOR) return true;
  if (compareRequests(kept.request, request) >= 0) return false;
  return kept.from <= now || priorityOf(kept.request.id) < priorityOf(request.id);
}

/** Returns the resources that count in this scope. */
export function needIn({ kind }: QuotaScope, { need, tenantNeed }: Need): QuotaInformation {
  return kind === 'tenant' ? tenantNeed : need;
}

/** For explanations. */
export function lackInWords({ scope, resource, limit, used, needed, keptFor }: Lack): string {
  const numbers = `${scope.name} uses ${used} of ${limit} ${resource}, ${needed} more are needed`;
  return keptFor === undefined
    ? numbers
    : `${numbers}; what is left is kept for request ${keptFor}, which comes before`;
}

/** Why a limit could never hold what is needed; undefined: it could. */
export function excessInWords(whose: string, limit: QuotaInformation, need: QuotaInformation): string | undefined {
  for (const [resource, needed] of need.entries()) {
    if (needed > limit.get(resource)) {
      return `it needs ${needed} ${resource}, and the limit of ${whose} is ${limit.get(resource)}`;
    }
  }
  return undefined;
}

/** Records of other programs may say nothing, or nonsense: each is one instance at least. */
export function useOf(resources: Resources | null): QuotaInformation {
  const amounts: Record<string, number> = { instances: 1 };
  for (const [name, amount] of Object.entries(resources ?? {})) {
    if (Number.isFinite(amount) && amount > 0) amounts[name] = amount;
  }
  return QuotaInformation.use(amounts);
}

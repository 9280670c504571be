/**
 * Counts the use of the limits of pools, providers and tenants: every node record until it is removed, and every launch
 * that is decided but not recorded yet. Updated by each event, so that a decision costs O(1) for any number of nodes.
 * docs/how-it-works.md explains why limits hold although several launchers decide at the same time.
 */

import { Index, type Change, type NodeEntry, type Store } from '@nodepool/store';
import { QuotaInformation, type Node, type NodeData, type NodeRequest, type Resources } from '@nodepool/core';
import { ServiceOrder } from '../fairness/service-order.js';
import { isCountedAs, roleOf, type CountedNode } from './counted-node.js';
import { needIn, useOf, type Need } from './need.js';
import { QuotaScope, type Demand, type ScopeKind, type Shortfall } from './quota-scope.js';

/** Capacity held for nodes whose records are being created. The owner must release it exactly once. */
export interface CapacityHold {
  release(): void;
}

/** The pool in which nodes are launched. */
export interface PoolRef {
  readonly provider: string;
  readonly pool: string;
  /** True if the limits of the provider do not count. */
  readonly ignoreProviderQuota: boolean;
}

/** A ready node that could be evicted. */
export interface FreeNode {
  readonly entry: NodeEntry;
  readonly use: QuotaInformation;
  isIn(scope: QuotaScope): boolean;
}

export interface Amounts {
  readonly limit: Resources;
  readonly used: Resources;
}

/** Separates names in a key; no name contains it. */
const SEPARATOR = '\n';
/** Begins the keys of tenants' scopes. */
const TENANTS = `tenant${SEPARATOR}`;

export class QuotaLedger {
  private readonly scopes = new Map<string, QuotaScope>();
  private readonly nodes = new Map<string, CountedNode>();
  private readonly tentative = new Index<CountedNode>(({ scopes, role }) =>
    role === 'tentative' ? scopes : undefined,
  );
  private readonly free = new Index<CountedNode>(({ scopes, role }) => (role === 'free' ? scopes : undefined));
  /** Nodes that do not count although their records remain, with the keys of their pools. */
  private readonly released = new Map<string, string>();
  private tenants: ReadonlyMap<string, Resources> = new Map();
  /** The scopes of each pool, which remain the same. */
  private readonly scopesOfPools = new WeakMap<PoolRef, readonly QuotaScope[]>();

  constructor(
    private readonly store: Store,
    readonly order: ServiceOrder = new ServiceOrder(),
  ) {
    store.nodes.onChange(this.count);
    for (const after of store.nodes.all()) this.count({ id: after.id, after });
  }

  setPoolLimit(provider: string, pool: string, limit: QuotaInformation): void {
    this.poolScope(provider, pool).setLimit(limit);
  }

  /** Sets the limit that the provider shares with the other providers in the same project of the cloud. */
  setProviderLimit(provider: string, limit: QuotaInformation, sharedWith: Iterable<string> = []): void {
    const neighbours = Array.from(sharedWith, (other) => this.providerScope(other));
    this.providerScope(provider).setLimit(limit, neighbours);
  }

  /** Replaces the limits of all tenants. Tenants that are not in `limits` are unlimited. */
  setTenantLimits(limits: ReadonlyMap<string, Resources>): void {
    const before = this.tenants;
    this.tenants = limits;
    for (const tenant of new Set([...before.keys(), ...limits.keys()])) {
      this.tenantScope(tenant).setLimit(QuotaInformation.limit(limits.get(tenant) ?? {}));
    }
  }

  /**
   * Stops counting a node that the cloud is deleting for too long. Returns false if as many nodes of its pool as its
   * limit allows do not count already: whatever blocks their deletions may block all, and the cloud must not fill up.
   */
  release(id: string): boolean {
    const entry = this.store.nodes.get(id);
    if (entry === undefined || this.released.has(id) || roleOf(entry.node, entry.locked) !== 'leaving') return false;
    const scope = this.poolScope(entry.node.provider ?? '', entry.node.pool ?? '');
    const others = [...this.released.values()].filter((key) => key === scope.key).length;
    if (others >= scope.limit.get('instances')) return false;
    this.released.set(id, scope.key);
    this.count({ id, after: entry });
    return true;
  }

  /** Returns the limits of the pool and the amounts that its nodes use. */
  amountsOf({ provider, pool }: PoolRef): Amounts {
    return amountsOf(this.poolScope(provider, pool));
  }

  /** Returns the limits of the cloud and the amounts that nodes of all pools of the provider use. */
  amountsOfProvider(provider: string): Amounts {
    return amountsOf(this.providerScope(provider));
  }

  /** Returns the amounts that the limits of the pool leave, whatever its provider leaves. */
  freeIn({ provider, pool }: PoolRef): Resources {
    return this.poolScope(provider, pool).available;
  }

  freeInProvider(provider: string): Resources {
    return this.providerScope(provider).available;
  }

  /** Returns the amounts that the limits of tenants leave, for the tenants that have limits. */
  freeOfTenants(): ReadonlyMap<string, Resources> {
    return new Map([...this.tenants.keys()].map((tenant) => [tenant, this.tenantScope(tenant).available]));
  }

  /** Returns the limits that apply to a tenant's nodes in this pool. */
  scopesOf(ref: PoolRef, tenant: string | null): readonly QuotaScope[] {
    let scopes = this.scopesOfPools.get(ref);
    if (scopes === undefined) {
      const { provider, pool, ignoreProviderQuota } = ref;
      scopes = ignoreProviderQuota
        ? [this.poolScope(provider, pool)]
        : [this.poolScope(provider, pool), this.providerScope(provider)];
      this.scopesOfPools.set(ref, scopes);
    }
    return this.isLimited(tenant) ? [...scopes, this.tenantScope(tenant)] : scopes;
  }

  /** Returns the shortfall of each scope that the demand exceeds. */
  shortfalls(scopes: readonly QuotaScope[], demand: Demand): Shortfall[] {
    const shortfalls: Shortfall[] = [];
    for (const scope of scopes) {
      const shortfall = scope.shortfall(demand);
      if (shortfall !== undefined) shortfalls.push(shortfall);
    }
    return shortfalls;
  }

  /** Holds capacity for launches that are about to be recorded. The caller must have checked that there is enough. */
  hold(scopes: readonly QuotaScope[], need: Need): CapacityHold {
    for (const scope of scopes) scope.held.add(needIn(scope, need));
    let isHeld = true;
    return {
      release: () => {
        if (!isHeld) return;
        isHeld = false;
        for (const scope of scopes) {
          scope.held.add(needIn(scope, need), -1);
          scope.changed();
        }
      },
    };
  }

  isLimited(tenant: string | null): tenant is string {
    return tenant !== null && this.tenants.has(tenant);
  }

  /** Confirms a request's records up to `lastId`, which need `need`. Returns the shortfall if they must be undone. */
  confirm(ref: PoolRef, request: NodeRequest, lastId: string, need: Need): Shortfall | undefined {
    return this.excess(ref, request, lastId, need, () => true);
  }

  /**
   * Returns true if all records and all held launches of this process together exceed no limit. If this holds with
   * every record that ZooKeeper has numbered, the held launches may be recorded as confirmed.
   */
  fits(ref: PoolRef, tenant: string | null): boolean {
    return this.scopesOf(ref, tenant).every((scope) => scope.hasRoomForHeld());
  }

  /**
   * Returns the shortfall of a limit that records with ids up to `lastId` exceed only until deletions in progress end.
   * The launch of a node with this need must not create another instance before that.
   */
  retryShortfall(ref: PoolRef, request: NodeRequest, lastId: string, need: Need): Shortfall | undefined {
    return this.excess(ref, request, lastId, need, (scope, resource) => scope.leaving.get(resource) > 0);
  }

  private excess(
    ref: PoolRef,
    { tenant_name: tenant }: NodeRequest,
    lastId: string,
    need: Need,
    counts: (scope: QuotaScope, resource: string) => boolean,
  ): Shortfall | undefined {
    for (const scope of this.scopesOf(ref, tenant)) {
      // The id of a ready node does not show when it was handed over, so every record counts in this case.
      const counted = needIn(scope, need);
      const isInOrder = counted === need.need;
      const needs = counted.entries();
      for (let index = 0; index < needs.length; index += 1) {
        const each = needs[index];
        if (each === undefined || each[1] <= 0) continue;
        const resource = each[0];
        const needed = each[1];
        const tentative = ({ key }: QuotaScope): number => (isInOrder ? this.tentativeAfter(lastId, key, resource) : 0);
        const limit = scope.limitOf(resource, tentative);
        let used = scope.recorded.get(resource);
        if (used <= limit || !counts(scope, resource)) continue;
        used -= tentative(scope);
        if (used > limit) return { scope, resource, limit, used: used - needed, needed, reservedFor: undefined };
      }
    }
    return undefined;
  }

  /**
   * Returns the change that frees a ready node. As in the Python Nodepool, the node still counts for its last tenant.
   * If that exceeds a limit of the tenant, the hand-over was never confirmed, and the node counts for no tenant.
   */
  changeToFree({ tenant_name: tenant }: Pick<Node, 'tenant_name'>): Partial<NodeData> {
    const free = { allocated_to: null };
    if (!this.isLimited(tenant)) return free;
    const { limit, recorded } = this.tenantScope(tenant);
    const isExceeded = Object.keys(limit.toResources()).some(
      (resource) => recorded.get(resource) > limit.get(resource),
    );
    return isExceeded ? { ...free, tenant_name: null } : free;
  }

  /** Yields the ready nodes in this scope that no request has, oldest first. */
  *freeNodes(scope: QuotaScope): Iterable<FreeNode> {
    for (const id of this.free.ids(scope.key)) {
      const counted = this.nodes.get(id);
      const entry = this.store.nodes.get(id);
      if (counted?.role !== 'free' || entry === undefined) continue;
      const { use, scopes } = counted;
      yield { entry, use, isIn: ({ key }) => scopes.includes(key) };
    }
  }

  /** Sums the tentative records that are newer than `lastId`. */
  private tentativeAfter(lastId: string, scopeKey: string, resource: string): number {
    const ids = this.tentative.ids(scopeKey);
    let sum = 0;
    for (let index = ids.length - 1; index >= 0; index -= 1) {
      const id = ids[index];
      if (id === undefined || id <= lastId) break;
      sum += this.nodes.get(id)?.use.get(resource) ?? 0;
    }
    return sum;
  }

  private readonly count = ({ id, after: entry }: Pick<Change<NodeEntry>, 'id' | 'after'>): void => {
    const before = this.nodes.get(id);
    if (entry === undefined) this.released.delete(id);
    const isReleased = entry !== undefined && this.released.has(id) && roleOf(entry.node, entry.locked) === 'leaving';
    const after = entry === undefined || isReleased ? undefined : this.counted(entry, before);
    if (before === after) return;
    // `counted` keeps the list of a node that counts as before.
    const isOnlyRole = before?.scopes === after?.scopes;
    if (before !== undefined) this.add(before, -1, isOnlyRole);
    if (after === undefined) this.nodes.delete(id);
    else {
      this.nodes.set(id, after);
      this.add(after, 1, isOnlyRole);
    }
    if (before?.role === 'tentative' || after?.role === 'tentative') this.tentative.update(before, after);
    if (before?.role === 'free' || after?.role === 'free') this.free.update(before, after);
    if (before === undefined) return;
    // A removed node frees capacity, a free node can be evicted, a node whose deletion ended may continue to count, and
    // a node may count in other scopes or use less than before.
    if (isOnlyRole && after?.role !== 'free' && before.role !== 'leaving') return;
    for (const key of before.scopes) {
      this.scopes.get(key)?.changed();
      this.dropUnused(key);
    }
  };

  private add({ scopes, use, role }: CountedNode, sign: 1 | -1, isOnlyRole: boolean): void {
    const ofRole = role === 'free' || role === 'leaving' ? role : undefined;
    if (isOnlyRole && ofRole === undefined) return;
    for (let index = 0; index < scopes.length; index += 1) {
      const scope = this.scopes.get(scopes[index] ?? '');
      if (!isOnlyRole) scope?.recorded.add(use, sign);
      if (ofRole !== undefined) scope?.[ofRole].add(use, sign);
    }
  }

  /** Returns `before` if it is still correct, or its scopes and use if only the role has changed. */
  private counted({ id, node, locked }: NodeEntry, before: CountedNode | undefined): CountedNode {
    const role = roleOf(node, locked);
    if (before !== undefined && isCountedAs(node, before.node)) {
      const { scopes, use } = before;
      return before.role === role ? before : { id, node, role, scopes, use };
    }
    const { provider, pool, tenant_name: tenant } = node;
    const keys: string[] = [];
    if (provider !== null) keys.push(this.providerScope(provider).key);
    if (provider !== null && pool !== null) keys.push(this.poolScope(provider, pool).key);
    if (tenant !== null) keys.push(this.tenantScope(tenant).key);
    // A list that has grown keeps room for more.
    const scopes = keys.slice();
    return { id, node, role, scopes, use: useOf(node.resources) };
  }

  private poolScope(provider: string, pool: string): QuotaScope {
    const key = `pool${SEPARATOR}${provider}${SEPARATOR}${pool}`;
    return this.scopes.get(key) ?? this.newScope('pool', key, `pool ${pool} of provider ${provider}`);
  }

  private providerScope(provider: string): QuotaScope {
    const key = `provider${SEPARATOR}${provider}`;
    return this.scopes.get(key) ?? this.newScope('provider', key, `provider ${provider}`);
  }

  private tenantScope(tenant: string): QuotaScope {
    const key = tenantKey(tenant);
    return this.scopes.get(key) ?? this.newScope('tenant', key, `tenant ${tenant}`);
  }

  private newScope(kind: ScopeKind, key: string, name: string): QuotaScope {
    const scope = new QuotaScope(kind, key, name, this.order);
    this.scopes.set(key, scope);
    return scope;
  }

  /** Removes the scope of a tenant without nodes and limits, because requestors may name any number of tenants. */
  private dropUnused(key: string): void {
    if (!key.startsWith(TENANTS) || this.tenants.has(key.slice(TENANTS.length))) return;
    // Every node uses an instance.
    if (this.scopes.get(key)?.recorded.get('instances') === 0) this.scopes.delete(key);
  }
}

function amountsOf({ limit, recorded }: QuotaScope): Amounts {
  return { limit: limit.toResources(), used: recorded.read().toResources() };
}

function tenantKey(tenant: string): string {
  return `${TENANTS}${tenant}`;
}

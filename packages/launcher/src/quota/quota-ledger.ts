/**
 * What nodes use of the limits of pools, providers and tenants: every record counts until it is removed, and so does what
 * was decided but not recorded yet. Kept up to date event by event; a decision costs O(1), whatever the number of nodes.
 *
 * Limits hold although several launchers decide at the same time, without a lock, because the records themselves are the
 * reservations. A request is accepted with records in state `init`. These are tentative: nothing is begun before they are
 * confirmed, which they are if everything fits the limit of each scope, except for tentative records that were made
 * later. If not, the acceptance is taken back. Ids are numbers in sequence, and whatever was made before our records
 * shows here by then (see `NodeStore.known`). Hence what is confirmed never exceeds the greatest limit that anybody knew:
 * take, at any time, the highest of the confirmed records of a scope. When it was confirmed, all the others were there
 * already, for their ids are lower, and they are still there now; so they were counted, and all of them fitted. And
 * somebody always gets on: of those who try at the same time, the one with the lowest ids counts none of the others.
 * Ready nodes that are handed to another tenant are confirmed against everything that counts for that tenant. Of these,
 * two may refuse each other: each tries again after a time at random.
 */

import { Index, type NodeEntry, type Store } from '@nodepool/store';
import { QuotaInformation, type Node, type NodeData, type NodeRequest, type Resources } from '@nodepool/core';
import { QuotaScope, needIn, useOf, type Lack, type Need, type ScopeKind, type Wish } from './quota-scope.js';

/** Room that was set aside for nodes whose records are being made. Give it back exactly once. */
export interface Reservation {
  release(): void;
}

/** Where nodes are to be made. */
export interface Place {
  readonly provider: string;
  readonly pool: string;
  /** The limits of the provider do not count. */
  readonly ignoreProviderQuota: boolean;
}

/** `tentative`: not confirmed; `free`: it could make room; `leaving`: there will soon be room in its place. */
type Role = 'tentative' | 'busy' | 'free' | 'leaving';

/** A record as it is counted. */
interface CountedNode {
  readonly id: string;
  readonly node: Node;
  readonly use: QuotaInformation;
  readonly role: Role;
  /** Keys of its scopes. */
  readonly scopes: readonly string[];
}

/** A node that could make room. */
export interface FreeNode {
  readonly entry: NodeEntry;
  readonly use: QuotaInformation;
  isIn(scope: QuotaScope): boolean;
}

/** A limit, and what is used of it. */
export interface Amounts {
  readonly limit: Resources;
  readonly used: Resources;
}

/** Between names in a key; no name has it. */
const SEPARATOR = '\n';

export class QuotaLedger {
  private readonly scopes = new Map<string, QuotaScope>();
  private readonly nodes = new Map<string, CountedNode>();
  private readonly members = new Index<CountedNode>(({ scopes }) => scopes);
  private readonly free = new Index<CountedNode>(({ scopes, role }) => (role === 'free' ? scopes : []));
  private tenants: ReadonlyMap<string, Resources> = new Map();

  constructor(private readonly store: Store) {
    store.nodes.onChange(({ id, after }) => this.count(id, after));
    for (const entry of store.nodes.all()) this.count(entry.id, entry);
  }

  setPoolLimit(provider: string, pool: string, limit: QuotaInformation): void {
    this.poolScope(provider, pool).setLimit(limit);
  }

  setProviderLimit(provider: string, limit: QuotaInformation): void {
    this.providerScope(provider).setLimit(limit);
  }

  /** The limits of tenants by name; other tenants have none. */
  setTenantLimits(limits: ReadonlyMap<string, Resources>): void {
    const before = this.tenants;
    this.tenants = limits;
    for (const tenant of new Set([...before.keys(), ...limits.keys()])) {
      this.tenantScope(tenant).setLimit(QuotaInformation.limit(limits.get(tenant) ?? {}));
    }
  }

  /** What nodes of the pool use of its limits. */
  amountsOf({ provider, pool }: Place): Amounts {
    return amountsOf(this.poolScope(provider, pool));
  }

  /** What nodes of all pools of the provider use of what the cloud allows. */
  amountsOfProvider(provider: string): Amounts {
    return amountsOf(this.providerScope(provider));
  }

  /** The limits that count for nodes of a place, made for a tenant. */
  scopesOf({ provider, pool, ignoreProviderQuota }: Place, tenant: string | null): QuotaScope[] {
    const scopes = [this.poolScope(provider, pool)];
    if (!ignoreProviderQuota) scopes.push(this.providerScope(provider));
    if (this.isLimited(tenant)) scopes.push(this.tenantScope(tenant));
    return scopes;
  }

  /** Why this does not fit now, one reason for each scope in which it does not. */
  lacks(scopes: readonly QuotaScope[], wish: Wish): Lack[] {
    const lacks: Lack[] = [];
    for (const scope of scopes) {
      const lack = scope.lack(wish);
      if (lack !== undefined) lacks.push(lack);
    }
    return lacks;
  }

  /** Sets room aside; whether there is enough has been asked before. */
  reserve(scopes: readonly QuotaScope[], need: Need): Reservation {
    for (const scope of scopes) scope.held.add(needIn(scope, need));
    let isHeld = true;
    return {
      release: () => {
        if (!isHeld) return;
        isHeld = false;
        for (const scope of scopes) {
          scope.held.subtract(needIn(scope, need));
          scope.changed();
        }
      },
    };
  }

  /** Returns true if the tenant has limits. */
  isLimited(tenant: string | null): tenant is string {
    return tenant !== null && this.tenants.has(tenant);
  }

  /** Confirms records up to this id, which have this need; else the reason why they must be taken back. */
  confirm(place: Place, request: NodeRequest, lastId: string, need: Need): Lack | undefined {
    return this.excess(place, request, lastId, need, () => true);
  }

  /**
   * Returns a limit that is exceeded by records up to this id, some of which are on their way out: a node of this need
   * gets no other instance before they are removed.
   */
  retryLack(place: Place, request: NodeRequest, lastId: string, need: Need): Lack | undefined {
    return this.excess(place, request, lastId, need, (scope, resource) => scope.leaving.get(resource) > 0);
  }

  private excess(
    place: Place,
    { tenant_name: tenant }: NodeRequest,
    lastId: string,
    need: Need,
    counts: (scope: QuotaScope, resource: string) => boolean,
  ): Lack | undefined {
    for (const scope of this.scopesOf(place, tenant)) {
      // A ready node has an old id, which does not say when it was handed over: every record counts then.
      const isInOrder = needIn(scope, need) === need.need;
      for (const [resource, needed] of needIn(scope, need).entries()) {
        const limit = scope.limit.get(resource);
        let used = scope.recorded.get(resource);
        if (needed <= 0 || used <= limit || !counts(scope, resource)) continue;
        if (isInOrder) used -= this.tentativeAfter(lastId, scope, resource);
        if (used > limit) return { scope, resource, limit, used: used - needed, needed, keptFor: undefined };
      }
    }
    return undefined;
  }

  /**
   * Returns what makes a ready node free. It still counts for its last tenant, as with the existing Nodepool, unless that
   * exceeds a limit of the tenant: then its hand-over was never confirmed, and it counts for no tenant.
   */
  freeing({ tenant_name: tenant }: Pick<Node, 'tenant_name'>): Partial<NodeData> {
    const free = { allocated_to: null };
    if (!this.isLimited(tenant)) return free;
    const { limit, recorded } = this.tenantScope(tenant);
    const isExceeded = Object.keys(limit.toResources()).some(
      (resource) => recorded.get(resource) > limit.get(resource),
    );
    return isExceeded ? { ...free, tenant_name: null } : free;
  }

  /** Nodes in this scope that are ready and that nobody has, oldest first. */
  *freeNodes(scope: QuotaScope): Iterable<FreeNode> {
    for (const id of this.free.ids(scope.key)) {
      const counted = this.nodes.get(id);
      const entry = this.store.nodes.get(id);
      if (counted?.role !== 'free' || entry === undefined) continue;
      const { use, scopes } = counted;
      yield { entry, use, isIn: ({ key }) => scopes.includes(key) };
    }
  }

  /** Looks only at records that are newer. */
  private tentativeAfter(lastId: string, scope: QuotaScope, resource: string): number {
    const ids = this.members.ids(scope.key);
    let sum = 0;
    for (let index = ids.length - 1; index >= 0; index -= 1) {
      const id = ids[index];
      if (id === undefined || id <= lastId) break;
      const node = this.nodes.get(id);
      if (node?.role === 'tentative') sum += node.use.get(resource);
    }
    return sum;
  }

  private count(id: string, entry: NodeEntry | undefined): void {
    const before = this.nodes.get(id);
    const after = entry === undefined ? undefined : this.counted(entry, before);
    if (before === after) return;
    if (before !== undefined) this.add(before, 'subtract');
    if (after === undefined) this.nodes.delete(id);
    else {
      this.nodes.set(id, after);
      this.add(after, 'add');
    }
    this.members.update(before, after);
    this.free.update(before, after);
    if (before === undefined) return;
    for (const key of before.scopes) {
      // What is gone has made room, what is free could, and what was to leave may stay.
      if (after === undefined || after.role === 'free' || before.role === 'leaving') this.scopes.get(key)?.changed();
      this.dropUnused(key);
    }
  }

  private add({ scopes, use, role }: CountedNode, change: 'add' | 'subtract'): void {
    for (const key of scopes) {
      const scope = this.scopes.get(key);
      scope?.recorded[change](use);
      if (role === 'free' || role === 'leaving') scope?.[role][change](use);
    }
  }

  /** `before` if it still is right. */
  private counted({ id, node, locked }: NodeEntry, before: CountedNode | undefined): CountedNode {
    const role = roleOf(node, locked);
    if (before !== undefined && countsAs(node, before.node) && before.role === role) return before;
    const { provider, pool, tenant_name: tenant } = node;
    const scopes: string[] = [];
    if (provider !== null) scopes.push(this.providerScope(provider).key);
    if (provider !== null && pool !== null) scopes.push(this.poolScope(provider, pool).key);
    if (tenant !== null) scopes.push(this.tenantScope(tenant).key);
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
    const scope = new QuotaScope(kind, key, name);
    this.scopes.set(key, scope);
    return scope;
  }

  /** Requestors invent tenants; pools and providers are ours. */
  private dropUnused(key: string): void {
    if (!key.startsWith(tenantKey('')) || this.members.ids(key).length > 0) return;
    if (!this.tenants.has(key.slice(tenantKey('').length))) this.scopes.delete(key);
  }
}

function amountsOf({ limit, recorded }: QuotaScope): Amounts {
  return { limit: limit.toResources(), used: recorded.read().toResources() };
}

function tenantKey(tenant: string): string {
  return `tenant${SEPARATOR}${tenant}`;
}

function roleOf({ state, allocated_to: request }: Node, locked: boolean): Role {
  switch (state) {
    case 'init':
      return 'tentative';
    case 'ready':
      if (request !== null) return 'busy';
      // Somebody is taking it, or makes room with it: what for shows in a moment.
      return locked ? 'leaving' : 'free';
    case 'used':
    case 'failed':
    case 'aborted':
    case 'deleting':
    case 'deleted':
      return 'leaving';
    default:
      return 'busy';
  }
}

/** Whether both count in the same scopes with the same amounts. */
function countsAs(a: Node, b: Node): boolean {
  if (a === b) return true;
  if (a.provider !== b.provider || a.pool !== b.pool || a.tenant_name !== b.tenant_name) return false;
  const names = Object.keys(a.resources ?? {});
  if (names.length !== Object.keys(b.resources ?? {}).length) return false;
  return names.every((name) => a.resources?.[name] === b.resources?.[name]);
}

/**
 * Sums the use and the open requests of tenants and projects from the records, so that all launchers have the same
 * sums. Each change of a record costs O(1); no decision depends on the number of nodes.
 */

import {
  LAUNCH_TEST_REQUESTOR,
  MIN_READY_REQUESTOR,
  projectOf,
  type Clock,
  type Node,
  type NodeRequest,
  type QuotaInformation,
} from '@nodepool/core';
import type { FairShares } from '@nodepool/config';
import type { NodeEntry, RequestEntry, Store } from '@nodepool/store';
import { Account, SHARED_RESOURCES, sharedAmounts, type Amounts } from './account.js';
import type { Standing } from './fair-order.js';

/** Amounts of the shared resources; `Infinity` for those without a limit. */
export type Capacity = Readonly<Amounts>;

/** A node as it counts. */
interface CountedUse {
  readonly tenant: string | null;
  readonly project: string | null;
  readonly resources: Node['resources'];
  readonly amounts: Amounts;
}

export class FairUse {
  private readonly accounts = new Map<string | null, Account>();
  private readonly nodes = new Map<string, CountedUse>();
  private readonly open = new Map<string, string | null>();
  /** Sum of the current use of all tenants, which stands for the capacity if no resource has a limit. */
  private readonly total: Amounts = [0, 0, 0];
  /** Sum of the weights of the active tenants; undefined if it must be computed again. */
  private activeWeight: number | undefined;
  private readonly unsubscribe: (() => void)[];

  constructor(
    store: Pick<Store, 'nodes' | 'requests'>,
    private readonly clock: Pick<Clock, 'now'>,
    private readonly capacity: () => Capacity,
    /** Returns the resources that count for the tenant of a node; undefined if none does. */
    private readonly useOf: (entry: NodeEntry) => QuotaInformation | undefined,
    private shares: FairShares,
  ) {
    this.unsubscribe = [
      store.nodes.onChange(({ id, after }) => this.count(id, after)),
      store.requests.onChange(({ id, after }) => this.countRequest(id, after)),
    ];
    for (const entry of store.nodes.all()) this.count(entry.id, entry);
    for (const entry of store.requests.all()) this.countRequest(entry.id, entry);
  }

  apply(shares: FairShares): void {
    this.shares = shares;
    this.activeWeight = undefined;
  }

  stop(): void {
    for (const unsubscribe of this.unsubscribe) unsubscribe();
  }

  /** Counts the need of a request until its records count. The returned function ends that. */
  hold({ tenant_name: tenant, ...request }: NodeRequest, need: QuotaInformation): () => void {
    const held = { tenant, project: projectOf(request), resources: null, amounts: sharedAmounts(need) };
    this.add(held, 1);
    return () => this.add(held, -1);
  }

  tenant(tenant: string | null): Standing {
    const weight = this.weightOf(tenant);
    const account = this.accounts.get(tenant);
    // A tenant without a request or node would have its share if it had one.
    const active = this.totalWeight() + (account?.isActive === true ? 0 : weight);
    return { weight, used: this.dominantShare(account), entitled: weight / active };
  }

  project(tenant: string | null, project: string | null): Standing {
    const weight = (project === null ? undefined : this.ofTenant(tenant)?.projects.get(project)) ?? 1;
    const account = this.accounts.get(tenant)?.projects.get(project ?? '');
    return { weight, used: this.dominantShare(account), entitled: weight };
  }

  get perNode(): number {
    const [instances] = this.capacity();
    return 1 / Math.max(1, Number.isFinite(instances) ? instances : this.total[0]);
  }

  /** Yields the past use of each tenant and project that has some. Removes accounts without any use. */
  *pastUses(): Iterable<{
    readonly tenant: string | null;
    readonly project?: string;
    readonly past: Readonly<Amounts>;
  }> {
    const now = this.clock.now();
    const { halfLifeMs } = this.shares;
    for (const [tenant, account] of this.accounts) {
      for (const [project, its] of account.projects) {
        if (its.isIdle(now, halfLifeMs)) account.projects.delete(project);
        else yield { tenant, project, past: its.pastUse(now, halfLifeMs) };
      }
      if (account.isIdle(now, halfLifeMs)) this.accounts.delete(tenant);
      else yield { tenant, past: account.pastUse(now, halfLifeMs) };
    }
  }

  /** Replaces the past use of a tenant or project with that of an earlier time (ms since the epoch). */
  restore(tenant: string | null, project: string | undefined, past: Readonly<Amounts>, at: number): void {
    const account = this.account(tenant);
    (project === undefined ? account : projectAccount(account, project, at)).restore(past, at);
  }

  /** Returns the greatest part that the account uses of a resource with a limit. */
  private dominantShare(account: Account | undefined): number {
    if (account === undefined) return 0;
    const used = account.used(this.clock.now(), this.shares.halfLifeMs);
    const limits = this.capacity();
    const capacity = limits.some((limit) => Number.isFinite(limit)) ? limits : this.total;
    let share = 0;
    for (let index = 0; index < SHARED_RESOURCES.length; index += 1) {
      const limit = capacity[index] ?? Infinity;
      if (limit > 0 && limit < Infinity) share = Math.max(share, (used[index] ?? 0) / limit);
    }
    return share;
  }

  private weightOf(tenant: string | null): number {
    return this.ofTenant(tenant)?.share ?? this.shares.defaultShare;
  }

  private ofTenant(tenant: string | null): ReturnType<FairShares['tenants']['get']> {
    return tenant === null ? undefined : this.shares.tenants.get(tenant);
  }

  private totalWeight(): number {
    if (this.activeWeight === undefined) {
      this.activeWeight = 0;
      for (const [tenant, { isActive }] of this.accounts) if (isActive) this.activeWeight += this.weightOf(tenant);
    }
    return this.activeWeight;
  }

  private count(id: string, entry: NodeEntry | undefined): void {
    const before = this.nodes.get(id);
    const after = entry === undefined ? undefined : this.countedUse(entry, before);
    if (before === after) return;
    if (before !== undefined) this.add(before, -1);
    if (after === undefined) this.nodes.delete(id);
    else {
      this.nodes.set(id, after);
      this.add(after, 1);
    }
  }

  /** Returns how the node counts: `before` if that has not changed, undefined if no requestor uses the node. */
  private countedUse(entry: NodeEntry, before: CountedUse | undefined): CountedUse | undefined {
    const { tenant_name: tenant, project = null, resources, requestor } = entry.node;
    const use = isInternal(requestor) ? undefined : this.useOf(entry);
    if (use === undefined) return undefined;
    if (before?.tenant === tenant && before.project === project && before.resources === resources) return before;
    return { tenant, project, resources, amounts: sharedAmounts(use) };
  }

  private add({ tenant, project, amounts }: CountedUse, sign: 1 | -1): void {
    const now = this.clock.now();
    const account = this.account(tenant);
    this.change(account, () => account.add(amounts, sign, now, this.shares.halfLifeMs));
    projectAccount(account, project ?? '', now).add(amounts, sign, now, this.shares.halfLifeMs);
    for (const index of [0, 1, 2] as const) this.total[index] = Math.max(0, this.total[index] + sign * amounts[index]);
  }

  private countRequest(id: string, entry: RequestEntry | undefined): void {
    const request = entry?.request;
    const isOpen = request?.state === 'requested' || request?.state === 'pending';
    const counts = request !== undefined && isOpen && !isInternal(request.requestor);
    const before = this.open.get(id);
    if (counts === this.open.has(id) && (!counts || before === request.tenant_name)) return;
    if (before !== undefined) this.addRequest(before, -1);
    if (!counts) this.open.delete(id);
    else {
      this.open.set(id, request.tenant_name);
      this.addRequest(request.tenant_name, 1);
    }
  }

  private addRequest(tenant: string | null, sign: 1 | -1): void {
    const account = this.account(tenant);
    this.change(account, () => {
      account.requests += sign;
    });
  }

  private change(account: Account, change: () => void): void {
    const wasActive = account.isActive;
    change();
    if (account.isActive !== wasActive) this.activeWeight = undefined;
  }

  private account(tenant: string | null): Account {
    let account = this.accounts.get(tenant);
    if (account === undefined) {
      account = new Account(this.clock.now());
      this.accounts.set(tenant, account);
    }
    return account;
  }
}

function projectAccount({ projects }: Account, project: string, now: number): Account {
  let account = projects.get(project);
  if (account === undefined) {
    account = new Account(now);
    projects.set(project, account);
  }
  return account;
}

/** Returns true for the requests with which launchers keep nodes ready or test images, which have no share. */
export function isInternal(requestor: string | null): boolean {
  return requestor === MIN_READY_REQUESTOR || requestor === LAUNCH_TEST_REQUESTOR;
}

/**
 * The number of nodes of a label that launchers can provide in addition to those that exist. It is an estimate from
 * what launchers publish: never more than their limits leave, and one at a time where they tell no number.
 */

import type { Resources } from '@nodepool/core';
import { SERVES_REQUESTS, describePool, type PoolComponentData } from '@nodepool/store';

/** A pool as its launcher tells it. Resources without a limit are not in `free`. */
export interface PoolFree {
  readonly provider: string;
  readonly pool: string;
  readonly ignoresProviderQuota: boolean;
  readonly free: Resources;
  /** Need of a node, by label. */
  readonly needs: Readonly<Record<string, Resources>>;
}

/** The amounts that the limits of one launcher leave. */
export interface LauncherFree {
  readonly pools: readonly PoolFree[];
  readonly providers: ReadonlyMap<string, Resources>;
  readonly tenants: ReadonlyMap<string, Resources>;
}

/** The demand of a scale set. */
export interface Consumer {
  readonly label: string;
  readonly tenant: string | undefined;
}

export interface CapacityFacts {
  readonly pools: readonly PoolComponentData[];
  readonly launchers: readonly LauncherFree[];
  /** Number of ready nodes of the label that no request has; they count against the limits already. */
  readonly ready: number;
  /** All scale sets in service, in a fixed order. */
  readonly consumers: readonly Consumer[];
}

export interface FreeCapacity {
  readonly nodes: number;
  /** A part of a sentence, e.g. `provider aws has room for 3 nodes (its cores)`. */
  readonly reason: string;
}

/** Capacity of a cloud without limits. */
const UNLIMITED = 100_000;
const ONE: Resources = { instances: 1 };

/** Returns the number of further nodes for one of the consumers. Consumers of the same limit share what it leaves. */
export function freeCapacity(consumer: Consumer, facts: CapacityFacts): FreeCapacity {
  const { label } = consumer;
  const shared = shareOf(facts.ready, consumer, facts, (each) => each.label === label);
  const ready = shared === 0 ? '' : `${shared} ready nodes; `;
  const offering = facts.pools.filter(({ supported_labels: labels }) => labels.includes(label));
  if (offering.length === 0) return { nodes: 0, reason: `no launcher offers the label ${label}` };
  const open = openPools(label, facts);
  if (open.length === 0) {
    const answers = offering.map((pool) => `${nameOf(pool)} ${describePool(pool, [label])}`);
    return { nodes: shared, reason: `${ready}${[...new Set(answers)].slice(0, 3).join('; ')}` };
  }
  const providers = [...new Set(open.map(({ provider_name: provider }) => provider))];
  const parts = providers.map((provider) => ofProvider(provider, consumer, facts));
  const launchable = parts.reduce((sum, { nodes }) => sum + nodes, 0) + shared;
  const ofTenant = tenantRoom(consumer, facts);
  if (ofTenant !== undefined && ofTenant.nodes < launchable) return ofTenant;
  return { nodes: Math.min(UNLIMITED, launchable), reason: ready + parts.map(({ reason }) => reason).join('; ') };
}

function openPools(label: string, { pools }: CapacityFacts): readonly PoolComponentData[] {
  return pools.filter(
    (pool) => pool.supported_labels.includes(label) && describePool(pool, [label]) === SERVES_REQUESTS,
  );
}

/** Several launchers can serve the same pool; what the one tells that leaves least counts. */
function ofProvider(provider: string, consumer: Consumer, facts: CapacityFacts): FreeCapacity {
  const { label } = consumer;
  const told = facts.launchers.filter(({ pools }) => pools.some((pool) => pool.provider === provider));
  if (told.length === 0) {
    return { nodes: 1, reason: `provider ${provider} serves requests, but its launcher does not tell how many` };
  }
  const isOpen = ({ provider_name: of, name }: PoolComponentData, pool?: string): boolean =>
    of === provider && (pool === undefined || name === pool);
  const uses = (pool?: string) => (each: Consumer) => openPools(each.label, facts).some((open) => isOpen(open, pool));
  const names = new Set(openPools(label, facts).flatMap((pool) => (isOpen(pool) ? [pool.name] : [])));
  const rooms = [...names].map((name) => {
    const pools = told.flatMap((launcher) => launcher.pools).filter((each) => each.provider === provider && each.pool === name); // prettier-ignore
    const room = tightest(pools.map(({ needs, free }) => roomFor(needs[label] ?? ONE, free)));
    const isBound = pools.every(({ ignoresProviderQuota }) => !ignoresProviderQuota);
    const needs = pools.map((pool) => pool.needs[label] ?? ONE);
    return { ...room, nodes: shareOf(room.nodes, consumer, facts, uses(name)), isBound, needs };
  });
  const bound = rooms.filter(({ isBound }) => isBound);
  const need = leastOf(bound.flatMap(({ needs }) => needs));
  const whole = tightest(told.map(({ providers }) => roomFor(need, providers.get(provider) ?? {})));
  const shared = shareOf(whole.nodes, consumer, facts, uses());
  const inPools = sumOf(bound);
  const nodes = Math.min(UNLIMITED, Math.min(shared, inPools) + sumOf(rooms.filter(({ isBound }) => !isBound)));
  if (nodes >= UNLIMITED) return { nodes, reason: `provider ${provider} has no limit` };
  const { resource = 'instances' } = shared < inPools ? whole : tightest(rooms);
  return { nodes, reason: `provider ${provider} has room for ${nodes} nodes (limit of ${resource})` };
}

/** Returns the room that the limits of the tenant leave; undefined if there are none. */
function tenantRoom(consumer: Consumer, facts: CapacityFacts): FreeCapacity | undefined {
  const { label, tenant } = consumer;
  if (tenant === undefined) return undefined;
  const open = openPools(label, facts);
  const needs = facts.launchers
    .flatMap(({ pools }) => pools)
    .filter(({ provider, pool }) => open.some((each) => each.provider_name === provider && each.name === pool))
    .map((pool) => pool.needs[label] ?? ONE);
  const frees = facts.launchers.map(({ tenants }) => tenants.get(tenant)).filter((each) => each !== undefined);
  if (frees.length === 0) return undefined;
  const least = tightest(frees.map((free) => roomFor(leastOf(needs), free)));
  const nodes = shareOf(least.nodes, consumer, facts, (each) => each.tenant === tenant);
  return { nodes, reason: `tenant ${tenant} has room for ${nodes} nodes (limit of ${least.resource ?? 'instances'})` };
}

interface Room {
  readonly nodes: number;
  /** The resource that limits it; undefined without a limit. */
  readonly resource: string | undefined;
}

function tightest(rooms: readonly Room[]): Room {
  const [least] = [...rooms].sort((a, b) => a.nodes - b.nodes);
  return least ?? { nodes: 0, resource: undefined };
}

/** Returns the number of nodes that fit. */
function roomFor(need: Resources, free: Resources): Room {
  let nodes = UNLIMITED;
  let resource: string | undefined;
  for (const [name, amount] of Object.entries(need)) {
    const left = free[name];
    if (amount <= 0 || left === undefined) continue;
    const fits = Math.max(0, Math.floor(left / amount));
    if (fits < nodes) [nodes, resource] = [fits, name];
  }
  return { nodes, resource };
}

/** Returns the least amount of each resource that all of the needs have. */
function leastOf(needs: readonly Resources[]): Resources {
  const [first = ONE, ...others] = needs;
  return Object.fromEntries(
    Object.entries(first).map(([name, amount]) => [name, Math.min(amount, ...others.map((each) => each[name] ?? 0))]),
  );
}

/** Divides what several consumers share: each gets the same, and the first ones what remains. */
function shareOf(
  nodes: number,
  consumer: Consumer,
  { consumers }: CapacityFacts,
  isShared: (each: Consumer) => boolean,
): number {
  if (nodes >= UNLIMITED) return nodes;
  const sharing = consumers.filter(isShared);
  const count = Math.max(1, sharing.length);
  return Math.floor(nodes / count) + (Math.max(0, sharing.indexOf(consumer)) < nodes % count ? 1 : 0);
}

function sumOf(rooms: readonly Room[]): number {
  return Math.min(UNLIMITED, rooms.reduce((sum, { nodes }) => sum + nodes, 0)); // prettier-ignore
}

function nameOf({ provider_name: provider, name }: PoolComponentData): string {
  return `pool ${name} of provider ${provider}`;
}

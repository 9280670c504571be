/**
 * The number of nodes of a label that launchers can provide in addition to those that exist. It is an estimate from
 * what launchers publish: never more than their limits leave, and one at a time where they tell no number.
 */

import { SERVES_REQUESTS, describePool, type PoolComponentData } from '@nodepool/store';

/** The use of the instances of a provider or of a pool; `limit` is null if there is none. */
export interface InstanceUse {
  readonly used: number;
  readonly limit: number | null;
}

/** The use of a provider, as one launcher reports it. */
export interface ProviderUse {
  readonly provider: string;
  readonly instances: InstanceUse | undefined;
  readonly pools: ReadonlyMap<string, InstanceUse>;
}

export interface FreeCapacity {
  readonly nodes: number;
  /** A part of a sentence, e.g. `pool main of provider aws has 3 free instances`. */
  readonly reason: string;
}

/** Capacity of a cloud without limits. */
const UNLIMITED = 100_000;

/**
 * Returns the number of further nodes. `ready` is the number of ready nodes of the label that no request has; they
 * count against the limits already.
 */
export function freeCapacity(
  label: string,
  pools: Iterable<PoolComponentData>,
  uses: readonly ProviderUse[],
  ready: number,
): FreeCapacity {
  const offering = [...pools].filter(({ supported_labels: labels }) => labels.includes(label));
  if (offering.length === 0) return { nodes: 0, reason: `no launcher offers the label ${label}` };
  const answers = offering.map((pool) => ({ pool, says: describePool(pool, [label]) }));
  const open = answers.filter(({ says }) => says === SERVES_REQUESTS);
  if (open.length === 0) {
    const reasons = [...new Set(answers.map(({ pool, says }) => `${nameOf(pool)} ${says}`))];
    const base = reasons.slice(0, 3).join('; ');
    return { nodes: ready, reason: ready === 0 ? base : `${ready} ready nodes; ${base}` };
  }
  // Several launchers serve the same pool of the same provider.
  const byProvider = new Map<string, Set<string>>();
  for (const { pool } of open) {
    byProvider.set(pool.provider_name, (byProvider.get(pool.provider_name) ?? new Set()).add(pool.name));
  }
  const parts = [...byProvider].map(([provider, names]) => ofProvider(provider, names, uses));
  const launchable = parts.reduce((sum, { nodes }) => sum + nodes, 0);
  const reasons = parts.map(({ reason }) => reason).join('; ');
  return {
    nodes: Math.min(UNLIMITED, launchable + ready),
    reason: ready === 0 ? reasons : `${ready} ready nodes; ${reasons}`,
  };
}

/** Divides capacity that several scale sets of one label share. `index` counts from 0. */
export function shareOf(nodes: number, sets: number, index: number): number {
  return Math.floor(nodes / sets) + (index < nodes % sets ? 1 : 0);
}

function ofProvider(provider: string, pools: ReadonlySet<string>, uses: readonly ProviderUse[]): FreeCapacity {
  const use = uses.find((each) => each.provider === provider && each.instances !== undefined);
  if (use === undefined) {
    return { nodes: 1, reason: `provider ${provider} serves requests, but its launcher does not tell how many` };
  }
  const ofPools = [...pools].reduce((sum, pool) => sum + freeOf(use.pools.get(pool)), 0);
  const nodes = Math.min(freeOf(use.instances), ofPools);
  if (nodes >= UNLIMITED) return { nodes: UNLIMITED, reason: `provider ${provider} has no limit` };
  return { nodes, reason: `provider ${provider} has ${nodes} free instances` };
}

function freeOf(use: InstanceUse | undefined): number {
  if (use === undefined) return 0;
  return use.limit === null ? UNLIMITED : Math.max(0, use.limit - use.used);
}

function nameOf({ provider_name: provider, name }: PoolComponentData): string {
  return `pool ${name} of provider ${provider}`;
}

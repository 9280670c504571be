/** Finds ready nodes that no request can get, e.g. because their pool was renamed. */

import type { NodeEntry } from './node-entry.js';
import type { Node } from '@nodepool/core';
import type { ComponentStore } from '../components/component-store.js';
import type { NodeStore } from './node-store.js';

/** Time for launchers to restart or to change their configuration, in seconds. */
const GRACE_S = 600;

/** Returns true if a registered pool hands out ready nodes like this one. */
export function isOffered({ components }: { readonly components: ComponentStore }, node: Node): boolean {
  return [...components.pools()].some(
    ({ provider_name: provider, name, supported_labels: labels }) =>
      provider === node.provider && name === node.pool && node.type.some((label) => labels.includes(label)),
  );
}

/**
 * Returns the unlocked nodes, by id, that have been ready for ten minutes although no registered pool has them with one
 * of their labels. Nodes of providers without registered pools are omitted: a launcher may still start them. `now` is
 * in milliseconds since the epoch.
 */
export function strandedNodes(
  { nodes, components }: { readonly nodes: NodeStore; readonly components: ComponentStore },
  now: number,
): readonly NodeEntry[] {
  const served = new Map<string, Map<string, readonly string[]>>();
  for (const { provider_name: provider, name, supported_labels: labels } of components.pools()) {
    const pools = served.get(provider) ?? new Map<string, readonly string[]>();
    served.set(provider, pools.set(name, [...(pools.get(name) ?? []), ...labels]));
  }
  const isStranded = ({ locked, node: { provider, pool, type, state_time: since } }: NodeEntry): boolean => {
    const pools = provider === null ? undefined : served.get(provider);
    if (locked || pools === undefined || now / 1000 - since <= GRACE_S) return false;
    const labels = pool === null ? undefined : pools.get(pool);
    return labels === undefined || !type.some((label) => labels.includes(label));
  };
  return [...nodes.inState('ready')].filter(isStranded).sort((a, b) => (a.id < b.id ? -1 : 1));
}

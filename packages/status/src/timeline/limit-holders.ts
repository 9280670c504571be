/** Finds the nodes that use a limit; the result is cached per limit. */

import type { NodeEntry, Store } from '@nodepool/store';
import type { LimitFacts } from '../facts/timeline-recorder.js';

/** Number of nodes that are named. */
const MAX_NAMED = 5;

export interface Holders {
  /** The numbers of nodes by state, as a sentence. */
  readonly text: string;
  /** Ids of the nodes that have been in use for the longest time. */
  readonly longest: readonly string[];
  /** Number of nodes in use that are not among `longest`. */
  readonly more: number;
}

export class LimitHolders {
  private readonly known = new Map<string, Holders>();

  constructor(private readonly store: Pick<Store, 'nodes'>) {}

  /** Returns the nodes that count against the limit. `pool` has the form `provider/pool`. */
  of({ scope, name }: LimitFacts, pool: string, tenant: string | null): Holders {
    const key = JSON.stringify([scope, name]);
    let holders = this.known.get(key);
    if (holders === undefined) this.known.set(key, (holders = describe(this.nodes(scope, pool, tenant))));
    return holders;
  }

  private *nodes(scope: LimitFacts['scope'], pool: string, tenant: string | null): Iterable<NodeEntry> {
    const { nodes } = this.store;
    const slash = pool.indexOf('/');
    const poolName = pool.slice(slash + 1);
    for (const entry of scope === 'tenant' ? nodes.all() : nodes.ofProvider(pool.slice(0, slash))) {
      const counts = scope === 'tenant' ? entry.node.tenant_name === tenant : entry.node.pool === poolName;
      if (counts || scope === 'provider') yield entry;
    }
  }
}

function describe(nodes: Iterable<NodeEntry>): Holders {
  const counts = new Map<string, number>();
  const inUse: NodeEntry[] = [];
  for (const entry of nodes) {
    const { state } = entry.node;
    counts.set(state, (counts.get(state) ?? 0) + 1);
    if (state === 'in-use' || state === 'hold') inUse.push(entry);
  }
  const parts = [...counts].sort(([, a], [, b]) => b - a).map(([state, count]) => `${count} ${state}`);
  return {
    text: parts.length === 0 ? 'No node of Nodepool uses it.' : `Its nodes: ${parts.join(', ')}.`,
    longest: inUse
      .sort((a, b) => a.node.state_time - b.node.state_time)
      .slice(0, MAX_NAMED)
      .map(({ id }) => id),
    more: Math.max(0, inUse.length - MAX_NAMED),
  };
}

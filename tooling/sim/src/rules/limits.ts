/** Safety 8: what is launched, and what exists already, never exceeds the limits of pools and tenants. */

import type { JsonObject } from '@nodepool/core';
import type { Seen } from '../observed.js';
import type { Rule, Sight } from './rule.js';
import { textOf } from './values.js';

/** Something that a limit is set for: which nodes count, and how many may there be. */
interface Scope {
  readonly name: string;
  readonly limit: number | undefined;
  readonly counts: (node: JsonObject) => boolean;
}

/**
 * A node in the state `init` is an intent that can still be taken back; it has a reservation when its launch begins. From
 * then on it counts until its record is gone.
 */
export function launchesFitTheirLimits(sight: Sight): Rule {
  const { nodes: records } = sight.observed;
  /** Nodes that have had a reservation. What a failed attempt leaves behind has a record, too, and never had one. */
  const reserved = new Set<string>();
  return {
    number: 'S8',
    committed({ nodes }) {
      for (const { id, before, after, by } of nodes) {
        if (by !== 'launcher' || after === undefined || !begins(before, after)) continue;
        reserved.add(id);
        for (const { name, limit, counts } of scopesOf(after.data, sight)) {
          if (limit === undefined) continue;
          let count = 0;
          for (const other of records.values()) if (reserved.has(other.id) && counts(other.data)) count += 1;
          if (count > limit) return `with the launch of node ${id}, ${name} has ${count} nodes of ${limit}`;
        }
      }
      return undefined;
    },
    forget: () => {
      reserved.clear();
      for (const { id, data } of records.values()) if (data['state'] !== 'init') reserved.add(id);
    },
  };
}

function begins(before: Seen | undefined, after: Seen): boolean {
  return after.data['state'] === 'building' && (before === undefined || before.data['state'] === 'init');
}

function scopesOf({ provider, pool, tenant_name: tenant }: JsonObject, sight: Sight): readonly Scope[] {
  return [
    {
      name: `pool ${textOf(provider)}/${textOf(pool)}`,
      limit: sight.maxServers(textOf(provider), textOf(pool)),
      counts: (node) => node['provider'] === provider && node['pool'] === pool,
    },
    {
      name: `tenant ${textOf(tenant)}`,
      limit: typeof tenant === 'string' ? sight.tenantInstances(tenant) : undefined,
      counts: (node) => node['tenant_name'] === tenant,
    },
  ];
}

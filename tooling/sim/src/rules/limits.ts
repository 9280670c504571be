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
 * A node in the state `init` is an intent that can still be taken back; it has a place when its launch begins. From then
 * on it counts until its record is removed. When an attempt fails, its instance keeps the place, by a record of its own,
 * until it is deleted: the node has a place again when the cloud is asked for its next instance.
 */
export function launchesFitTheirLimits(sight: Sight): Rule {
  const { nodes: records } = sight.observed;
  /** Nodes that have a place. */
  const placed = new Set<string>();
  const place = ({ id, data }: Seen): string | undefined => {
    placed.add(id);
    for (const { name, limit, counts } of scopesOf(data, sight)) {
      if (limit === undefined) continue;
      let count = 0;
      for (const other of records.values()) if (placed.has(other.id) && counts(other.data)) count += 1;
      if (count > limit) return `with the launch of node ${id}, ${name} has ${count} nodes of ${limit}`;
    }
    return undefined;
  };
  return {
    number: 'S8',
    committed({ nodes }) {
      for (const { id, before, after, by } of nodes) {
        if (by !== 'launcher' || after === undefined) continue;
        if (before === undefined && after.data['state'] === 'deleting') {
          const failed = nodeOfInstance(after, sight);
          if (failed !== undefined && placed.delete(failed)) placed.add(id);
        } else if (begins(before, after)) {
          const flaw = place(after);
          if (flaw !== undefined) return flaw;
        }
      }
      return undefined;
    },
    creating({ tags }) {
      const node = records.get(tags['nodepool_node_id'] ?? '');
      if (node === undefined || placed.has(node.id)) return undefined;
      const flaw = place(node);
      return isLeaving(node, sight) ? flaw : undefined;
    },
    forget: () => {
      placed.clear();
      for (const { id, data } of records.values()) if (data['state'] !== 'init') placed.add(id);
    },
  };
}

/** Returns the node for which the cloud made the instance of this record. */
function nodeOfInstance({ data }: Seen, { cloud }: Sight): string | undefined {
  const instance = cloud.existingInstances().find(({ id }) => id === data['external_id']);
  return instance?.tags['nodepool_node_id'];
}

/** Returns true if another node of the same pool or tenant is being deleted. A limit that was lowered is no violation. */
function isLeaving({ data }: Seen, sight: Sight): boolean {
  const scopes = scopesOf(data, sight);
  return [...sight.observed.nodes.values()].some(
    (other) => other.data['state'] === 'deleting' && scopes.some(({ counts }) => counts(other.data)),
  );
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

/** Safety 8: launches and existing instances never exceed the limits of pools, providers and tenants. */

import type { JsonObject } from '@nodepool/core';
import type { Seen, SeenChange } from '../observed.js';
import type { Rule, CheckerView } from './rule.js';
import { nodesOf, textOf } from './values.js';

/** A limit, the nodes that count against it, and its maximum. */
interface Scope {
  readonly name: string;
  readonly limit: number | undefined;
  readonly counts: (node: JsonObject) => boolean;
}

/** Prefix of a tenant's scope name. */
const TENANT = 'tenant';

/**
 * Counts a node against its limits from the start of its launch until its record is deleted; a node in the state `init`
 * can still be withdrawn. The instance of a failed attempt keeps counting with its own record until it is deleted, and
 * the node counts again with its next creation. A ready node that is reallocated to another tenant counts for no tenant
 * until its request is fulfilled or starts to launch.
 */
export function launchesFitTheirLimits(view: CheckerView): Rule {
  const { nodes: records } = view.observed;
  /** Nodes that count against the limits. */
  const placed = new Set<string>();
  /** Ready nodes that were reallocated to another tenant and may still be withdrawn. */
  const handedOver = new Set<string>();
  const excess = (scopes: readonly Scope[], cause: string): string | undefined => {
    for (const { name, limit, counts } of scopes) {
      if (limit === undefined) continue;
      let count = 0;
      for (const { id, data } of records.values()) {
        const isCounted = placed.has(id) && !(name.startsWith(TENANT) && handedOver.has(id));
        if (isCounted && counts(data)) count += 1;
      }
      if (count > limit) return `with ${cause}, ${name} has ${count} nodes of ${limit}`;
    }
    return undefined;
  };
  const place = ({ id, data }: Seen, scopes = scopesOf(data, view)): string | undefined => {
    placed.add(id);
    for (const other of records.values()) {
      if (other.data['allocated_to'] === data['allocated_to']) handedOver.delete(other.id);
    }
    return excess(scopes, `the launch of node ${id}`);
  };
  const noteHandOver = ({ id, before, after }: SeenChange): void => {
    const isOffered = after?.data['state'] === 'ready' && typeof after.data['allocated_to'] === 'string';
    if (!isOffered) handedOver.delete(id);
    else if (before !== undefined && before.data['tenant_name'] !== after.data['tenant_name']) handedOver.add(id);
  };
  const confirm = ({ data }: Seen): string | undefined => {
    const nodes = nodesOf(data).filter((id) => handedOver.delete(id));
    return nodes.length === 0 ? undefined : excess([tenantScope(data, view)], `the hand-over of ${nodes.join(', ')}`);
  };
  return {
    number: 'S8',
    committed({ nodes, requests }) {
      for (const node of nodes) noteHandOver(node);
      for (const { id, before, after, by } of nodes) {
        if (by !== 'launcher' || after === undefined) continue;
        if (before === undefined && after.data['state'] === 'deleting') {
          const failed = nodeOfInstance(after, view);
          if (failed !== undefined && placed.delete(failed)) placed.add(id);
        } else if (begins(before, after)) {
          const flaw = place(after);
          if (flaw !== undefined) return flaw;
        }
      }
      for (const { after } of requests) {
        const flaw = after?.data['state'] === 'fulfilled' ? confirm(after) : undefined;
        if (flaw !== undefined) return flaw;
      }
      return undefined;
    },
    creating({ tags }) {
      const node = records.get(tags['nodepool_node_id'] ?? '');
      if (node === undefined || placed.has(node.id)) return undefined;
      // A limit that was lowered is exceeded until nodes are returned.
      const scopes = scopesOf(node.data, view).filter((scope) => isAnyLeaving(scope, view));
      return place(node, scopes);
    },
    forget: () => {
      placed.clear();
      handedOver.clear();
      for (const { id, data } of records.values()) if (data['state'] !== 'init') placed.add(id);
    },
  };
}

/** Returns the node for which the cloud created the instance of this record. */
function nodeOfInstance({ data }: Seen, { cloud }: CheckerView): string | undefined {
  const instance = cloud.existingInstances().find(({ id }) => id === data['external_id']);
  return instance?.tags['nodepool_node_id'];
}

/** Returns true if a node that counts in the scope is being deleted. */
function isAnyLeaving({ counts }: Scope, { observed }: CheckerView): boolean {
  return [...observed.nodes.values()].some(({ data }) => data['state'] === 'deleting' && counts(data));
}

function begins(before: Seen | undefined, after: Seen): boolean {
  return after.data['state'] === 'building' && (before === undefined || before.data['state'] === 'init');
}

function scopesOf(node: JsonObject, view: CheckerView): readonly Scope[] {
  const { provider, pool } = node;
  return [
    {
      name: `pool ${textOf(provider)}/${textOf(pool)}`,
      limit: view.maxServers(textOf(provider), textOf(pool)),
      counts: (other) => other['provider'] === provider && other['pool'] === pool,
    },
    {
      name: `provider ${textOf(provider)}`,
      limit: view.providerInstances(textOf(provider)),
      counts: (other) => other['provider'] === provider,
    },
    tenantScope(node, view),
  ];
}

/** Returns the tenant's scope of a node or a request. */
function tenantScope({ tenant_name: tenant }: JsonObject, view: CheckerView): Scope {
  return {
    name: `${TENANT} ${textOf(tenant)}`,
    limit: typeof tenant === 'string' ? view.tenantInstances(tenant) : undefined,
    counts: (node) => node['tenant_name'] === tenant,
  };
}

/** The node requests and the nodes of leases, found by the id of the lease in their data. */

import { isJsonObject, type JsonValue } from '@nodepool/core';
import type { NodeEntry, RequestEntry, Store } from '@nodepool/store';
import { REQUESTOR } from './record.js';

export class LeaseIndex {
  private readonly requests = new Map<string, string>();
  private readonly nodes = new Map<string, Set<string>>();

  /** `onChange` is called with the id of a lease whose request or nodes have changed. */
  constructor(
    private readonly store: Store,
    onChange: (leaseId: string) => void,
  ) {
    store.requests.onChange(({ id, before, after }) => {
      const [was, is] = [leaseOfRequest(before), leaseOfRequest(after)];
      if (is !== undefined) this.requests.set(is, id);
      else if (was !== undefined && this.requests.get(was) === id) this.requests.delete(was);
      for (const lease of new Set([was, is])) if (lease !== undefined) onChange(lease);
    });
    store.nodes.onChange(({ id, before, after }) => {
      const [was, is] = [leaseOfNode(before), leaseOfNode(after)];
      if (was !== is) {
        if (was !== undefined) this.removeNode(was, id);
        if (is !== undefined) this.nodes.set(is, (this.nodes.get(is) ?? new Set()).add(id));
      }
      for (const lease of new Set([was, is])) if (lease !== undefined) onChange(lease);
    });
  }

  /** Returns the cached request of a lease. */
  requestOf(leaseId: string): RequestEntry | undefined {
    const id = this.requests.get(leaseId);
    return id === undefined ? undefined : this.store.requests.get(id);
  }

  /** Returns the ids of the cached nodes that were locked for a lease, ascending. */
  nodesOf(leaseId: string): readonly string[] {
    return [...(this.nodes.get(leaseId) ?? [])].sort();
  }

  /** Returns the ids of all leases that have requests or nodes. */
  leases(): ReadonlySet<string> {
    return new Set([...this.requests.keys(), ...this.nodes.keys()]);
  }

  private removeNode(leaseId: string, nodeId: string): void {
    const nodes = this.nodes.get(leaseId);
    nodes?.delete(nodeId);
    if (nodes?.size === 0) this.nodes.delete(leaseId);
  }
}

function leaseOfRequest(entry: RequestEntry | undefined): string | undefined {
  return entry?.request.requestor === REQUESTOR ? leaseIn(entry.request.requestor_data) : undefined;
}

/** Returns the id of the lease in the data of a node. */
export function leaseOfNode(entry: NodeEntry | undefined): string | undefined {
  return entry === undefined ? undefined : leaseIn(entry.node.user_data);
}

function leaseIn(data: JsonValue): string | undefined {
  const lease = isJsonObject(data) ? data['lease'] : undefined;
  return typeof lease === 'string' ? lease : undefined;
}

/** Evicts ready nodes that no request has and that a waiting request cannot use, to free capacity for the request. */

import type { NodeRequest, Timer } from '@nodepool/core';
import type { LauncherContext } from '../context.js';
import { deleteFreeNode } from '../deletion/delete-free-node.js';
import type { FreeNode, QuotaLedger } from '../quota/quota-ledger.js';
import type { Demand, QuotaScope } from '../quota/quota-scope.js';

/** Delay before a node that another launcher has locked can be chosen again, milliseconds. */
const REFUSED_MS = 1000;

/** Missing amounts by scope and resource. */
type Missing = Map<QuotaScope, Map<string, number>>;

export class Evictor {
  /** Nodes that are being marked for deletion, and those that recently could not be marked. They count as leaving. */
  private readonly evicted = new Map<string, FreeNode>();
  private readonly refused = new Set<Timer>();
  private stopped = false;

  constructor(
    private readonly context: LauncherContext,
    private readonly ledger: QuotaLedger,
    /** Name of the pool, for explanations. */
    private readonly pool: string,
    /** Called after the retry delay of a node that could not be evicted. */
    private readonly onFailure: () => void,
  ) {}

  stop(): void {
    this.stopped = true;
    for (const timer of this.refused) timer.cancel();
  }

  /** Evicts as many nodes as the demand needs, none if all would not suffice. Nodes being deleted count as deleted. */
  evictFor(demand: Demand, scopes: readonly QuotaScope[], isProtected: (nodeId: string) => boolean): void {
    const missing = this.missing(demand, scopes);
    if (missing.size === 0) return;
    for (const node of this.choose(missing, demand.request, isProtected)) this.evict(node, demand.request);
  }

  /** Evicts one node unless one is already leaving. Used if a cloud has no capacity and reports no limits. */
  evictOne(scope: QuotaScope, request: NodeRequest, isProtected: (nodeId: string) => boolean): void {
    if (scope.leaving.get('instances') > 0 || this.evicted.size > 0) return;
    for (const node of this.candidates(scope, request, isProtected)) {
      this.evict(node, request);
      return;
    }
  }

  private missing(demand: Demand, scopes: readonly QuotaScope[]): Missing {
    const missing: Missing = new Map();
    for (const scope of scopes) {
      const amounts = scope.missing(demand);
      for (const node of this.evicted.values()) if (node.isIn(scope)) reduce(amounts, node);
      for (const [resource, amount] of amounts) if (amount <= 0) amounts.delete(resource);
      if (amounts.size > 0) missing.set(scope, amounts);
    }
    return missing;
  }

  /** Returns the oldest nodes whose eviction covers the missing amounts; none if no choice covers them. */
  private choose(
    missing: Missing,
    request: NodeRequest,
    isProtected: (nodeId: string) => boolean,
  ): readonly FreeNode[] {
    const chosen = new Map<string, FreeNode>();
    for (const [scope, amounts] of missing) {
      for (const [resource, amount] of amounts) if (scope.free.get(resource) < amount) return [];
    }
    for (const [scope, amounts] of missing) {
      for (const resource of amounts.keys()) {
        for (const node of this.candidates(scope, request, isProtected)) {
          if ((amounts.get(resource) ?? 0) <= 0) break;
          if (chosen.has(node.entry.id) || node.use.get(resource) <= 0) continue;
          chosen.set(node.entry.id, node);
          for (const [each, its] of missing) if (node.isIn(each)) reduce(its, node);
        }
        if ((amounts.get(resource) ?? 0) > 0) return [];
      }
    }
    return withoutNeedless(missing, [...chosen.values()]);
  }

  /** Yields nodes of other labels first, then surplus ones of the same labels; oldest first. */
  private *candidates(
    scope: QuotaScope,
    { node_types: labels }: NodeRequest,
    isProtected: (nodeId: string) => boolean,
  ): Iterable<FreeNode> {
    for (const alike of [false, true]) {
      for (const node of this.ledger.freeNodes(scope)) {
        const { id, node: record } = node.entry;
        if (record.type.some((label) => labels.includes(label)) !== alike) continue;
        if (!this.evicted.has(id) && !isProtected(id)) yield node;
      }
    }
  }

  private evict(node: FreeNode, { id: requestId }: NodeRequest): void {
    const { context } = this;
    const { tasks, log } = context;
    const { entry } = node;
    this.evicted.set(entry.id, node);
    tasks.run(`evict node ${entry.id} for request ${requestId}`, async () => {
      let marked = false;
      try {
        marked = await deleteFreeNode(context, entry, this.pool, `it is evicted for request ${requestId}`);
        if (marked) log.info('Evicting a ready node', { node_id: entry.id, node_request_id: requestId });
      } finally {
        if (marked) this.evicted.delete(entry.id);
        else this.refuse(entry.id);
      }
    });
  }

  private refuse(nodeId: string): void {
    if (this.stopped) return;
    const timer = this.context.clock.schedule(REFUSED_MS, () => {
      this.refused.delete(timer);
      this.evicted.delete(nodeId);
      this.onFailure();
    });
    this.refused.add(timer);
  }
}

function reduce(amounts: Map<string, number>, { use }: FreeNode): void {
  for (const [resource, amount] of amounts) amounts.set(resource, amount - use.get(resource));
}

/** Returns the chosen nodes without those that turned out unnecessary; the youngest are dropped first. */
function withoutNeedless(missing: Missing, chosen: readonly FreeNode[]): readonly FreeNode[] {
  return [...chosen].reverse().filter((node) => {
    const needless = [...missing].every(
      ([scope, amounts]) =>
        !node.isIn(scope) || [...amounts].every(([resource, amount]) => amount + node.use.get(resource) <= 0),
    );
    if (needless) {
      for (const [scope, amounts] of missing) {
        if (!node.isIn(scope)) continue;
        for (const [resource, amount] of amounts) amounts.set(resource, amount + node.use.get(resource));
      }
    }
    return !needless;
  });
}

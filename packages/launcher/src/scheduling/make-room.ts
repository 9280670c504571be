/** When a request waits for room: ready nodes that nobody has, and that it cannot use, go; as many as needed, no more. */

import type { NodeRequest, Timer } from '@nodepool/core';
import type { LauncherContext } from '../context.js';
import { deleteFreeNode } from '../deletion/delete-free-node.js';
import type { FreeNode, QuotaLedger } from '../quota/quota-ledger.js';
import type { QuotaScope, Wish } from '../quota/quota-scope.js';

/** A node that could not be marked is mostly being marked by somebody else. After so long, milliseconds, it is tried again. */
const REFUSED_MS = 1000;

/** What is missing still, by scope and resource. */
type Missing = Map<QuotaScope, Map<string, number>>;

export class RoomMaker {
  /** Nodes that we are about to mark, and those that we could not: they count as on their way out. */
  private readonly going = new Map<string, FreeNode>();
  private readonly refused = new Set<Timer>();
  private stopped = false;

  constructor(
    private readonly context: LauncherContext,
    private readonly ledger: QuotaLedger,
    /** Who decides, in explanations. */
    private readonly by: string,
    /** Called some time after a node turned out to be somebody's. */
    private readonly onFailure: () => void,
  ) {}

  stop(): void {
    this.stopped = true;
    for (const timer of this.refused) timer.cancel();
  }

  /**
   * Makes room for what is wished, if ready nodes can make enough of it. `spared`: nodes that are promised to somebody.
   * What is on its way out already counts as gone.
   */
  makeRoom(wish: Wish, scopes: readonly QuotaScope[], spared: (nodeId: string) => boolean): void {
    const missing = this.missing(wish, scopes);
    if (missing.size === 0) return;
    for (const node of this.choose(missing, wish.request, spared)) this.evict(node, wish.request);
  }

  /** Makes room for one node, whatever the numbers say, unless one is on its way out: for a cloud that reports none. */
  makeSome(scope: QuotaScope, request: NodeRequest, spared: (nodeId: string) => boolean): void {
    if (scope.leaving.get('instances') > 0 || this.going.size > 0) return;
    for (const node of this.candidates(scope, request, spared)) {
      this.evict(node, request);
      return;
    }
  }

  private missing(wish: Wish, scopes: readonly QuotaScope[]): Missing {
    const missing: Missing = new Map();
    for (const scope of scopes) {
      const amounts = scope.missing(wish);
      for (const node of this.going.values()) if (node.isIn(scope)) reduce(amounts, node);
      for (const [resource, amount] of amounts) if (amount <= 0) amounts.delete(resource);
      if (amounts.size > 0) missing.set(scope, amounts);
    }
    return missing;
  }

  /** The oldest that help; none if they do not help enough. */
  private choose(missing: Missing, request: NodeRequest, spared: (nodeId: string) => boolean): readonly FreeNode[] {
    const chosen = new Map<string, FreeNode>();
    for (const [scope, amounts] of missing) {
      for (const [resource, amount] of amounts) if (scope.free.get(resource) < amount) return [];
    }
    for (const [scope, amounts] of missing) {
      for (const resource of amounts.keys()) {
        for (const node of this.candidates(scope, request, spared)) {
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

  /** Those of other labels first, then surplus ones of the same; oldest first. */
  private *candidates(
    scope: QuotaScope,
    { node_types: labels }: NodeRequest,
    spared: (nodeId: string) => boolean,
  ): Iterable<FreeNode> {
    for (const alike of [false, true]) {
      for (const node of this.ledger.freeNodes(scope)) {
        const { id, node: record } = node.entry;
        if (record.type.some((label) => labels.includes(label)) !== alike) continue;
        if (!this.going.has(id) && !spared(id)) yield node;
      }
    }
  }

  private evict(node: FreeNode, { id: requestId }: NodeRequest): void {
    const { context } = this;
    const { tasks, log } = context;
    const { entry } = node;
    this.going.set(entry.id, node);
    tasks.run(`make room for request ${requestId} by node ${entry.id}`, async () => {
      let marked = false;
      try {
        marked = await deleteFreeNode(context, entry, this.by, `it makes room for request ${requestId}`);
        if (marked) log.info('A ready node makes room', { node_id: entry.id, node_request_id: requestId });
      } finally {
        if (marked) this.going.delete(entry.id);
        else this.refuse(entry.id);
      }
    });
  }

  private refuse(nodeId: string): void {
    if (this.stopped) return;
    const timer = this.context.clock.schedule(REFUSED_MS, () => {
      this.refused.delete(timer);
      this.going.delete(nodeId);
      this.onFailure();
    });
    this.refused.add(timer);
  }
}

function reduce(amounts: Map<string, number>, { use }: FreeNode): void {
  for (const [resource, amount] of amounts) amounts.set(resource, amount - use.get(resource));
}

/** The youngest are spared first: what they would free is not needed any more. */
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

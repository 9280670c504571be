/**
 * What the nodes of one pool use of its limits: every record counts until it is removed, and so does what was decided
 * but not recorded yet. A decision costs O(1), whatever the number of nodes.
 */

import { QuotaInformation, type NodeEntry, type PoolConfig } from '@nodepool/core';

/** Room that was set aside for nodes whose records are being made. Give it back exactly once. */
export interface Reservation {
  release(): void;
}

export class QuotaLedger {
  private readonly limit: QuotaInformation;
  private readonly recorded = new Map<string, QuotaInformation>();
  private used = QuotaInformation.use({});

  constructor(pool: PoolConfig) {
    this.limit = QuotaInformation.limit({ ...pool.limits, instances: pool.maxServers });
  }

  /** Tells of a node's record, or (undefined) of its removal. True when the use went down. */
  record(nodeId: string, entry: NodeEntry | undefined): boolean {
    const before = this.recorded.get(nodeId);
    if (entry === undefined) {
      if (before === undefined) return false;
      this.recorded.delete(nodeId);
      this.used = this.used.subtract(before);
      return true;
    }
    if (before !== undefined) return false;
    const use = QuotaInformation.use({ instances: 1, ...entry.node.resources });
    this.recorded.set(nodeId, use);
    this.used = this.used.add(use);
    return false;
  }

  /** The pool's limits, and what is used of them. */
  get amounts(): { readonly limit: QuotaInformation; readonly used: QuotaInformation } {
    return { limit: this.limit, used: this.used };
  }

  /** Whether the pool could hold this if it were empty. */
  couldEverFit(need: QuotaInformation): boolean {
    return this.limit.fits(need);
  }

  /** Sets room aside; undefined when there is not enough right now. */
  reserve(need: QuotaInformation): Reservation | undefined {
    const withNeed = this.used.add(need);
    if (!this.limit.fits(withNeed)) return undefined;
    this.used = withNeed;
    let held = true;
    return {
      release: () => {
        if (!held) return;
        held = false;
        this.used = this.used.subtract(need);
      },
    };
  }
}

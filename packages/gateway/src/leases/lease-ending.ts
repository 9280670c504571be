/** Ends leases: withdraws requests, and returns or holds nodes. Every step can be repeated by any gateway. */

import type { Logger } from '@nodepool/core';
import { LeaseLostError, type Lease, type Requestor, type ReturnOptions } from '@nodepool/requestor';
import type { Store } from '@nodepool/store';
import type { CallOptions } from '@nodepool/zookeeper';
import type { LeaseMetrics } from '../metrics.js';
import type { EnsembleClock } from './ensemble-clock.js';
import { leaseOfNode, type LeaseIndex } from './lease-index.js';
import type { LeaseTable } from './lease-table.js';
import { ownerOf, type LeaseEntry, type Outcome } from './record.js';

export interface LeaseEndingOptions {
  readonly store: Store;
  readonly table: LeaseTable;
  readonly index: LeaseIndex;
  readonly requestor: Requestor;
  readonly time: EnsembleClock;
  readonly log: Logger;
  readonly metrics: LeaseMetrics;
}

export class LeaseEnding {
  constructor(private readonly options: LeaseEndingOptions) {}

  /** Completes the end of a lease whose state is `ending`, and marks it as ended. */
  async finish({ id, record }: LeaseEntry, options: CallOptions): Promise<void> {
    const { table, time, log, metrics } = this.options;
    const { end } = record;
    // No gateway takes nodes for the lease any more, because that needs the record in state `waiting`.
    await this.withdraw(id, options);
    const ids = record.nodes.filter(({ lost }) => lost === null).map(({ id: node }) => node);
    const lease = await this.adopt(id, ids, options);
    if (lease !== undefined) {
      const { hold_seconds: seconds, comment } = end ?? { hold_seconds: null, comment: null };
      const result = resultOf(end?.outcome ?? null);
      if (end?.reason === 'held' && seconds !== null) {
        await lease.hold({ expirationSeconds: seconds, ...(comment === null ? {} : { comment }), ...result });
      } else await lease.return(result);
    }
    if (end?.reason !== 'held') await this.returnHeld(id, ids, options);
    const changed = await table.change(
      id,
      (current) =>
        current.state === 'ending' && current.end?.reason === end?.reason
          ? { state: 'ended', ended: time.now() }
          : undefined,
      options,
    );
    if (changed?.record.state !== 'ended') return;
    metrics.ended(changed.record);
    log.info('Lease has ended', { lease: id, reason: end?.reason, outcome: end?.outcome, nodes: ids });
  }

  /** Deletes the request of a lease; launchers release the nodes that are allocated to it. */
  async withdraw(id: string, _options: CallOptions): Promise<void> {
    const { index, requestor } = this.options;
    const request = index.requestOf(id);
    if (request !== undefined) await requestor.resume(request.id).cancel();
  }

  /** Returns nodes that are locked for a lease without a record. */
  async returnOrphans(id: string, options: CallOptions): Promise<void> {
    const { index, log } = this.options;
    const lease = await this.adopt(id, index.nodesOf(id), options);
    if (lease === undefined) return;
    log.warn('Returning the nodes of a lease without a record', {
      lease: id,
      nodes: lease.nodes.map((node) => node.id),
    });
    await lease.return();
  }

  /** Resolves with those of the nodes that are locked for the lease; undefined if there are none. */
  private async adopt(id: string, nodes: readonly string[], options: CallOptions): Promise<Lease | undefined> {
    let ids = nodes;
    while (ids.length > 0) {
      try {
        return await this.options.requestor.adoptLease(ownerOf(id), ids, options);
      } catch (error) {
        if (!(error instanceof LeaseLostError)) throw error;
        const { nodeIds } = error;
        ids = ids.filter((node) => !nodeIds.includes(node));
      }
    }
    return undefined;
  }

  /** Deletes nodes that were held for a lease. Compares the lease in their data, because ids can be reused. */
  private async returnHeld(id: string, nodes: readonly string[], options: CallOptions): Promise<void> {
    const { store } = this.options;
    for (const node of nodes) {
      const entry = await store.nodes.read(node, options);
      if (entry?.node.state !== 'hold' || leaseOfNode(entry) !== id || entry.locked) continue;
      const handle = await store.nodes.tryLock(node, { from: entry, change: { state: 'used' }, ...options });
      await handle?.release();
    }
  }
}

/** Returns the result of the job, with which launchers judge new images; none for a job that did not end by itself. */
function resultOf(outcome: Outcome | null): ReturnOptions {
  return outcome === 'success' || outcome === 'failure' ? { result: outcome } : {};
}

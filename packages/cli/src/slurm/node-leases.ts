/** The leases of a cluster's nodes: at most one that waits or is ready for each node. */

import { isJsonObject } from '@nodepool/core';
import { LeaseRequestError, type LeaseClient, type LeaseDocument, type LeaseOutcome } from '@nodepool/requestor/http';
import { CommandError } from '../command-context.js';
import type { Cluster } from './slurm.js';

/** Limit of the attempts to create a lease while earlier ones end. */
const MAX_ATTEMPTS = 100;
/** Limit (characters) of a comment. */
const COMMENT_LENGTH = 1000;

export interface LeaseOfNode {
  /** Name of the node in Slurm. */
  readonly node: string;
  readonly lease: LeaseDocument;
}

export interface NewNodeLease {
  readonly label: string;
  readonly priority: number | undefined;
  /** Seconds. */
  readonly lifetime: number;
}

export class NodeLeases {
  constructor(
    private readonly client: LeaseClient,
    private readonly cluster: Cluster,
    private readonly signal: AbortSignal,
  ) {}

  /** Resolves with the leases of all nodes of the cluster that wait or are ready. */
  async active(): Promise<readonly LeaseOfNode[]> {
    const found = new Map<string, LeaseOfNode>();
    // In this order, a lease that becomes ready meanwhile is listed twice and not missed.
    for (const state of ['waiting', 'ready'] as const) {
      for await (const lease of this.client.list({ state, signal: this.signal })) {
        const node = this.nodeOf(lease);
        if (node !== undefined) found.set(lease.id, { node, lease });
      }
    }
    return [...found.values()];
  }

  /** Resolves with all known leases of a node, newest first. */
  async of(node: string): Promise<readonly LeaseDocument[]> {
    const leases: LeaseDocument[] = [];
    for await (const lease of this.client.list({ name: this.nameOf(node), signal: this.signal })) {
      if (this.nodeOf(lease) === node) leases.push(lease);
    }
    return leases;
  }

  /**
   * Resolves with the lease of a node that waits or is ready, which is created if there is none. Simultaneous calls of
   * several processes use the same idempotency key, and so resolve with the same lease.
   */
  async acquire(node: string, { label, priority, lifetime }: NewNodeLease): Promise<LeaseDocument> {
    const known = await this.of(node);
    const current = known.find(isActive);
    if (current !== undefined) return current;
    const last = Math.max(0, ...known.map(attemptOf));
    for (let attempt = last + 1; attempt <= last + MAX_ATTEMPTS; attempt++) {
      const name = this.nameOf(node);
      const wanted = {
        ...{ labels: [label], name, lifetime, data: { slurm: { ...this.cluster, node, attempt } } },
        ...(priority === undefined ? {} : { priority }),
      };
      try {
        const lease = await this.client.create(wanted, { key: `${name}/${attempt}`, signal: this.signal });
        if (isActive(lease)) return lease;
      } catch (error) {
        // Another process has used the key, with other options.
        if (!(error instanceof LeaseRequestError) || error.code !== 'key-reused') throw error;
        const other = (await this.of(node)).find(isActive);
        if (other !== undefined) return other;
      }
    }
    throw new CommandError(`node ${node} has used ${MAX_ATTEMPTS} leases that ended at once`);
  }

  async renew({ id, lifetime }: LeaseDocument): Promise<void> {
    await this.client.renew(id, { lifetime, signal: this.signal });
  }

  async release({ id }: LeaseDocument, outcome: LeaseOutcome, comment: string): Promise<void> {
    await this.client.release(id, { outcome, comment: comment.slice(0, COMMENT_LENGTH), signal: this.signal });
  }

  private nameOf(node: string): string {
    return `slurm/${this.cluster.cluster}/${this.cluster.controller}/${node}`;
  }

  /** Returns the node of a lease of this cluster; undefined for all other leases. */
  private nodeOf({ data, name }: LeaseDocument): string | undefined {
    const slurm = isJsonObject(data) ? data['slurm'] : undefined;
    if (!isJsonObject(slurm)) return undefined;
    const { cluster, controller, node } = slurm;
    const isOurs =
      cluster === this.cluster.cluster &&
      controller === this.cluster.controller &&
      typeof node === 'string' &&
      name === this.nameOf(node);
    return isOurs ? node : undefined;
  }
}

export function isActive({ state }: LeaseDocument): boolean {
  return state === 'waiting' || state === 'ready';
}

/** Returns the number of a lease among those of its node. */
export function attemptOf({ data }: LeaseDocument): number {
  const slurm = isJsonObject(data) ? data['slurm'] : undefined;
  const attempt = isJsonObject(slurm) ? slurm['attempt'] : undefined;
  return typeof attempt === 'number' ? attempt : 0;
}

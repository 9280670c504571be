/**
 * Lets a request go first that starves although its tenant has its share, e.g. a large one that never fits because
 * smaller requests of other tenants take each node that becomes free. A tenant has at most one such request at a time
 * and one per interval, so that it gains nothing by them.
 */

import type { Clock, NodeRequest } from '@nodepool/core';

/** Time without a served request of its class after which a request starves, milliseconds. */
export const STARVATION_MS = 600_000;

/** Requests with the same needs that wait. */
export interface StarvingClass {
  readonly request: NodeRequest;
  /** Time (ms since the epoch) at which a request of the class was last served; undefined if none was. */
  readonly servedAt: number | undefined;
}

interface Senior {
  readonly request: NodeRequest;
  readonly since: number;
}

export class Starvation {
  private readonly seniors = new Map<string | null, Senior>();
  /** Times at which the latest senior request of a tenant was served or deleted, milliseconds since the epoch. */
  private readonly endedAt = new Map<string | null, number>();

  constructor(private readonly clock: Pick<Clock, 'now'>) {}

  /**
   * Makes the first request of a class senior if it starves. It replaces a senior request of its tenant that it
   * precedes by `compare`, because that one waits for it.
   */
  consider({ request, servedAt = 0 }: StarvingClass, compare: (a: NodeRequest, b: NodeRequest) => number): void {
    const now = this.clock.now();
    const { created_time: created, tenant_name: tenant } = request;
    if (now - Math.max(servedAt, (created ?? Infinity) * 1000) < STARVATION_MS) return;
    const senior = this.seniors.get(tenant);
    if (senior === undefined) {
      const isDue = now - (this.endedAt.get(tenant) ?? 0) >= STARVATION_MS;
      if (isDue) this.seniors.set(tenant, { request, since: now });
    } else if (compare(request, senior.request) < 0) this.seniors.set(tenant, { ...senior, request });
  }

  /** Returns the time since which the request is senior; undefined if it is not. */
  senior({ id, tenant_name: tenant }: NodeRequest): number | undefined {
    const senior = this.seniors.get(tenant);
    return senior?.request.id === id ? senior.since : undefined;
  }

  /** Records that the request is served, deleted or changed. */
  ended({ id, tenant_name: tenant }: Pick<NodeRequest, 'id' | 'tenant_name'>): void {
    if (this.seniors.get(tenant)?.request.id !== id) return;
    this.seniors.delete(tenant);
    this.endedAt.set(tenant, this.clock.now());
  }

  /** Forgets times that do not matter any more, because requestors may name any number of tenants. */
  prune(): void {
    const oldest = this.clock.now() - STARVATION_MS;
    for (const [tenant, at] of this.endedAt) if (at < oldest) this.endedAt.delete(tenant);
  }
}

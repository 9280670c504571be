/** A site of many pools: 20 providers with 10 pools each, all with the same 50 labels, nearly full, and 5,000 requests. */

import type { ExampleConfigOptions } from '@nodepool/harness';
import type { Requestor, SubmittedRequest } from '@nodepool/requestor';
import type { ZooKeeper } from '@nodepool/zookeeper';
import { systemClock } from '@nodepool/core';
import { LABEL, type Bed } from './bed.js';
import { createHeldNodes, NODEPOOL, nodeInUse } from './records.js';

const PROVIDERS = Array.from({ length: 20 }, (_, index) => `site-${index + 1}`);
const POOLS = Array.from({ length: 10 }, (_, index) => `pool-${index + 1}`);
const LABELS = [LABEL, ...Array.from({ length: 49 }, (_, index) => `label-${index + 1}`)];
const NODES_PER_POOL = 50;
/** Nodes that each pool may have beside those in use. */
const ROOM_PER_POOL = 2;
const REQUESTS = 5000;
/** Requests that are put at a time. */
const AT_ONCE = 500;

export const MANY_POOLS: Pick<ExampleConfigOptions, 'labels' | 'providers'> = {
  labels: LABELS,
  providers: PROVIDERS.map((name) => ({
    name,
    labels: LABELS,
    pools: POOLS,
    maxServers: NODES_PER_POOL + ROOM_PER_POOL,
  })),
};

/** Fills ZooKeeper with 10,000 nodes in use and 5,000 requests, all of which are served in the end. */
export class ManyPools {
  private readonly requests: SubmittedRequest[] = [];

  /** To be called before the launcher starts. */
  async fill(zooKeeper: ZooKeeper, requestor: Requestor): Promise<void> {
    for (const path of ['', '/nodes', '/requests']) await zooKeeper.create(`${NODEPOOL}${path}`);
    const nodes = PROVIDERS.flatMap((provider) =>
      POOLS.flatMap((pool) =>
        Array.from({ length: NODES_PER_POOL }, (_, index) => nodeInUse(provider, pool, LABEL, index)),
      ),
    );
    await createHeldNodes(zooKeeper, nodes);
    for (let start = 0; start < REQUESTS; start += AT_ONCE) {
      const labels = Array.from({ length: AT_ONCE }, (_, index) => LABELS[(start + index) % LABELS.length] ?? LABEL);
      const submitted = labels.map((label) => requestor.request({ labels: [label], durable: true }));
      this.requests.push(...(await Promise.all(submitted)));
    }
  }

  /** Names of the phases in which the delay of the event loop is counted, in their order. */
  static readonly phases = ['until the first pool is registered', 'until all requests are served'] as const;

  /** Uses every node for a moment. Resolves with the milliseconds from the start of the launcher until all are served. */
  async measure(bed: Bed, signal: AbortSignal): Promise<number> {
    bed.beginPhase();
    await Promise.all(
      this.requests.map(async (request) => {
        const lease = await request.take();
        await lease.return();
      }),
    );
    const tookMs = systemClock.monotonic() - bed.startedAt;
    await bed.clean(signal);
    return tookMs;
  }
}

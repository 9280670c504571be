/**
 * A site with many pools: 20 providers with 10 pools each, all with the same 50 labels, nearly full, and 5,000
 * requests.
 */

import type { ExampleConfigOptions } from '@nodepool/harness';
import type { Requestor, SubmittedRequest } from '@nodepool/requestor';
import type { ZooKeeper } from '@nodepool/zookeeper';
import { systemClock } from '@nodepool/core';
import { LABEL, type BenchmarkEnvironment } from './environment.js';
import { createHeldNodes, NODEPOOL, nodeInUse } from './records.js';

const PROVIDERS = Array.from({ length: 20 }, (_, index) => `site-${index + 1}`);
const POOLS = Array.from({ length: 10 }, (_, index) => `pool-${index + 1}`);
const LABELS = [LABEL, ...Array.from({ length: 49 }, (_, index) => `label-${index + 1}`)];
const NODES_PER_POOL = 50;
/** Free nodes in each pool. */
const FREE_PER_POOL = 2;
const REQUESTS = 5000;
/** Number of concurrent request submissions. */
const CONCURRENT_REQUESTS = 500;

export const MANY_POOLS: Pick<ExampleConfigOptions, 'labels' | 'providers'> = {
  labels: LABELS,
  providers: PROVIDERS.map((name) => ({
    name,
    labels: LABELS,
    pools: POOLS,
    maxServers: NODES_PER_POOL + FREE_PER_POOL,
  })),
};

/** Fills ZooKeeper with 10,000 nodes in use and 5,000 requests, which are all served. */
export class ManyPools {
  private readonly requests: SubmittedRequest[] = [];

  /** Called before the launcher starts. */
  async fill(zooKeeper: ZooKeeper, requestor: Requestor): Promise<void> {
    for (const path of ['', '/nodes', '/requests']) await zooKeeper.create(`${NODEPOOL}${path}`);
    const nodes = PROVIDERS.flatMap((provider) =>
      POOLS.flatMap((pool) =>
        Array.from({ length: NODES_PER_POOL }, (_, index) => nodeInUse(provider, pool, LABEL, index)),
      ),
    );
    await createHeldNodes(zooKeeper, nodes);
    for (let start = 0; start < REQUESTS; start += CONCURRENT_REQUESTS) {
      const labels = Array.from(
        { length: CONCURRENT_REQUESTS },
        (_, index) => LABELS[(start + index) % LABELS.length] ?? LABEL,
      );
      const submitted = labels.map((label) => requestor.request({ labels: [label], durable: true }));
      this.requests.push(...(await Promise.all(submitted)));
    }
  }

  /** Names of the phases of the event loop measurement, in order. */
  static readonly phases = ['until the first pool is registered', 'until all requests are served'] as const;

  /** Uses every node briefly. Resolves with the time from the launcher's start until all requests are served (ms). */
  async measure(environment: BenchmarkEnvironment, signal: AbortSignal): Promise<number> {
    await Promise.all(
      this.requests.map(async (request) => {
        const lease = await request.take();
        await lease.return();
      }),
    );
    const tookMs = systemClock.monotonic() - environment.startedAt;
    await environment.clean(signal);
    return tookMs;
  }
}

/** A site with many pools, nearly full, and 5,000 requests. */

import type { ExampleConfigOptions } from '@nodepool/harness';
import type { Requestor, SubmittedRequest } from '@nodepool/requestor';
import type { ZooKeeper } from '@nodepool/zookeeper';
import { systemClock } from '@nodepool/core';
import { LABEL, type BenchmarkEnvironment, type EnvironmentOptions } from './environment.js';
import { createHeldNodes, NODEPOOL, nodeInUse } from './records.js';
import { mebibytes, milliseconds, row, seconds } from './rows.js';
import { loopsOf, withEnvironment, type Outcome } from './scenario.js';

const PROVIDERS = Array.from({ length: 20 }, (_, index) => `site-${index + 1}`);
const NODES = 10_000;
/** Free nodes in each pool. */
const FREE_PER_POOL = 2;
const REQUESTS = 5000;
/** Number of concurrent request submissions. */
const CONCURRENT_REQUESTS = 500;

/** Fills ZooKeeper with 10,000 nodes in use and 5,000 requests, which are all served. */
class ManyPools {
  private readonly requests: SubmittedRequest[] = [];
  private readonly pools: readonly string[];
  private readonly labels: readonly string[];
  private readonly nodesPerPool: number;
  private readonly share: number;

  /** `pools`: of each of the 20 providers. A provider has every `share`-th label. */
  constructor({ pools, labels, share }: { readonly pools: number; readonly labels: number; readonly share: number }) {
    this.share = share;
    this.pools = Array.from({ length: pools }, (_, index) => `pool-${index + 1}`);
    this.labels = [LABEL, ...Array.from({ length: labels - 1 }, (_, index) => `label-${index + 1}`)];
    this.nodesPerPool = NODES / (PROVIDERS.length * pools);
  }

  get config(): Pick<ExampleConfigOptions, 'labels' | 'providers'> {
    const { labels, pools, share, nodesPerPool } = this;
    const maxServers = nodesPerPool + FREE_PER_POOL;
    const labelsOf = (provider: number): string[] => labels.filter((_, index) => index % share === provider % share);
    return {
      labels,
      providers: PROVIDERS.map((name, index) => ({ name, labels: labelsOf(index), pools, maxServers })),
    };
  }

  /** For messages, e.g. `200 pools with 50 of 50 labels`. */
  get what(): string {
    const pools = (PROVIDERS.length * this.pools.length).toLocaleString('en');
    return `${pools} pools with ${this.labels.length / this.share} of ${this.labels.length} labels`;
  }

  /** Called before the launcher starts. */
  async fill(zooKeeper: ZooKeeper, requestor: Requestor): Promise<void> {
    for (const path of ['', '/nodes', '/requests']) await zooKeeper.create(`${NODEPOOL}${path}`);
    const nodes = PROVIDERS.flatMap((provider) =>
      this.pools.flatMap((pool) =>
        Array.from({ length: this.nodesPerPool }, (_, index) => nodeInUse(provider, pool, LABEL, index)),
      ),
    );
    await createHeldNodes(zooKeeper, nodes);
    for (let start = 0; start < REQUESTS; start += CONCURRENT_REQUESTS) {
      const labels = Array.from(
        { length: CONCURRENT_REQUESTS },
        (_, index) => this.labels[(start + index) % this.labels.length] ?? LABEL,
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

/** Measures 200 pools with all labels, and 1,000 with a quarter of more labels. */
export async function manyPools(options: EnvironmentOptions): Promise<Outcome> {
  const outcomes: Outcome[] = [];
  for (const size of [
    { pools: 10, labels: 50, share: 1 },
    { pools: 50, labels: 200, share: 4 },
  ]) {
    outcomes.push(await poolsOf(new ManyPools(size), options));
  }
  return {
    rows: outcomes.flatMap(({ rows }) => rows),
    launchers: [],
    eventLoops: outcomes.flatMap(({ eventLoops }) => eventLoops),
  };
}

async function poolsOf(site: ManyPools, options: EnvironmentOptions): Promise<Outcome> {
  const { what } = site;
  const prepared: EnvironmentOptions = {
    ...options,
    site: site.config,
    deadlineMs: 600_000,
    prepare: async (zooKeeper, requestor) => site.fill(zooKeeper, requestor),
  };
  const { result, facts } = await withEnvironment(what, prepared, async (environment, signal) =>
    site.measure(environment, signal),
  );
  const delays = ManyPools.phases.flatMap((phase, index) => {
    const { max = Infinity, busiest = Infinity } = facts.eventLoopDelays[index] ?? {};
    const title = `o  ${what}, 5,000 requests: longest delay of the event loop ${phase}`;
    return [
      row(title, max, undefined, milliseconds, '-'),
      row('   … processor time of the longest turn', busiest, undefined, milliseconds, '-'),
    ];
  });
  return {
    rows: [
      ...delays,
      row('   … start to the last request served', result, undefined, seconds, '-'),
      row('   … most memory resident', facts.peakResidentBytes, undefined, mebibytes, '-'),
    ],
    launchers: [],
    eventLoops: loopsOf(facts, `${what}, 5,000 requests`),
  };
}

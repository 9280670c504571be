/** Large sites in full use: their records in ZooKeeper before the launcher starts, and the measurements. */

import type { ExampleConfigOptions } from '@nodepool/harness';
import type { Requestor, SubmittedRequest } from '@nodepool/requestor';
import type { ZooKeeper } from '@nodepool/zookeeper';
import { systemClock } from '@nodepool/core';
import { LABEL, type BenchmarkEnvironment } from './environment.js';
import { createAll, createHeldNodes, createNodes, NODEPOOL, nodeInUse, readyNode } from './records.js';
import { burst, latenciesAtRate, singleRequests, type LatenciesAtRate } from './scenarios.js';

const FULL_PROVIDERS = ['full-1', 'full-2', 'full-3', 'full-4'] as const;
const READY_NODES = 100;
const WAITING_REQUESTS = 5000;

/** Durations in milliseconds. */
export interface LargeSiteFigures {
  readonly firstDecisionMs: number;
  /** Duration of one request for the provider with free capacity, median of 50. */
  readonly singleRequestMs: number;
  /** Duration of 1,000 concurrent requests for the provider with free capacity. */
  readonly burstMs: number;
  /** Latencies at 200 requests per second. */
  readonly atRate: LatenciesAtRate;
}

/**
 * Fills ZooKeeper with this many nodes, all in use except 100 ready ones, and 5,000 requests. The launcher decides
 * `first` before all others.
 */
export class LargeSite {
  private readonly nodesPerFullProvider: number;
  private first: SubmittedRequest | undefined;

  constructor(nodes: number) {
    this.nodesPerFullProvider = Math.floor((nodes - READY_NODES) / FULL_PROVIDERS.length);
  }

  /** Four fully used providers and one with free capacity. */
  get config(): Pick<ExampleConfigOptions, 'labels' | 'providers'> {
    const full = { maxServers: this.nodesPerFullProvider };
    return {
      labels: [LABEL, 'spare', ...FULL_PROVIDERS],
      providers: [{ labels: [LABEL, 'spare'] }, ...FULL_PROVIDERS.map((name) => ({ name, labels: [name], ...full }))],
    };
  }

  /** Called before the launcher starts. */
  async fill(zooKeeper: ZooKeeper, requestor: Requestor): Promise<void> {
    for (const path of ['', '/nodes', '/requests']) await zooKeeper.create(`${NODEPOOL}${path}`);
    const nodes = FULL_PROVIDERS.flatMap((provider) =>
      Array.from({ length: this.nodesPerFullProvider }, (_, index) => nodeInUse(provider, 'main', provider, index)),
    );
    const spare = Array.from({ length: READY_NODES }, (_, index) => readyNode('example', 'main', 'spare', index));
    await createHeldNodes(zooKeeper, nodes);
    await createNodes(zooKeeper, spare);
    const requests = Array.from({ length: WAITING_REQUESTS }, (_, index) =>
      waitingRequest(FULL_PROVIDERS[index % FULL_PROVIDERS.length] ?? FULL_PROVIDERS[0]),
    );
    await createAll(zooKeeper, `${NODEPOOL}/requests/200-`, requests);
    this.first = await requestor.request({ labels: [LABEL], durable: true });
  }

  /** Resolves with the time from the process start until an earlier request is fulfilled (ms). */
  async untilFirstDecision(environment: BenchmarkEnvironment): Promise<number> {
    if (this.first === undefined) throw new Error('the site was not filled');
    await this.first.fulfilled();
    const firstDecisionMs = systemClock.monotonic() - environment.startedAt;
    const lease = await this.first.take();
    await lease.return();
    environment.beginPhase();
    return firstDecisionMs;
  }

  async measure(environment: BenchmarkEnvironment, signal: AbortSignal): Promise<LargeSiteFigures> {
    const firstDecisionMs = await this.untilFirstDecision(environment);
    const { medianMs } = await singleRequests(environment, 50, signal);
    environment.beginPhase();
    const { fulfilledMs } = await burst(environment, 1000, signal);
    environment.beginPhase();
    const atRate = await latenciesAtRate(environment, { perSecond: 200, seconds: 10 }, signal);
    return { firstDecisionMs, singleRequestMs: medianMs, burstMs: fulfilledMs, atRate };
  }

  /** Names of the phases of the event loop measurement, in order. */
  static readonly phases = [
    'start',
    'until the first decision',
    '50 single requests',
    '1,000 at once',
    '200 per second',
  ] as const;
}

function waitingRequest(label: string): object {
  const now = systemClock.now() / 1000;
  return {
    state: 'requested',
    state_time: now,
    created_time: now,
    declined_by: [],
    node_types: [label],
    nodes: [],
    reuse: true,
    requestor: 'bench',
    requestor_data: { build_set_uuid: 'f'.repeat(32), tenant_name: 'tenant', pipeline_name: 'check', job_name: 'unit' },
    provider: null,
    relative_priority: 0,
    event_id: 'e'.repeat(32),
    tenant_name: 'tenant',
  };
}

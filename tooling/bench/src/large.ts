/** A site in full use: what ZooKeeper holds before the launcher starts, and what is measured of the launcher then. */

import type { ExampleConfigOptions } from '@nodepool/harness';
import type { Requestor, SubmittedRequest } from '@nodepool/requestor';
import type { ZooKeeper } from '@nodepool/zookeeper';
import { systemClock } from '@nodepool/core';
import { LABEL, type Bed } from './bed.js';
import { createAll, createHeldNodes, createNodes, NODEPOOL, nodeInUse, readyNode } from './records.js';
import { burst, singleRequests } from './scenarios.js';

const FULL_PROVIDERS = ['full-1', 'full-2', 'full-3', 'full-4'] as const;
const NODES_PER_FULL_PROVIDER = 2475;
const READY_NODES = 100;
const WAITING_REQUESTS = 5000;

/** Four providers whose limits are in use, and one with room. */
export const LARGE_SITE: Pick<ExampleConfigOptions, 'labels' | 'providers'> = {
  labels: [LABEL, 'spare', ...FULL_PROVIDERS],
  providers: [
    { labels: [LABEL, 'spare'] },
    ...FULL_PROVIDERS.map((name) => ({ name, labels: [name], maxServers: NODES_PER_FULL_PROVIDER })),
  ],
};

/** Durations in milliseconds. */
export interface LargeSiteFigures {
  /** From the start of the process until a request that was there before is fulfilled. */
  readonly firstDecisionMs: number;
  /** One request for the provider with room, median of 50. */
  readonly singleRequestMs: number;
  /** 1,000 requests at once for the provider with room. */
  readonly burstMs: number;
}

/** Fills ZooKeeper with 9,900 nodes in use, 100 ready ones and 5,000 requests; the launcher decides `first` first. */
export class LargeSite {
  private first: SubmittedRequest | undefined;

  /** To be called before the launcher starts. */
  async fill(zooKeeper: ZooKeeper, requestor: Requestor): Promise<void> {
    for (const path of ['', '/nodes', '/requests']) await zooKeeper.create(`${NODEPOOL}${path}`);
    const nodes = FULL_PROVIDERS.flatMap((provider) =>
      Array.from({ length: NODES_PER_FULL_PROVIDER }, (_, index) => nodeInUse(provider, 'main', provider, index)),
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

  async measure(bed: Bed, signal: AbortSignal): Promise<LargeSiteFigures> {
    if (this.first === undefined) throw new Error('the site was not filled');
    await this.first.fulfilled();
    const firstDecisionMs = systemClock.monotonic() - bed.startedAt;
    const lease = await this.first.take();
    await lease.return();
    bed.beginPhase();
    const { medianMs } = await singleRequests(bed, 50, signal);
    bed.beginPhase();
    const { fulfilledMs } = await burst(bed, 1000, signal);
    return { firstDecisionMs, singleRequestMs: medianMs, burstMs: fulfilledMs };
  }

  /** Names of the phases in which the delay of the event loop is counted, in their order. */
  static readonly phases = ['start', '50 single requests', '1,000 at once'] as const;
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

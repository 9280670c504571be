/** Lengths of the queues between the launcher and ZooKeeper, and suspended deletions. */

import type { Metrics } from '@nodepool/core';
import type { ZooKeeper } from '@nodepool/zookeeper';
import type { SuspensionStore } from '@nodepool/store';
import { SUSPENDED_DELETIONS, ZOOKEEPER_QUEUES } from './launcher-metrics.js';
import { ReportedGauge } from '@nodepool/daemon';

/**
 * Queues that launchers of the Python Nodepool report and this launcher does not have, since it applies record
 * changes on arrival. They are reported as empty, so that existing alerts remain valid.
 */
const ABSENT_QUEUES = ['node_cache', 'request_cache', 'image_cache'].flatMap((cache) => [
  `${cache}.event_queue`,
  `${cache}.playback_queue`,
]);

export interface QueueMetricsOptions {
  readonly metrics: Metrics;
  readonly zooKeeper: Pick<ZooKeeper, 'counters'>;
  /** Host name in the metric keys. */
  readonly hostname: string;
}

/** Starts to report. Returns a function that ends the reports. */
export function reportQueues({ metrics, zooKeeper, hostname: host }: QueueMetricsOptions): () => void {
  return metrics.onCollect(() => {
    metrics.set(ZOOKEEPER_QUEUES, { host, queue: 'client.connection_queue' }, zooKeeper.counters.pendingCalls);
    for (const queue of ABSENT_QUEUES) metrics.set(ZOOKEEPER_QUEUES, { host, queue }, 0);
  });
}

/** Starts to report the suspensions that this launcher sees. Returns a function that ends the reports. */
export function reportSuspensions(metrics: Metrics, suspensions: Pick<SuspensionStore, 'all'>): () => void {
  const gauge = new ReportedGauge(metrics, SUSPENDED_DELETIONS);
  return metrics.onCollect(() => {
    gauge.set({ provider: '' }, 0);
    for (const { provider } of suspensions.all()) gauge.set({ provider: provider ?? '' }, 1);
    gauge.end();
  });
}

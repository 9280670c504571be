/** Metrics of the process and its connection to ZooKeeper, read at collection time. */

import type { Counter, MetricLabels, Metrics } from '@nodepool/core';
import type { EventLoopMonitor } from '@nodepool/daemon';
import type { Store } from '@nodepool/store';
import {
  CPU,
  EVENT_LOOP_DELAY,
  MEMORY,
  ZOOKEEPER_BYTES,
  ZOOKEEPER_CONNECTED,
  ZOOKEEPER_EVENTS,
  ZOOKEEPER_QUEUES,
  ZOOKEEPER_REQUESTS,
} from './launcher-metrics.js';

/**
 * Queues that launchers of the existing Nodepool report and this launcher does not have, since it applies record
 * changes on arrival. They are reported as empty, so that existing alerts remain valid.
 */
const ABSENT_QUEUES = ['node_cache', 'request_cache', 'image_cache'].flatMap((cache) => [
  `${cache}.event_queue`,
  `${cache}.playback_queue`,
]);

export interface ProcessMetricsOptions {
  readonly metrics: Metrics;
  readonly store: Store;
  readonly eventLoop: EventLoopMonitor;
  /** Host name in the metric keys. */
  readonly hostname: string;
}

/** Starts to report. Returns a function that ends the reports. */
export function reportProcess({ metrics, store, eventLoop, hostname }: ProcessMetricsOptions): () => void {
  const totals = new Totals(metrics);
  return metrics.onCollect(() => {
    const { counters, state } = store.zooKeeper;
    metrics.set(ZOOKEEPER_QUEUES, { host: hostname, queue: 'client.connection_queue' }, counters.pendingCalls);
    for (const queue of ABSENT_QUEUES) metrics.set(ZOOKEEPER_QUEUES, { host: hostname, queue }, 0);
    metrics.set(ZOOKEEPER_CONNECTED, {}, state === 'connected' ? 1 : 0);
    for (const [operation, total] of Object.entries(counters.requests)) {
      totals.set(ZOOKEEPER_REQUESTS, { operation }, total);
    }
    totals.set(ZOOKEEPER_BYTES, { direction: 'sent' }, counters.bytesSent);
    totals.set(ZOOKEEPER_BYTES, { direction: 'received' }, counters.bytesReceived);
    totals.set(ZOOKEEPER_EVENTS, {}, counters.watchEvents);
    const cpu = process.cpuUsage();
    totals.set(CPU, {}, (cpu.user + cpu.system) / 1e6);
    const memory = process.memoryUsage();
    metrics.set(MEMORY, { kind: 'resident' }, memory.rss);
    metrics.set(MEMORY, { kind: 'heap' }, memory.heapUsed);
    metrics.set(MEMORY, { kind: 'external' }, memory.external);
    const delay = eventLoop.read();
    eventLoop.reset();
    metrics.set(EVENT_LOOP_DELAY, { quantile: '0.5' }, delay.p50);
    metrics.set(EVENT_LOOP_DELAY, { quantile: '0.99' }, delay.p99);
    metrics.set(EVENT_LOOP_DELAY, { quantile: '1' }, delay.max);
  });
}

/** Turns totals that are counted elsewhere into counters. */
class Totals {
  private readonly seen = new Map<Counter, Map<string, number>>();

  constructor(private readonly metrics: Metrics) {}

  set<L extends string>(counter: Counter<L>, labels: MetricLabels<L>, total: number): void {
    let totals = this.seen.get(counter);
    if (totals === undefined) this.seen.set(counter, (totals = new Map<string, number>()));
    const key = counter.labels.map((name) => labels[name]).join('\0');
    const before = totals.get(key) ?? 0;
    if (total > before) this.metrics.count(counter, labels, total - before);
    totals.set(key, total);
  }
}

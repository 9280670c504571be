/** Metrics of a process and its connection to ZooKeeper, which launchers and builders have. */

import { counter, duration, gauge, type Counter, type MetricLabels, type Metrics } from '@nodepool/core';
import type { ZooKeeper } from '@nodepool/zookeeper';
import type { EventLoopMonitor } from '../diagnostics/event-loop.js';

export const ZOOKEEPER_REQUESTS = counter(
  'nodepool_zookeeper_requests_total',
  ['operation'],
  'Requests sent to ZooKeeper; a transaction counts once.',
);

export const ZOOKEEPER_BYTES = counter('nodepool_zookeeper_bytes_total', ['direction'], 'Bytes sent and received.');

export const ZOOKEEPER_EVENTS = counter<never>('nodepool_zookeeper_watch_events_total', [], 'Watch events received.');

export const ZOOKEEPER_CONNECTED = gauge<never>(
  'nodepool_zookeeper_connected',
  [],
  '1 while a server confirms the session.',
);

export const ZOOKEEPER_LATENCY = duration<never>(
  'nodepool_zookeeper_latency_seconds',
  [],
  'Durations of a read every 15 seconds.',
  [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 5],
);

/** `quantile` is `0.5`, `0.99` or `1`. */
export const EVENT_LOOP_DELAY = gauge(
  'nodepool_event_loop_delay_seconds',
  ['quantile'],
  'Delay of timers since the last collection.',
);

export const MEMORY = gauge('nodepool_process_memory_bytes', ['kind'], 'Resident, heap in use, outside of the heap.');

export const CPU = counter<never>('nodepool_process_cpu_seconds_total', [], 'Processor time.');

export interface ProcessMetricsOptions {
  readonly metrics: Metrics;
  readonly zooKeeper: Pick<ZooKeeper, 'counters' | 'state'>;
  readonly eventLoop: Pick<EventLoopMonitor, 'read' | 'reset'>;
}

/** Reports the metrics at each collection, except `ZOOKEEPER_LATENCY`. Returns a function that ends the reports. */
export function reportProcess({ metrics, zooKeeper, eventLoop }: ProcessMetricsOptions): () => void {
  const totals = new Totals(metrics);
  return metrics.onCollect(() => {
    const { counters, state } = zooKeeper;
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

/** Reports running totals as counters. */
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

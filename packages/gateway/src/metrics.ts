/** Metrics of the gateway. */

import type { Counter, Duration, Gauge, Metrics } from '@nodepool/core';
import { LEASE_STATES, type LeaseRecord, type LeaseState } from './leases/record.js';

export const LEASES: Gauge<'state'> = {
  kind: 'gauge',
  name: 'nodepool_gateway_leases',
  help: 'Leases.',
  labels: ['state'],
  statsd: ({ state }) => [`nodepool.gateway.leases.${state}`],
};

export const LEASE_NODES: Gauge<never> = {
  kind: 'gauge',
  name: 'nodepool_gateway_lease_nodes',
  help: 'Nodes of leases.',
  labels: [],
  statsd: () => ['nodepool.gateway.nodes'],
};

export const LEASE_READY: Duration<never> = {
  kind: 'duration',
  name: 'nodepool_gateway_lease_ready_seconds',
  help: 'Time from the creation of a lease until it had its nodes.',
  labels: [],
  buckets: [0.5, 1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600],
  statsd: () => ['nodepool.gateway.ready'],
};

export const LEASE_ENDS: Counter<'reason' | 'outcome'> = {
  kind: 'counter',
  name: 'nodepool_gateway_lease_ends_total',
  help: 'Leases that this gateway has ended, with the outcome that the holder reported.',
  labels: ['reason', 'outcome'],
  statsd: ({ reason, outcome }) => [`nodepool.gateway.end.${reason}.${outcome}`],
};

export const HTTP_REQUESTS: Duration<'operation' | 'status'> = {
  kind: 'duration',
  name: 'nodepool_gateway_request_duration_seconds',
  help: 'Durations of requests, without streams.',
  labels: ['operation', 'status'],
  buckets: [0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 5],
  statsd: ({ operation, status }) => [`nodepool.gateway.request.${operation}.${status}`],
};

export const STREAMS: Gauge<never> = {
  kind: 'gauge',
  name: 'nodepool_gateway_streams',
  help: 'Open streams of events.',
  labels: [],
  statsd: () => ['nodepool.gateway.streams'],
};

export const SETTINGS_PROBLEMS: Gauge<never> = {
  kind: 'gauge',
  name: 'nodepool_gateway_settings_problems',
  help: 'Problems in refused settings or tokens.',
  labels: [],
  statsd: () => [],
};

/** Reports the numbers of leases. */
export class LeaseMetrics {
  private readonly states = new Map<LeaseState, number>(LEASE_STATES.map((state) => [state, 0]));
  private nodes = 0;

  constructor(private readonly metrics: Metrics) {
    metrics.onCollect(() => {
      for (const [state, count] of this.states) metrics.set(LEASES, { state }, count);
      metrics.set(LEASE_NODES, {}, this.nodes);
    });
  }

  /** Counts a change of a lease. */
  changed(before: LeaseRecord | undefined, after: LeaseRecord | undefined): void {
    this.add(before, -1);
    this.add(after, 1);
  }

  /** Counts a lease that has its nodes, this time after its creation. */
  ready(seconds: number): void {
    this.metrics.observe(LEASE_READY, {}, seconds * 1000);
  }

  ended({ end }: LeaseRecord): void {
    this.metrics.count(LEASE_ENDS, { reason: end?.reason ?? 'released', outcome: end?.outcome ?? 'none' });
  }

  private add(record: LeaseRecord | undefined, amount: number): void {
    if (record === undefined) return;
    this.states.set(record.state, (this.states.get(record.state) ?? 0) + amount);
    if (record.state === 'ready') this.nodes += amount * record.nodes.filter(({ lost }) => lost === null).length;
  }
}

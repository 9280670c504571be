/**
 * Metrics of the whole ensemble: its nodes, and its requests by pool. The counts follow record changes, so that a
 * report costs time per label and provider, not per node. The launchers elect one of them to report.
 */

import { ELECTIONS_ROOT, type RequestEntry, type Store } from '@nodepool/store';
import { NODE_STATES, type Clock, type Logger, type Metrics } from '@nodepool/core';
import { election, type Election } from '@nodepool/zookeeper';
import { ADDRESSABLE_REQUESTS, LABEL_NODES, NODES, PROVIDER_NODES } from './launcher-metrics.js';
import type { NodeTally } from '@nodepool/status';
import { ReportedGauge } from '@nodepool/daemon';

/** Path of the election of the reporting launcher; launchers of the Python Nodepool contend for it as well. */
export const STATS_ELECTION = `${ELECTIONS_ROOT}/stats`;

export interface EnsembleMetricsOptions {
  readonly store: Store;
  /** The numbers of nodes; they must follow the records of the store. */
  readonly nodes: NodeTally;
  readonly metrics: Metrics;
  readonly clock: Clock;
  readonly log: Logger;
  /** Name of this contender, written into the election for operators to read. */
  readonly identifier: string;
}

export class EnsembleMetrics {
  private readonly election: Election;
  /** Numbers of requests by the set of their labels. */
  private readonly requests = new Map<string, { readonly labels: readonly string[]; count: number }>();
  private readonly gauges: {
    readonly nodes: ReportedGauge<'state'>;
    readonly labels: ReportedGauge<'label' | 'state'>;
    readonly providers: ReportedGauge<'provider' | 'state'>;
    readonly requests: ReportedGauge<'provider' | 'pool'>;
  };
  private unsubscribe: (() => void)[] = [];

  constructor(private readonly options: EnsembleMetricsOptions) {
    const { store, clock, identifier, log, metrics } = options;
    this.election = election(store.zooKeeper, STATS_ELECTION, {
      clock,
      identifier,
      onError: (error) => log.warn('The election of the launcher that reports statistics failed', { error }),
    });
    this.gauges = {
      nodes: new ReportedGauge(metrics, NODES),
      labels: new ReportedGauge(metrics, LABEL_NODES),
      providers: new ReportedGauge(metrics, PROVIDER_NODES),
      requests: new ReportedGauge(metrics, ADDRESSABLE_REQUESTS),
    };
  }

  /** Starts to watch the records and joins the election. */
  start(): void {
    const { store, metrics } = this.options;
    for (const entry of store.requests.all()) this.countRequest(entry, 1);
    this.unsubscribe = [
      store.requests.onChange(({ before, after }) => {
        if (before !== undefined && after !== undefined && haveSameLabels(before, after)) return;
        if (before !== undefined) this.countRequest(before, -1);
        if (after !== undefined) this.countRequest(after, 1);
      }),
      metrics.onCollect(() => this.collect()),
    ];
    this.election.run((term) => this.hold(term));
  }

  async stop(): Promise<void> {
    for (const unsubscribe of this.unsubscribe) unsubscribe();
    this.unsubscribe = [];
    await this.election.close();
    this.withdraw();
  }

  private countRequest({ request }: RequestEntry, amount: number): void {
    const labels = [...new Set(request.node_types)].sort();
    const key = JSON.stringify(labels);
    const counted = this.requests.get(key) ?? { labels, count: 0 };
    counted.count += amount;
    if (counted.count === 0) this.requests.delete(key);
    else this.requests.set(key, counted);
  }

  private async hold(term: AbortSignal): Promise<void> {
    this.options.log.info('This launcher reports the statistics of the ensemble');
    if (!term.aborted) await new Promise((resolve) => term.addEventListener('abort', resolve, { once: true }));
    this.withdraw();
  }

  /** Sets the gauges, but only from complete records: partial counts would be misleading. */
  private collect(): void {
    const { store } = this.options;
    if (!this.election.elected || !store.complete) return;
    const { all, byLabel, byProvider } = this.options.nodes;
    const labels = new Set(byLabel.keys());
    const providers = new Set(byProvider.keys());
    const pools = [...store.components.pools()];
    for (const pool of pools) {
      providers.add(pool.provider_name);
      for (const label of pool.supported_labels) labels.add(label);
    }
    const { gauges } = this;
    for (const state of NODE_STATES) {
      gauges.nodes.set({ state }, all.get('', state));
      for (const label of labels) gauges.labels.set({ label, state }, byLabel.get(label, state));
      for (const provider of providers) gauges.providers.set({ provider, state }, byProvider.get(provider, state));
    }
    for (const { provider_name: provider, name, supported_labels: served } of pools) {
      gauges.requests.set({ provider, pool: name }, this.addressable(served));
    }
    for (const gauge of Object.values(gauges)) gauge.end();
  }

  private addressable(labels: readonly string[]): number {
    const has = new Set(labels);
    let sum = 0;
    for (const { labels: wanted, count } of this.requests.values()) {
      if (wanted.every((label) => has.has(label))) sum += count;
    }
    return sum;
  }

  private withdraw(): void {
    for (const gauge of Object.values(this.gauges)) gauge.withdraw();
  }
}

function haveSameLabels(
  { request: { node_types: a } }: RequestEntry,
  { request: { node_types: b } }: RequestEntry,
): boolean {
  return a.length === b.length && a.every((label, index) => label === b[index]);
}

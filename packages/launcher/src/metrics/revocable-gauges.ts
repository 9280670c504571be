/** Metrics whose gauges can be withdrawn, because another object reports the same gauges from then on. */

import type { Counter, Duration, Gauge, MetricLabels, Metrics } from '@nodepool/core';

export class RevocableGauges implements Metrics {
  /** Functions that remove the gauges which were set, by series. */
  private readonly removals = new Map<string, () => void>();
  private isRevoked = false;

  constructor(private readonly metrics: Metrics) {}

  count<L extends string>(counter: Counter<L>, labels: MetricLabels<L>, amount?: number): void {
    this.metrics.count(counter, labels, amount);
  }

  observe<L extends string>(duration: Duration<L>, labels: MetricLabels<L>, milliseconds: number): void {
    this.metrics.observe(duration, labels, milliseconds);
  }

  set<L extends string>(gauge: Gauge<L>, labels: MetricLabels<L>, value: number | undefined): void {
    if (this.isRevoked) return;
    const key = JSON.stringify([gauge.name, gauge.labels.map((label) => labels[label])]);
    if (value === undefined) this.removals.delete(key);
    else this.removals.set(key, () => this.metrics.set(gauge, labels, undefined));
    this.metrics.set(gauge, labels, value);
  }

  onCollect(refresh: () => void): () => void {
    return this.metrics.onCollect(refresh);
  }

  /** Removes all gauges that were set, and ignores further values. */
  revoke(): void {
    this.isRevoked = true;
    for (const remove of this.removals.values()) remove();
    this.removals.clear();
  }
}

/** A gauge whose series come and go, told as a whole from time to time. */

import type { Gauge, MetricLabels, Metrics } from '@nodepool/core';

interface Series<L extends string> {
  readonly labels: MetricLabels<L>;
  readonly value: number;
}

export class ReportedGauge<L extends string> {
  private last = new Map<string, Series<L>>();
  private next = new Map<string, Series<L>>();

  constructor(
    private readonly metrics: Metrics,
    private readonly gauge: Gauge<L>,
  ) {}

  /** One of the series of the report that `end` completes. */
  set(labels: MetricLabels<L>, value: number): void {
    this.next.set(this.gauge.labels.map((name) => labels[name]).join('\0'), { labels, value });
    this.metrics.set(this.gauge, labels, value);
  }

  /** What was not told in this report is gone; by way of 0, since statsd remembers the last value. */
  end(): void {
    for (const [key, { labels, value }] of this.last) {
      if (this.next.has(key)) continue;
      if (value === 0) this.metrics.set(this.gauge, labels, undefined);
      else {
        this.metrics.set(this.gauge, labels, 0);
        this.next.set(key, { labels, value: 0 });
      }
    }
    this.last = this.next;
    this.next = new Map();
  }

  /** Tells nothing any more: somebody else does. */
  withdraw(): void {
    for (const { labels } of this.last.values()) this.metrics.set(this.gauge, labels, undefined);
    this.last.clear();
  }
}

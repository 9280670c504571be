/** A gauge whose series are always reported as a complete set. */

import type { Gauge, MetricLabels, Metrics } from '@nodepool/core';

interface Series<L extends string> {
  readonly labels: MetricLabels<L>;
  readonly value: number;
}

export class ReportedGauge<L extends string> {
  private last = new Map<string, Series<L>>();
  private next = new Map<string, Series<L>>();

  constructor(
    private readonly metrics: Pick<Metrics, 'set'>,
    private readonly gauge: Gauge<L>,
  ) {}

  /** Sets one series of the current report, which `end` completes. */
  set(labels: MetricLabels<L>, value: number): void {
    this.next.set(this.gauge.labels.map((name) => labels[name]).join('\0'), { labels, value });
    this.metrics.set(this.gauge, labels, value);
  }

  /** Completes the report. A series that it lacks becomes 0, as statsd remembers, and ends with the next report. */
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

  /** Removes all series because another launcher takes over the reports. */
  withdraw(): void {
    for (const { labels } of this.last.values()) this.metrics.set(this.gauge, labels, undefined);
    this.last.clear();
  }
}

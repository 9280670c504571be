/** Stores metrics for Prometheus. */

import { createRequire } from 'node:module';
import type * as PrometheusClient from 'prom-client';
import type { Gauge as GaugeSeries, Registry } from 'prom-client';
import type { Counter, Duration, Gauge, MetricLabels, PrometheusSeries } from '@nodepool/core';
import { Histogram } from './histogram.js';
import { LabelTree, MAX_SERIES } from './label-tree.js';

const load = createRequire(__filename);

/** Opens an empty store. Calls `onDropped` once per metric that has too many series; its new series are dropped. */
export function openPrometheus(onDropped: (metric: string) => void): PrometheusSeries {
  // Loaded only by programs with an endpoint.
  return new Series(load('prom-client') as typeof PrometheusClient, onDropped);
}

class Series implements PrometheusSeries {
  private readonly registry: Registry;
  private readonly counters = new Map<Counter, LabelTree<Total>>();
  private readonly gauges = new Map<Gauge, BoundedGauge>();
  private readonly histograms = new Map<Duration, Histogram>();

  constructor(
    private readonly client: typeof PrometheusClient,
    private readonly onDropped: (metric: string) => void,
  ) {
    this.registry = new client.Registry();
  }

  get contentType(): string {
    return this.registry.contentType;
  }

  increment(counter: Counter, labels: MetricLabels<string>, amount: number): void {
    const total = (this.counters.get(counter) ?? this.addCounter(counter)).of(labels);
    if (total !== undefined) total.value += amount;
  }

  observe(duration: Duration, labels: MetricLabels<string>, seconds: number): void {
    (this.histograms.get(duration) ?? this.addHistogram(duration)).observe(labels, seconds);
  }

  set(gauge: Gauge, labels: MetricLabels<string>, value: number | undefined): void {
    const series = this.gauges.get(gauge) ?? this.addGauge(gauge);
    if (value === undefined) {
      if (series.admitted.delete(seriesKey(gauge, labels))) series.of.remove(labels);
    } else if (this.admits(gauge, series, labels)) series.of.set(labels, value);
  }

  text(): Promise<string> {
    return this.registry.metrics();
  }

  private addCounter(counter: Counter): LabelTree<Total> {
    const { name, help, labels: names } = counter;
    const make = (labels: MetricLabels<string>): Total => ({ labels, value: 0 });
    const totals = new LabelTree<Total>(names, make, () => this.onDropped(name));
    this.counters.set(counter, totals);
    const exported = new this.client.Counter({
      ...{ name, help, labelNames: [...names], registers: [this.registry] },
      // An increment of the client's counter takes several times as long as one of a total.
      collect: () => {
        exported.reset();
        for (const { labels, value } of totals.all) exported.inc(labels, value);
      },
    });
    return totals;
  }

  private addHistogram(duration: Duration): Histogram {
    const histogram = new Histogram(duration, () => this.onDropped(duration.name));
    this.histograms.set(duration, histogram);
    histogram.register(this.registry);
    return histogram;
  }

  private addGauge(gauge: Gauge): BoundedGauge {
    const { name, help, labels } = gauge;
    const of = new this.client.Gauge({ name, help, labelNames: [...labels], registers: [this.registry] });
    const series: BoundedGauge = { of, admitted: new Set(), full: false };
    this.gauges.set(gauge, series);
    return series;
  }

  private admits(gauge: Gauge, series: BoundedGauge, labels: MetricLabels<string>): boolean {
    const key = seriesKey(gauge, labels);
    if (series.admitted.has(key)) return true;
    if (series.admitted.size < MAX_SERIES) {
      series.admitted.add(key);
      return true;
    }
    if (!series.full) {
      series.full = true;
      this.onDropped(gauge.name);
    }
    return false;
  }
}

/** The sum of a counter's increments with the same labels. */
interface Total {
  readonly labels: MetricLabels<string>;
  value: number;
}

interface BoundedGauge {
  readonly of: GaugeSeries;
  /** Label sets of the existing series. */
  readonly admitted: Set<string>;
  full: boolean;
}

function seriesKey({ labels: names }: Gauge, labels: MetricLabels<string>): string {
  return names.map((name) => `${labels[name] ?? ''}\0`).join('');
}

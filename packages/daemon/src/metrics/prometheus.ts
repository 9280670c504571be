/** Stores metrics for Prometheus. */

import { createRequire } from 'node:module';
import type * as PrometheusClient from 'prom-client';
import type { Counter as CounterSeries, Gauge as GaugeSeries, Registry } from 'prom-client';
import type { Counter, Duration, Gauge, MetricLabels, PrometheusSeries } from '@nodepool/core';
import { Histogram } from './histogram.js';

const load = createRequire(__filename);

/** Limit of series per metric, since label values can come from outside. */
const MAX_SERIES = 5000;

/** Opens an empty store. Calls `onDropped` once per metric that has too many series; its new series are dropped. */
export function openPrometheus(onDropped: (metric: string) => void): PrometheusSeries {
  // Loaded only by programs with an endpoint.
  return new Series(load('#prom-client') as Client, onDropped);
}

/** The parts of prom-client that the published package contains as a bundle. */
type Client = Pick<typeof PrometheusClient, 'Registry' | 'Counter' | 'Gauge'>;

class Series implements PrometheusSeries {
  private readonly registry: Registry;
  private readonly counters = new Map<Counter, Bounded<CounterSeries>>();
  private readonly gauges = new Map<Gauge, Bounded<GaugeSeries>>();
  private readonly histograms = new Map<Duration, Histogram>();

  constructor(
    private readonly client: Client,
    private readonly onDropped: (metric: string) => void,
  ) {
    this.registry = new client.Registry();
  }

  get contentType(): string {
    return this.registry.contentType;
  }

  increment(counter: Counter, labels: MetricLabels<string>, amount: number): void {
    const series = this.known(this.counters, counter, (settings) => new this.client.Counter(settings));
    if (this.admits(counter, series, labels)) series.of.inc(labels, amount);
  }

  observe(duration: Duration, labels: MetricLabels<string>, seconds: number): void {
    let histogram = this.histograms.get(duration);
    if (histogram === undefined) {
      histogram = new Histogram(duration, MAX_SERIES, this.onDroppedOnce(duration.name));
      histogram.register(this.registry);
      this.histograms.set(duration, histogram);
    }
    histogram.observe(labels, seconds);
  }

  set(gauge: Gauge, labels: MetricLabels<string>, value: number | undefined): void {
    const series = this.known(this.gauges, gauge, (settings) => new this.client.Gauge(settings));
    if (value === undefined) {
      if (series.admitted.delete(seriesKey(gauge, labels))) series.of.remove(labels);
    } else if (this.admits(gauge, series, labels)) series.of.set(labels, value);
  }

  text(): Promise<string> {
    return this.registry.metrics();
  }

  private known<D extends Counter | Gauge, S>(
    kept: Map<D, Bounded<S>>,
    declaration: D,
    make: (settings: { name: string; help: string; labelNames: string[]; registers: Registry[] }) => S,
  ): Bounded<S> {
    let series = kept.get(declaration);
    if (series === undefined) {
      const { name, help, labels } = declaration;
      const of = make({ name, help, labelNames: [...labels], registers: [this.registry] });
      series = { of, admitted: new Set(), onFull: this.onDroppedOnce(name) };
      kept.set(declaration, series);
    }
    return series;
  }

  private admits<S>(declaration: Counter | Gauge, series: Bounded<S>, labels: MetricLabels<string>): boolean {
    const key = seriesKey(declaration, labels);
    if (series.admitted.has(key)) return true;
    if (series.admitted.size < MAX_SERIES) {
      series.admitted.add(key);
      return true;
    }
    series.onFull();
    return false;
  }

  private onDroppedOnce(metric: string): () => void {
    let isReported = false;
    return () => {
      if (!isReported) this.onDropped(metric);
      isReported = true;
    };
  }
}

interface Bounded<S> {
  readonly of: S;
  /** Label sets of the existing series. */
  readonly admitted: Set<string>;
  /** Called for each value that is dropped because there are too many series. */
  readonly onFull: () => void;
}

function seriesKey({ labels: names }: Counter | Gauge, labels: MetricLabels<string>): string {
  let key = '';
  names.forEach((name) => (key += `${labels[name] ?? ''}\0`));
  return key;
}

/** Passes reported values to statsd and Prometheus; either may be missing. */

import type { Clock, Counter, Duration, Gauge, MetricLabels, Metrics, Timer } from '@nodepool/core';
import { Emitter } from '@nodepool/core';
import type { PrometheusSeries } from './prometheus.js';
import type { StatsdSender } from './statsd.js';

/** Interval (ms) of repeated gauges, since statsd forgets gauges that are not repeated. */
const SEND_INTERVAL_MS = 10_000;

export interface MetricsRegistryOptions {
  readonly clock: Clock;
  readonly statsd: StatsdSender | undefined;
  readonly prometheus: PrometheusSeries | undefined;
  /** Called if a value could not be collected; the others are still reported. */
  readonly onError: (error: unknown) => void;
}

interface RepeatedGauge {
  readonly keys: readonly string[];
  value: number;
}

/** A registry that sends from its creation until `close`. */
export class MetricsRegistry implements Metrics {
  /** Gauges to repeat to statsd, by declaration, then by labels. */
  private readonly gauges = new Map<Gauge, Map<string, RepeatedGauge>>();
  private readonly collections: Emitter<void>;
  private timer: Timer | undefined;

  constructor(private readonly options: MetricsRegistryOptions) {
    this.collections = new Emitter((error) => options.onError(error));
    if (options.statsd !== undefined) this.scheduleSending();
  }

  count<L extends string>(counter: Counter<L>, labels: MetricLabels<L>, amount = 1): void {
    const { statsd, prometheus } = this.options;
    prometheus?.increment(counter, labels, amount);
    if (statsd === undefined) return;
    for (const key of counter.statsd(labels)) statsd.increment(key, amount);
  }

  observe<L extends string>(duration: Duration<L>, labels: MetricLabels<L>, milliseconds: number): void {
    const { statsd, prometheus } = this.options;
    prometheus?.observe(duration, labels, milliseconds / 1000);
    if (statsd === undefined) return;
    for (const key of duration.statsd(labels)) {
      statsd.timing(key, milliseconds);
      statsd.increment(key, 1);
    }
  }

  set<L extends string>(gauge: Gauge<L>, labels: MetricLabels<L>, value: number | undefined): void {
    this.options.prometheus?.set(gauge, labels, value);
    if (this.options.statsd !== undefined) this.keep(gauge, labels, value);
  }

  onCollect(refresh: () => void): () => void {
    return this.collections.on(refresh);
  }

  /** Returns the text for Prometheus; undefined if it is off. */
  async exposition(): Promise<{ readonly contentType: string; readonly text: string } | undefined> {
    const { prometheus } = this.options;
    if (prometheus === undefined) return undefined;
    this.collections.emit();
    return { contentType: prometheus.contentType, text: await prometheus.text() };
  }

  /** Sends the gauges a last time. Resolves once everything is sent; later values are dropped. */
  async close(): Promise<void> {
    this.timer?.cancel();
    this.timer = undefined;
    const { statsd } = this.options;
    if (statsd === undefined) return;
    this.send(statsd);
    await statsd.close();
  }

  private keep<L extends string>(gauge: Gauge<L>, labels: MetricLabels<L>, value: number | undefined): void {
    let kept = this.gauges.get(gauge);
    if (kept === undefined) this.gauges.set(gauge, (kept = new Map<string, RepeatedGauge>()));
    const series = gauge.labels.map((name) => labels[name]).join('\0');
    const known = kept.get(series);
    if (value === undefined) kept.delete(series);
    else if (known !== undefined) known.value = value;
    else kept.set(series, { keys: gauge.statsd(labels), value });
  }

  private scheduleSending(): void {
    const { clock, statsd } = this.options;
    this.timer = clock.schedule(
      SEND_INTERVAL_MS,
      () => {
        if (statsd !== undefined) this.send(statsd);
        this.scheduleSending();
      },
      { background: true },
    );
  }

  private send(statsd: StatsdSender): void {
    this.collections.emit();
    for (const kept of this.gauges.values()) {
      for (const { keys, value } of kept.values()) for (const key of keys) statsd.gauge(key, value);
    }
  }
}

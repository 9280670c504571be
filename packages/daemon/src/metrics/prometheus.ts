import { createRequire } from 'node:module';
import type * as PrometheusClient from 'prom-client';
import type { Registry } from 'prom-client';
import type { Counter, Duration, Gauge, MetricLabels } from '@nodepool/core';

const load = createRequire(__filename);

/** Limit of series per metric, since label values can come from outside. */
const MAX_SERIES = 5000;

/** Opens an empty store. Calls `onDropped` once per metric that has too many series; its new series are dropped. */
export function openPrometheus(onDropped: (metric: string) => void): PrometheusSeries {
  // Loaded only by programs with an endpoint.
  return new PrometheusSeries(load('prom-client') as typeof PrometheusClient, onDropped);
}

export class PrometheusSeries {
  private readonly registry: Registry;
  private readonly counters = new Map<Counter, Bounded<PrometheusClient.Counter>>();
  private readonly gauges = new Map<Gauge, Bounded<PrometheusClient.Gauge>>();
  private readonly histograms = new Map<Duration, Bounded<PrometheusClient.Histogram>>();

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
    const { Counter: Client } = this.client;
    this.bounded(this.counters, counter, (options) => new Client(options))
      .admitted(labels)
      ?.inc(labels, amount);
  }

  observe(duration: Duration, labels: MetricLabels<string>, seconds: number): void {
    const { Histogram } = this.client;
    const { buckets } = duration;
    this.bounded(this.histograms, duration, (options) => new Histogram({ ...options, buckets: [...buckets] }))
      .admitted(labels)
      ?.observe(labels, seconds);
  }

  set(gauge: Gauge, labels: MetricLabels<string>, value: number | undefined): void {
    const { Gauge: Client } = this.client;
    const series = this.bounded(this.gauges, gauge, (options) => new Client(options));
    if (value !== undefined) series.admitted(labels)?.set(labels, value);
    else if (series.forget(labels)) series.of.remove(labels);
  }

  text(): Promise<string> {
    return this.registry.metrics();
  }

  private bounded<D extends Declared, M>(
    known: Map<D, Bounded<M>>,
    declared: D,
    create: (options: ClientOptions) => M,
  ): Bounded<M> {
    let metric = known.get(declared);
    if (metric === undefined) {
      const { name, help, labels } = declared;
      const of = create({ name, help, labelNames: [...labels], registers: [this.registry] });
      metric = new Bounded(of, labels, () => this.onDropped(name));
      known.set(declared, metric);
    }
    return metric;
  }
}

type Declared = Pick<Gauge, 'name' | 'help' | 'labels'>;

interface ClientOptions {
  readonly name: string;
  readonly help: string;
  readonly labelNames: string[];
  readonly registers: Registry[];
}

/** A metric of prom-client with a limited number of series. */
class Bounded<M> {
  private readonly series = new Set<string>();
  private isFull = false;

  /** `onDropped` is called once, for the first series that is dropped because there are too many. */
  constructor(
    readonly of: M,
    private readonly names: readonly string[],
    private readonly onDropped: () => void,
  ) {}

  /** Returns the metric if it may have a series of these labels. */
  admitted(labels: MetricLabels<string>): M | undefined {
    const key = this.keyOf(labels);
    if (this.series.has(key)) return this.of;
    if (this.series.size >= MAX_SERIES) {
      if (!this.isFull) this.onDropped();
      this.isFull = true;
      return undefined;
    }
    this.series.add(key);
    return this.of;
  }

  /** Returns true if there was a series of these labels. */
  forget(labels: MetricLabels<string>): boolean {
    return this.series.delete(this.keyOf(labels));
  }

  private keyOf(labels: MetricLabels<string>): string {
    return this.names.map((name) => labels[name] ?? '').join('\0');
  }
}

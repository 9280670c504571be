/** A histogram in a registry of prom-client, whose own histogram takes several times as long per value. */

import type { Histogram as ClientHistogram, Registry } from 'prom-client';
import type { Duration, MetricLabels } from '@nodepool/core';

type Exported = Awaited<ReturnType<ClientHistogram['get']>>;

/** The values with the same labels. */
interface Series {
  readonly labels: MetricLabels<string>;
  /** Number of values by bucket; the last bucket has no upper bound. */
  readonly counts: number[];
  sum: number;
}

/** Series by the values of their labels, one label per level: faster than a string that combines the values. */
interface Level {
  readonly next: Map<string, Level>;
  series: Series | undefined;
}

export class Histogram {
  readonly name: string;
  private readonly root = newLevel();
  /** In the order of their creation. */
  private readonly all: Series[] = [];

  /** `onFull` is called for each value of a series that would exceed `maxSeries`; the value is dropped. */
  constructor(
    private readonly duration: Duration,
    private readonly maxSeries: number,
    private readonly onFull: () => void,
  ) {
    this.name = duration.name;
  }

  register(registry: Registry): void {
    // The registry uses only `name` and `get`.
    registry.registerMetric(this as unknown as ClientHistogram);
  }

  observe(labels: MetricLabels<string>, seconds: number): void {
    const series = this.find(labels) ?? this.add(labels);
    if (series === undefined) return;
    const { buckets } = this.duration;
    let bucket = 0;
    while (seconds > (buckets[bucket] ?? Infinity)) bucket += 1;
    series.counts[bucket] = (series.counts[bucket] ?? 0) + 1;
    series.sum += seconds;
  }

  /** Returns all values, for the registry. */
  get(): Promise<Pick<Exported, 'name' | 'help' | 'values'> & { readonly type: string }> {
    const { name, help } = this.duration;
    const values = this.all.flatMap((series) => this.valuesOf(series));
    return Promise.resolve({ name, help, type: 'histogram', values });
  }

  private valuesOf({ labels, counts, sum }: Series): Exported['values'] {
    const { name, buckets } = this.duration;
    let count = 0;
    const upTo = (le: string | number, bucket: number): Exported['values'][number] => {
      count += counts[bucket] ?? 0;
      return { metricName: `${name}_bucket`, labels: { le, ...labels }, value: count };
    };
    return [
      ...buckets.map(upTo),
      upTo('+Inf', buckets.length),
      { metricName: `${name}_sum`, labels, value: sum },
      { metricName: `${name}_count`, labels, value: count },
    ];
  }

  private find(labels: MetricLabels<string>): Series | undefined {
    const { labels: names } = this.duration;
    let level: Level | undefined = this.root;
    for (let index = 0; index < names.length && level !== undefined; index += 1) {
      level = level.next.get(labels[names[index] ?? ''] ?? '');
    }
    return level?.series;
  }

  private add(labels: MetricLabels<string>): Series | undefined {
    if (this.all.length >= this.maxSeries) {
      this.onFull();
      return undefined;
    }
    let level = this.root;
    for (const name of this.duration.labels) {
      const value = labels[name] ?? '';
      const next = level.next.get(value) ?? newLevel();
      level.next.set(value, next);
      level = next;
    }
    const counts = Array.from({ length: this.duration.buckets.length + 1 }, () => 0);
    level.series = { labels, counts, sum: 0 };
    this.all.push(level.series);
    return level.series;
  }
}

function newLevel(): Level {
  return { next: new Map(), series: undefined };
}

/** A histogram in a registry of prom-client, whose own histogram takes several times as long per value. */

import type { Histogram as ClientHistogram, Registry } from 'prom-client';
import type { Duration, MetricLabels } from '@nodepool/core';
import { LabelTree } from './label-tree.js';

type Exported = Awaited<ReturnType<ClientHistogram['get']>>;

/** The values with the same labels. */
interface Series {
  readonly labels: MetricLabels<string>;
  /** Number of values by bucket; the last bucket has no upper bound. */
  readonly counts: number[];
  sum: number;
}

export class Histogram {
  readonly name: string;
  private readonly series: LabelTree<Series>;

  /** `onDropped` is called once if there are too many series. */
  constructor(
    private readonly duration: Duration,
    onDropped: () => void,
  ) {
    const { name, labels: names, buckets } = duration;
    const make = (labels: MetricLabels<string>): Series => {
      return { labels, counts: Array.from({ length: buckets.length + 1 }, () => 0), sum: 0 };
    };
    this.name = name;
    this.series = new LabelTree(names, make, onDropped);
  }

  register(registry: Registry): void {
    // The registry uses only `name` and `get`.
    registry.registerMetric(this as unknown as ClientHistogram);
  }

  observe(labels: MetricLabels<string>, seconds: number): void {
    const series = this.series.of(labels);
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
    const values = this.series.all.flatMap((series) => this.valuesOf(series));
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
}

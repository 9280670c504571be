/** Generates tables of a program's metrics from their declarations. */

import type { Counter, Duration, Gauge } from '@nodepool/core';
import { code, prose, table } from './markdown.js';

type Metric = Counter | Duration | Gauge;

/** Returns tables of all declarations among the exports of the modules, by name. */
export function metricsReference(...modules: readonly Readonly<Record<string, unknown>>[]): string {
  const metrics = modules.flatMap((module) => Object.values(module)).filter(isMetric);
  const rows = [...new Map(metrics.map((metric) => [metric.name, metric])).values()]
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .map((metric) => [
      code(seriesOf(metric)) + (metric.kind === 'duration' ? ' histogram' : ''),
      statsdKeys(metric).map(code).join(', '),
      prose(metric.help),
    ]);
  return table(['Prometheus', 'statsd', 'meaning'], rows);
}

/** Returns the names of all series of the declarations among the exports of the modules, as Prometheus stores them. */
export function seriesNames(...modules: readonly Readonly<Record<string, unknown>>[]): ReadonlySet<string> {
  const metrics = modules.flatMap((module) => Object.values(module)).filter(isMetric);
  return new Set(
    metrics.flatMap(({ kind, name }) =>
      kind === 'duration' ? ['_bucket', '_sum', '_count'].map((suffix) => `${name}${suffix}`) : [name],
    ),
  );
}

/** Returns the name with the names of the labels, e.g. `nodepool_nodes{state}`. Throws if it hides the kind. */
function seriesOf({ kind, name, labels }: Metric): string {
  if ((kind === 'counter') !== name.endsWith('_total')) throw new Error(`only counters end with _total, not ${name}`);
  return labels.length === 0 ? name : `${name}{${labels.join(',')}}`;
}

/** Returns the keys, with the names of labels in place of their values. */
function statsdKeys(metric: Metric): readonly string[] {
  return metric.statsd(Object.fromEntries(metric.labels.map((label) => [label, `<${label}>`])));
}

function isMetric(value: unknown): value is Metric {
  return (
    typeof value === 'object' &&
    value !== null &&
    'kind' in value &&
    (value.kind === 'counter' || value.kind === 'gauge' || value.kind === 'duration') &&
    'help' in value &&
    'statsd' in value &&
    typeof value.statsd === 'function'
  );
}

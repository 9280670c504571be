/** Generates the lists of a program's metrics from their declarations. */

import type { Counter, Duration, Gauge } from '@nodepool/core';
import { code, prose } from './markdown.js';

type Metric = Counter | Duration | Gauge;

/** Returns a list of all declarations among the exports of the modules, by name. */
export function metricsReference(...modules: readonly Readonly<Record<string, unknown>>[]): string {
  const metrics = modules.flatMap((module) => Object.values(module)).filter(isMetric);
  return [...new Map(metrics.map((metric) => [metric.name, metric])).values()]
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .map((metric) => `- ${[nameOf(metric), ...statsdKeys(metric).map(code)].join(', ')}: ${prose(metric.help)}`)
    .join('\n');
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

/** Returns the name with the names of the labels and, if it does not tell, the kind. Throws if the name misleads. */
function nameOf({ kind, name, labels }: Metric): string {
  if ((kind === 'counter') !== name.endsWith('_total')) throw new Error(`only counters end with _total, not ${name}`);
  const series = code(labels.length === 0 ? name : `${name}{${labels.join(',')}}`);
  return kind === 'duration' ? `${series} histogram` : series;
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

/** Opens the metrics of the program: statsd if the environment configures it, Prometheus if there is an endpoint. */

import type { Logger, Clock } from '@nodepool/core';
import { MetricsRegistry } from './metrics-registry.js';
import { openPrometheus } from './prometheus.js';
import { openStatsd, statsdAddress } from './statsd.js';

/** Minimum time (ms) between warnings of an unreachable statsd. */
const WARNING_INTERVAL_MS = 600_000;

export interface OpenMetricsOptions {
  readonly clock: Clock;
  readonly log: Logger;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** True if there is an endpoint for Prometheus. */
  readonly prometheus: boolean;
}

/** Opens the metrics. Throws `StatsdAddressError`. */
export function openMetrics({ clock, log, env, prometheus }: OpenMetricsOptions): MetricsRegistry {
  const address = statsdAddress(env);
  let warnedAt = -Infinity;
  const onStatsdError = (error: Error): void => {
    const now = clock.monotonic();
    if (now - warnedAt < WARNING_INTERVAL_MS) return;
    warnedAt = now;
    log.warn('Metrics cannot be sent to statsd and are lost until the problem is solved', { ...address, error });
  };
  if (address !== undefined) log.info('Sending metrics to statsd', { ...address });
  return new MetricsRegistry({
    clock,
    statsd: address === undefined ? undefined : openStatsd(address, clock, onStatsdError),
    prometheus: prometheus
      ? openPrometheus((metric) => log.warn('A metric has too many series; new series are dropped', { metric }))
      : undefined,
    onError: (error) => log.error('A metric could not be collected', error),
  });
}

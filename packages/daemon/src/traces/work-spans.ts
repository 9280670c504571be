/** Writes work of builders as spans, from the durations that they report as metrics. */

import type { Clock, Metrics, Tracing } from '@nodepool/core';

/** Returns metrics that forward to `metrics`, and write a span for each duration of one of these names. */
export function spansOfDurations(
  metrics: Metrics,
  tracing: Tracing,
  clock: Pick<Clock, 'now'>,
  /** Names of spans by the names of durations. */
  names: Readonly<Record<string, string>>,
): Metrics {
  return {
    count: (counter, labels, amount) => metrics.count(counter, labels, amount),
    observe: (duration, labels, ms) => {
      metrics.observe(duration, labels, ms);
      const { [duration.name]: name } = names;
      if (name === undefined) return;
      const attributes = Object.fromEntries(
        Object.entries<string>(labels).map(([label, value]) => [`nodepool.${label}`, value]),
      );
      const end = clock.now();
      tracing.span(name, { at: end - ms, attributes }).end(end);
    },
    set: (gauge, labels, value) => metrics.set(gauge, labels, value),
    onCollect: (refresh) => metrics.onCollect(refresh),
  };
}

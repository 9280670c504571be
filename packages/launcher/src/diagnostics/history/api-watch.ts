/** Counts calls of clouds for the history, as drivers report them to the metrics. */

import { API_ANSWERS, API_CALLS, type Metrics } from '@nodepool/core';
import type { History } from './history.js';

/** Returns metrics that forward to `metrics` and count the calls of clouds in the history. */
export function watchApiCalls(metrics: Metrics, history: () => Pick<History, 'called' | 'answered'>): Metrics {
  return {
    count: (counter, labels, amount) => {
      metrics.count(counter, labels, amount);
      if (counter.name !== API_ANSWERS.name) return;
      const { provider, status }: Partial<Record<string, string>> = labels;
      if (provider !== undefined && status !== undefined) history().answered(provider, status);
    },
    observe: (duration, labels, ms) => {
      metrics.observe(duration, labels, ms);
      if (duration.name !== API_CALLS.name) return;
      const { provider }: Partial<Record<string, string>> = labels;
      if (provider !== undefined) history().called(provider, ms);
    },
    set: (gauge, labels, value) => metrics.set(gauge, labels, value),
    onCollect: (refresh) => metrics.onCollect(refresh),
  };
}

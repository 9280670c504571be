/** Counts cloud API calls for the history, from the metrics that drivers report. */

import { API_ANSWERS, API_CALLS, type Metrics } from '@nodepool/core';
import type { History } from './history.js';

/** Returns metrics that forward to `metrics` and count cloud API calls in the history. */
export function watchApiCalls(metrics: Metrics, history: Pick<History, 'called' | 'answered'>): Metrics {
  return {
    count: (counter, labels, amount) => {
      metrics.count(counter, labels, amount);
      if (counter.name !== API_ANSWERS.name) return;
      const { provider, status }: Partial<Record<string, string>> = labels;
      if (provider !== undefined && status !== undefined) history.answered(provider, status);
    },
    observe: (duration, labels, ms) => {
      metrics.observe(duration, labels, ms);
      if (duration.name !== API_CALLS.name) return;
      const { provider }: Partial<Record<string, string>> = labels;
      if (provider !== undefined) history.called(provider, ms);
    },
    set: (gauge, labels, value) => metrics.set(gauge, labels, value),
    onCollect: (refresh) => metrics.onCollect(refresh),
  };
}

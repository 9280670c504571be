/** Metrics of remote calls, shared by all programs. The statsd keys are those of the Python Nodepool. */

import { counter, duration, statsdName as name, statsdPart as part } from '../runtime/metrics.js';

const CALL_SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

export const API_CALLS = duration(
  'nodepool_api_call_duration_seconds',
  ['provider', 'service', 'method', 'operation'],
  'Durations of calls to clouds, including failed ones.',
  CALL_SECONDS,
  ({ provider, service, method, operation }) => [
    `nodepool.task.${name(provider)}.${part(service)}.${part(method)}.${part(operation)}`,
  ],
);

/** Counts answers by HTTP status or error code; `429` indicates throttling. */
export const API_ANSWERS = counter(
  'nodepool_api_answers_total',
  ['provider', 'service', 'status'],
  'Answers of clouds; status: of HTTP, an error code, or `none` without an answer.',
);

/** Metrics of remote calls, shared by all programs. The statsd keys are those of the Python Nodepool. */

import { statsdName as name, statsdPart as part, type Counter, type Duration } from '../runtime/metrics.js';

const CALL_SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

export const API_CALLS: Duration<'provider' | 'service' | 'method' | 'operation'> = {
  kind: 'duration',
  name: 'nodepool_api_call_duration_seconds',
  help: 'Durations of ended calls to clouds, including failed ones.',
  labels: ['provider', 'service', 'method', 'operation'],
  buckets: CALL_SECONDS,
  statsd: ({ provider, service, method, operation }) => [
    `nodepool.task.${name(provider)}.${part(service)}.${part(method)}.${part(operation)}`,
  ],
};

/** Counts answers by HTTP status or error code; `429` indicates throttling. */
export const API_ANSWERS: Counter<'provider' | 'service' | 'status'> = {
  kind: 'counter',
  name: 'nodepool_api_answers_total',
  help: 'Answers of clouds by HTTP status or error code; `none` if there was no answer. 429 is throttling.',
  labels: ['provider', 'service', 'status'],
  statsd: () => [],
};

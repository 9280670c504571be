/** Gauges of the states and problems that the status page shows. */

import type { Gauge } from '@nodepool/core';

/** `state` is one of the status page; the value is 1 for the present state and 0 for the others. */
export const PROVIDER_STATE: Gauge<'provider' | 'state'> = {
  kind: 'gauge',
  name: 'nodepool_provider_state',
  help: 'State of the provider as each launcher sees it: 1 for the present state, 0 for the others.',
  labels: ['provider', 'state'],
  statsd: () => [],
};

/** `label` is empty for labels that neither the configuration nor a pool has; `state` is `requested` or `pending`. */
export const UNFULFILLED_REQUESTS: Gauge<'label' | 'state'> = {
  kind: 'gauge',
  name: 'nodepool_unfulfilled_requests',
  help: 'Requests that are not fulfilled, by label and state. All unknown labels together have an empty label.',
  labels: ['label', 'state'],
  statsd: () => [],
};

export const OLDEST_REQUEST: Gauge<'label'> = {
  kind: 'gauge',
  name: 'nodepool_oldest_unfulfilled_request_seconds',
  help: 'Age of the oldest request that is not fulfilled, by label. All unknown labels have an empty label.',
  labels: ['label'],
  statsd: () => [],
};

/** `problem` is the kind of the problem, e.g. `failed-requests`. */
export const PROBLEMS: Gauge<'problem' | 'severity'> = {
  kind: 'gauge',
  name: 'nodepool_problems',
  help: 'Problems of the status page by kind and severity, as each launcher sees them.',
  labels: ['problem', 'severity'],
  statsd: () => [],
};

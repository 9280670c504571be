/** Gauges of the states and problems that the status page shows. */

import { gauge } from '@nodepool/core';

/** `state` is one of the status page; the value is 1 for the present state and 0 for the others. */
export const PROVIDER_STATE = gauge(
  'nodepool_provider_state',
  ['provider', 'state'],
  '1 for the state of the provider, as each launcher sees it, 0 for the others.',
);

/** `label` is empty for labels that neither the configuration nor a pool has; `state` is `requested` or `pending`. */
export const UNFULFILLED_REQUESTS = gauge(
  'nodepool_unfulfilled_requests',
  ['label', 'state'],
  'Requests that are not fulfilled. An empty label: all unknown ones.',
);

export const OLDEST_REQUEST = gauge(
  'nodepool_oldest_unfulfilled_request_seconds',
  ['label'],
  'Age of the oldest request that is not fulfilled. An empty label: all unknown ones.',
);

/** `problem` is the kind of the problem, e.g. `failed-requests`. */
export const PROBLEMS = gauge(
  'nodepool_problems',
  ['problem', 'severity'],
  'Problems of the status page, as each launcher sees them.',
);

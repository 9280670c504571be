/** Describes why a circuit breaker is open, for explanations, logs and the status page. */

import type { BreakerCause, BreakerObstacle } from '@nodepool/status';

const STATES: Readonly<Record<BreakerCause, string>> = {
  unreachable: 'fails',
  throttled: 'is throttled',
  auth: 'rejects the credentials',
  certificate: 'has no valid certificate',
  quota: 'is out of quota',
  capacity: 'has no capacity',
  refused: 'is refused by the cloud',
  configuration: 'is rejected by the cloud',
  node: 'launches nodes that fail',
  slow: 'is much slower than usual',
};

/** Returns e.g. `label large, zone az2 has no capacity since 12:03:10 (no valid host), next probe at 12:03:50`. */
export function describeObstacle(subject: string, obstacle: BreakerObstacle): string {
  const { cause, reason, since, nextProbe, state } = obstacle;
  const probe = nextProbe === undefined ? ', a probe is due' : `, next probe at ${timeOf(nextProbe)}`;
  return `${subject} ${STATES[cause]} since ${timeOf(since)} (${reason})${state === 'open' ? probe : ', being probed'}`;
}

/** Returns the time of day in UTC; explanations show the date elsewhere. */
function timeOf(ms: number): string {
  return `${new Date(ms).toISOString().slice(11, 19)} UTC`;
}

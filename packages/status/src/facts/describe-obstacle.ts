/** Describes why a circuit breaker is open, for explanations, logs and the status page. */

import type { BreakerCause, BreakerObstacle } from './health.js';

const STATES: Readonly<Record<BreakerCause, string>> = {
  unreachable: 'fails',
  throttled: 'demands fewer calls',
  auth: 'rejects the credentials',
  certificate: 'has no valid certificate',
  quota: 'is out of quota',
  capacity: 'has no capacity',
  refused: 'is refused by the cloud',
  configuration: 'is rejected by the cloud',
  node: 'launches nodes that fail',
  slow: 'is much slower than usual',
  interrupted: 'loses its instances',
};

/** Returns e.g. `label big, zone a2 has no capacity since 12:03:10 UTC (no valid host), next probe at 12:03:50 UTC`. */
export function describeObstacle(subject: string, obstacle: BreakerObstacle): string {
  return `${describeFault(subject, obstacle)}, ${describeProbe(obstacle)}`;
}

/** Returns the part of the description that does not change while the fault lasts. */
export function describeFault(subject: string, obstacle: BreakerObstacle): string {
  return `${subject} ${STATES[obstacle.cause]} since ${timeOf(obstacle.since)} (${reasonOf(obstacle)})`;
}

/** Returns the reason with the wait that the cloud demands, which not every driver names in its messages. */
function reasonOf({ reason, demandedMs }: BreakerObstacle): string {
  if (demandedMs === undefined || demandedMs < 1000 || /retry-after/i.test(reason)) return reason;
  return `${reason}; the cloud demands a wait of ${Math.round(demandedMs / 1000)} s (Retry-After)`;
}

/** Returns what ends the obstacle next, and when. */
function describeProbe({ state, nextProbe, isProbing }: BreakerObstacle): string {
  if (state === 'open') return nextProbe === undefined ? 'a probe is running' : `next probe at ${timeOf(nextProbe)}`;
  if (isProbing) return 'a launch probes it';
  const ends = nextProbe === undefined ? '' : `; without a launch it is in service again at ${timeOf(nextProbe)}`;
  return `the next launch probes it${ends}`;
}

/** Returns the time of day in UTC; explanations show the date elsewhere. */
function timeOf(ms: number): string {
  return `${new Date(ms).toISOString().slice(11, 19)} UTC`;
}

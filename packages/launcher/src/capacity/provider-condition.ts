/** Derives the state of a provider, with its trouble, from its start, its circuit breakers and its listings. */

import type { BreakerCause, BreakerObstacle, ProviderCondition, ProviderTrouble } from '@nodepool/status';
import { describeFault, describeObstacle } from '@nodepool/status';
import { nameOf, type PoolOffers } from './pool-offers.js';

/** Number of failed listings of the resources in a row after which the provider is `degraded`. */
const FAILED_LISTINGS = 2;

/** A state of a provider without the time of its last change. */
export interface Condition {
  readonly state: ProviderCondition;
  /** The trouble behind the state; undefined in the states `starting` and `serving`. */
  readonly trouble: ProviderTrouble | undefined;
}

/** Failed listings of the resources in a row; `since` is the time of the first in milliseconds since the epoch. */
export interface FailedListings {
  readonly failed: number;
  readonly since: number;
  readonly reason: string;
}

/** The facts that determine the state of a provider. */
export interface ConditionFacts {
  readonly isServing: boolean;
  /** The condition of a start that fails, if it does. */
  readonly start: Condition | undefined;
  /** The obstacle of the breaker of the whole provider. */
  readonly obstacle: BreakerObstacle | undefined;
  readonly pools: readonly PoolOffers[];
  readonly listings: FailedListings | undefined;
}

const CONDITIONS: Partial<Readonly<Record<BreakerCause, ProviderCondition>>> = {
  auth: 'misconfigured',
  configuration: 'misconfigured',
  certificate: 'unreachable',
  throttled: 'unavailable',
  unreachable: 'unreachable',
};

export function conditionOf({ isServing, start, obstacle, pools, listings }: ConditionFacts): Condition {
  if (!isServing) return start ?? { state: 'starting', trouble: undefined };
  if (obstacle !== undefined) {
    const state = CONDITIONS[obstacle.cause] ?? 'degraded';
    return { state, trouble: troubleOf('its cloud', obstacle, '', undefined) };
  }
  return conditionOfOffers(pools) ?? conditionOfListings(listings) ?? { state: 'serving', trouble: undefined };
}

/** Returns the condition of a provider whose start fails. `since` is in milliseconds since the epoch. */
export function conditionOfStart(cause: BreakerCause | 'start', reason: string, since: number): Condition {
  const state = (cause === 'start' ? undefined : CONDITIONS[cause]) ?? 'unreachable';
  return { state, trouble: { cause, reason, fault: reason, since, nextProbe: undefined, labels: undefined } };
}

function conditionOfOffers(pools: readonly PoolOffers[]): Condition | undefined {
  const closed = pools.flatMap((pool) =>
    pool.obstructed().flatMap((each) => (each.obstacle === undefined ? [] : [{ ...each, ...each.obstacle }])),
  );
  const worst = closed.find(({ cause }) => CONDITIONS[cause] !== undefined) ?? closed[0];
  if (worst?.obstacle === undefined) return undefined;
  const more = closed.length === 1 ? '' : `, and ${closed.length - 1} more offers are out of service`;
  const subject = `pool ${worst.pool}, ${nameOf(worst)}`;
  const labels = [...new Set(closed.map(({ label }) => label))];
  // A provider that still launches nodes for other labels is not out of service.
  const isUsable = pools.some((pool) => !pool.isObstructed);
  const state = isUsable ? 'degraded' : (CONDITIONS[worst.cause] ?? 'degraded');
  return { state, trouble: troubleOf(subject, worst.obstacle, more, labels) };
}

function conditionOfListings(listings: FailedListings | undefined): Condition | undefined {
  if (listings === undefined || listings.failed < FAILED_LISTINGS) return undefined;
  const { since, reason: last } = listings;
  const reason = `its cloud has not listed its resources since ${new Date(since).toISOString()}: ${last}`;
  return {
    state: 'degraded',
    trouble: { cause: 'listing', reason, fault: reason, since, nextProbe: undefined, labels: [] },
  };
}

function troubleOf(
  subject: string,
  obstacle: BreakerObstacle,
  more: string,
  labels: readonly string[] | undefined,
): ProviderTrouble {
  const { cause, since } = obstacle;
  const nextProbe = obstacle.state === 'open' ? obstacle.nextProbe : undefined;
  const reason = `${describeObstacle(subject, obstacle)}${more}`;
  return { cause, reason, fault: `${describeFault(subject, obstacle)}${more}`, since, nextProbe, labels };
}

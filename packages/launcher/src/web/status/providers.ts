/** Creates the section of providers with their pools and their use of limits. */

import { describeOutage, type PoolComponentData } from '@nodepool/store';
import type { PoolActivity, ProviderActivity } from '../../diagnostics/activity.js';
import type { PoolStatus, ProviderStatus } from './client/status.js';
import { groupBy, shortened, type Observed } from './sources.js';
import { pairs } from './usage.js';

const MAX_OBSTACLES = 10;

/**
 * Returns the status of all providers that are configured here, that another launcher serves, or that have nodes,
 * sorted by name.
 */
export function providersStatus(observed: Observed): ProviderStatus[] {
  const { store, counts, status, activity } = observed;
  const { providers, brokenProviders } = status.config();
  const registered = groupBy(store.components.pools(), ({ provider_name: provider }) => provider);
  const own = new Map(activity().map((each) => [each.provider, each]));
  const names = new Set([
    ...providers.keys(),
    ...brokenProviders.keys(),
    ...own.keys(),
    ...registered.keys(),
    ...counts.providers(),
  ]);
  return [...names].sort().map((name) => providerStatus(observed, name, own.get(name), registered.get(name) ?? []));
}

function providerStatus(
  { status, counts }: Observed,
  name: string,
  activity: ProviderActivity | undefined,
  registered: readonly PoolComponentData[],
): ProviderStatus {
  const { providers, brokenProviders, driverPackages } = status.config();
  const broken = brokenProviders.get(name);
  const driver = providers.get(name)?.driver ?? broken?.driver ?? null;
  const pools = new Map((activity?.pools ?? []).map((pool) => [pool.pool, pool]));
  const poolNames = new Set([...pools.keys(), ...registered.map((pool) => pool.name)]);
  return {
    name,
    driver,
    driverVersion: driver === null ? null : (driverPackages?.get(driver)?.version ?? null),
    state: stateOf(activity, broken !== undefined, registered.length > 0),
    reason: reasonOf(broken?.reason ?? activity?.reason),
    groups: counts.groupsOf(name),
    usage: activity === undefined ? [] : pairs(activity).filter(({ limit }) => limit !== null),
    pools: [...poolNames].sort().map((pool) =>
      poolStatus(
        pool,
        pools.get(pool),
        registered.filter((each) => each.name === pool),
      ),
    ),
  };
}

function reasonOf(reason: string | undefined): string | null {
  return reason === undefined ? null : shortened(reason);
}

function stateOf(
  activity: ProviderActivity | undefined,
  broken: boolean,
  isRegistered: boolean,
): ProviderStatus['state'] {
  if (broken) return 'broken';
  if (activity !== undefined) return activity.state;
  return isRegistered ? 'elsewhere' : 'gone';
}

function poolStatus(
  name: string,
  activity: PoolActivity | undefined,
  registered: readonly PoolComponentData[],
): PoolStatus {
  const notes: string[] = [];
  if (activity?.outOfRoom === true) notes.push('The cloud said a moment ago that it has no room.');
  if (activity !== undefined && activity.deferred > 0) {
    notes.push(`${activity.deferred} requests are left alone for a while after a failure.`);
  }
  if (registered.some(({ paused }) => paused)) notes.push('Requests wait for room.');
  const outages = registered.flatMap(({ out_of_service: out = [] }) => out.map(describeOutage));
  for (const outage of [...new Set(outages)].slice(0, MAX_OBSTACLES)) notes.push(shortened(capitalized(outage)));
  const obstacles = (activity?.labels ?? []).flatMap(({ label, obstacle }) =>
    obstacle === undefined ? [] : [{ label: shortened(label), reason: shortened(obstacle) }],
  );
  return {
    name,
    launchers: [...new Set(registered.map(({ hostname }) => hostname))].sort(),
    labels: new Set([
      ...(activity?.labels ?? []).map(({ label }) => label),
      ...registered.flatMap(({ supported_labels: labels }) => labels),
    ]).size,
    usage: activity === undefined ? [] : pairs(activity),
    waiting: activity?.waiting ?? 0,
    notes,
    obstacles: obstacles.slice(0, MAX_OBSTACLES),
  };
}

function capitalized(text: string): string {
  return `${text.slice(0, 1).toUpperCase()}${text.slice(1)}`;
}

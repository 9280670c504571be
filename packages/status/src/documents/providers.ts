/** The documents of providers and their pools. */

import { type PoolComponentData, poolOutages } from '@nodepool/store';
import type { OfferHealth } from '../facts/health.js';
import type { RequestLife } from '../timeline/request-life.js';
import type { PoolActivity, ProviderActivity } from '../facts/activity.js';
import type {
  OfferStatus,
  PoolStatus,
  ProviderDocument,
  ProviderHistory,
  ProvidersDocument,
  ProviderState,
  ProviderStatus,
} from '../client/model.js';
import { groupBy, oncePerMoment, shortened, type Observed } from './sources.js';
import { pairs } from './usage.js';
import type { Parameters } from './parameters.js';
import { requestRows } from './requests.js';
import { quantiles, secondsOrNull, SHORT, textOrNull } from './texts.js';

const MAX_OBSTACLES = 50;
const MAX_REQUESTS = 50;

export function providersDocument(observed: Observed): ProvidersDocument {
  return { providers: providersStatus(observed) };
}

/** Returns undefined if nothing is known of the provider. */
export function providerDocument(observed: Observed, { id }: Parameters): ProviderDocument | undefined {
  const provider = providersStatus(observed).find(({ name }) => name === id);
  if (provider === undefined) return undefined;
  const isHere = (pool: string | undefined): boolean => pool?.startsWith(`${id}/`) === true;
  const waitsHere = (life: RequestLife): boolean => life.poolWaits().some(({ pool }) => isHere(pool));
  return {
    provider,
    requests: requestRows(
      observed,
      ({ state, life }) => state !== 'fulfilled' && life !== undefined && (isHere(life.pool) || waitsHere(life)),
      MAX_REQUESTS,
    ),
    history: historyOf(observed, id),
  };
}

/** Returns the providers that are configured here, that another launcher serves, or that have nodes. */
export const providersStatus = oncePerMoment((observed): ProviderStatus[] => {
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
});

function providerStatus(
  observed: Observed,
  name: string,
  activity: ProviderActivity | undefined,
  registered: readonly PoolComponentData[],
): ProviderStatus {
  const { status, counts } = observed;
  const { providers, brokenProviders, driverPackages } = status.config();
  const broken = brokenProviders.get(name);
  const driver = providers.get(name)?.driver ?? broken?.driver ?? null;
  const pools = new Map((activity?.pools ?? []).map((pool) => [pool.pool, pool]));
  const poolNames = new Set([...pools.keys(), ...registered.map((pool) => pool.name)]);
  const { failures, history } = status.recorder;
  const failed = failures.of(name);
  // The errors before the last recovery belong to a former trouble.
  const errorsSince = (activity?.trouble && activity.recoveredAt) ?? -Infinity;
  const last = failed.find((failure) => failure.last > errorsSince);
  return {
    name,
    driver,
    driverVersion: driver === null ? null : (driverPackages?.get(driver)?.version ?? null),
    state: stateOf(activity, broken !== undefined, registered.length > 0),
    reason: textOrNull(broken?.reason ?? activity?.reason),
    cause: broken === undefined ? (activity?.trouble?.cause ?? null) : 'driver',
    since: activity === undefined ? sinceOf(observed, name) : activity.since / 1000,
    ...(activity === undefined ? { launches: null, api: null } : recentOf(observed, name)),
    lastError: last === undefined ? null : { text: shortened(last.text), time: last.last / 1000, code: last.code },
    failures: failed.map(({ code, count, text, last: time }) => ({
      ...{ code, count, last: time / 1000 },
      text: shortened(text),
    })),
    groups: counts.groupsOf(name),
    usage: activity === undefined ? [] : pairs(activity).filter(({ limit }) => limit !== null),
    toNode: quantiles(history.toNode((bucket) => bucket.providers.get(name)?.toNode)),
    missingInstances: missingInstancesOf(activity),
    pools: [...poolNames].sort().map((pool) =>
      poolStatus(
        pool,
        pools.get(pool),
        registered.filter((each) => each.name === pool),
        (activity?.offers ?? []).filter((offer) => offer.pool === pool),
      ),
    ),
  };
}

function recentOf({ status }: Observed, name: string): Pick<ProviderStatus, 'launches' | 'api'> {
  const { windowMs, launches, failures, calls, failedCalls, throttled, latency } = status.recorder.history.recent(name);
  // Whole minutes, so that the document does not change every second.
  const windowSeconds = Math.max(1, Math.round(windowMs / 60_000)) * 60;
  return {
    launches: { windowSeconds, started: launches, failed: failures },
    api: {
      ...{ windowSeconds, calls, failed: failedCalls, throttled },
      p50: secondsOrNull(latency.quantile(0.5)),
      p95: secondsOrNull(latency.quantile(0.95)),
    },
  };
}

function missingInstancesOf(activity: ProviderActivity | undefined): ProviderStatus['missingInstances'] {
  const found = activity?.missingInstances;
  return found === undefined ? null : { ...found, since: found.since / 1000 };
}

function stateOf(activity: ProviderActivity | undefined, broken: boolean, isRegistered: boolean): ProviderState {
  if (broken) return 'misconfigured';
  if (activity !== undefined) return activity.state;
  return isRegistered ? 'elsewhere' : 'gone';
}

/** Returns the time of the last change of the provider's state, as far as it is known. */
function sinceOf({ status }: Observed, name: string): number | null {
  const event = status.recorder.providerEvents.list().findLast(({ provider }) => provider === name);
  return event === undefined ? null : event.time / 1000;
}

function poolStatus(
  name: string,
  activity: PoolActivity | undefined,
  registered: readonly PoolComponentData[],
  offers: readonly OfferHealth[],
): PoolStatus {
  const labels = [
    ...(activity?.labels ?? []).map(({ label }) => label),
    ...registered.flatMap(({ supported_labels: supported }) => supported),
  ];
  const obstacles = (activity?.labels ?? []).flatMap(({ label, obstacle, cause = 'configuration' }) =>
    obstacle === undefined ? [] : [{ label: shortened(label, SHORT), reason: shortened(obstacle), cause }],
  );
  return {
    name,
    launchers: [...new Set(registered.map(({ hostname }) => hostname))].sort(),
    labels: [...new Set(labels)].sort(),
    usage: activity === undefined ? [] : pairs(activity),
    waiting: activity?.waiting ?? 0,
    deferred: activity?.deferred ?? 0,
    paused: registered.some(({ paused }) => paused),
    outOfCapacity: activity?.outOfCapacity ?? false,
    obstacles: obstacles.slice(0, MAX_OBSTACLES),
    outOfService: outagesOf(registered),
    offers: offers.map(offerStatus),
  };
}

function offerStatus({ name, state, failures, obstacle }: OfferHealth): OfferStatus {
  // The next launch probes a half-open offer, whenever it comes.
  const nextProbe = state === 'open' ? obstacle?.nextProbe : undefined;
  return {
    name,
    state,
    reason: textOrNull(obstacle?.reason),
    since: obstacle === undefined ? null : obstacle.since / 1000,
    nextProbe: nextProbe === undefined ? null : nextProbe / 1000,
    failures,
  };
}

function historyOf({ status, activity }: Observed, name: string): ProviderHistory {
  const buckets = status.recorder.history.buckets();
  const present = activity().find(({ provider }) => provider === name);
  return buckets.flatMap(({ start, providers }, index) => {
    const values = providers.get(name);
    if (values === undefined) return [];
    // The present step gets its use at its end.
    const isPresent = index === buckets.length - 1 && present !== undefined;
    const { used, limit } = isPresent
      ? { used: present.used['instances'] ?? 0, limit: present.limit['instances'] ?? null }
      : values;
    const { launches, failures, calls, failedCalls, throttled, latency } = values;
    return [
      {
        ...{ time: start / 1000, used, limit, launches, failures, calls, failedCalls, throttled },
        latency: secondsOrNull(latency.mean),
      },
    ];
  });
}

/** Returns the machines that launchers cannot use, first those that none can use. */
function outagesOf(registered: readonly PoolComponentData[]): PoolStatus['outOfService'] {
  return [...poolOutages(registered)]
    .sort((a, b) => Math.sign(a.onlyFor.length) - Math.sign(b.onlyFor.length))
    .slice(0, MAX_OBSTACLES)
    .map((outage) => ({ ...outage, reason: shortened(outage.reason) }));
}

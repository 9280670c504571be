/** Problems of labels: no pool has them, or their requests fail. */

import { MIN_READY_REQUESTOR } from '@nodepool/core';
import { POOL_RETURN_MS, type PoolComponentData } from '@nodepool/store';
import { lackOfPool } from '../../facts/lack-of-pool.js';
import type { RefusalCause } from '../../facts/timeline-recorder.js';
import { groupBy, shortened, type Observed } from '../sources.js';
import type { LabelStatus, Problem } from '../../client/model.js';
import {
  counted,
  effectOf,
  MAX_NAME,
  withRest,
  type FailedRequests,
  type FormerPool,
  type ProblemSources,
} from './sources.js';

const MAX_LABELS = 5;
const ADD_LABEL = 'Add the label to a pool, or correct the jobs that ask for it.';
/**
 * Time in seconds for which no pool may have a label before that is a problem: a request that all pools decline one
 * after the other fails within this time.
 */
const LASTS_SECONDS = 10;
/** Time in ms for which failed requests are a problem. */
const FAILED_MS = 3_600_000;
/** Time in seconds for which failed requests are shown after a later request for the label was fulfilled. */
const OVER_SECONDS = 300;

export function labelProblems(sources: ProblemSources): Problem[] {
  const { labels, failed, images, now } = sources;
  const unready = unreadyLabels(sources);
  const running = new Set(sources.launchers.map(({ hostname }) => hostname));
  const withoutPool = labels.filter(
    ({ waiting, reason }) => waiting > 0 && reason?.phase === 'none' && now - reason.since >= LASTS_SECONDS,
  );
  const named = new Set([
    ...withoutPool.map(({ name }) => name),
    // The problems of labels that are not ready count their failed requests, too.
    ...unready.flatMap((group) => group.labels),
    // The problem of a missing image counts the failed requests for its labels.
    ...images.filter(({ uploads }) => !uploads.some(({ state }) => state === 'ready')).flatMap((image) => image.labels),
  ]);
  return [
    ...withoutPool
      .filter(({ name }) => !unready.some((group) => group.labels.includes(name)))
      .map((label) => poolMissing(label, running)),
    ...unready.map((group) => notReady(group, sources)),
    ...failed
      .filter(({ labels: wanted }) => !wanted.some((name) => named.has(name)))
      .filter(({ served }) => served === undefined || now - served < OVER_SECONDS)
      .map(failing),
  ];
}

/** Labels of one pool that cannot be served for the same reason. */
interface UnreadyLabels {
  readonly pool: string;
  readonly reason: string;
  readonly cause: 'configuration' | 'limit';
  readonly labels: readonly string[];
}

/** Returns the labels that pools cannot serve; problems of providers and of disk images name the others. */
function unreadyLabels({ providers }: ProblemSources): UnreadyLabels[] {
  return providers
    .filter(({ state }) => state === 'serving' || state === 'degraded')
    .flatMap(({ name: provider, pools }) =>
      pools.flatMap(({ name, obstacles, usage }) => {
        // Operators drain a pool with `max-servers: 0`.
        if (usage.some(({ resource, limit }) => resource === 'instances' && limit === 0)) return [];
        const found = obstacles.flatMap(({ label, reason, cause }) =>
          cause === 'configuration' || cause === 'limit'
            ? [{ label, reason: reason.replace(`label ${label} `, ''), cause }]
            : [],
        );
        return [...groupBy(found, ({ reason }) => reason)].flatMap(([reason, [first, ...others]]) =>
          first === undefined
            ? []
            : [
                {
                  ...{ pool: `${provider}/${name}`, reason, cause: first.cause },
                  labels: [first, ...others].map(({ label }) => label),
                },
              ],
        );
      }),
    );
}

function notReady({ pool, reason, cause, labels: unready }: UnreadyLabels, sources: ProblemSources): Problem {
  const others = sources.labels.filter(
    ({ name, pools }) => unready.includes(name) && pools.some((each) => each !== pool),
  );
  const waiting = sources.labels
    .filter(({ name }) => unready.includes(name))
    .reduce((sum, each) => sum + each.waiting, 0);
  const failed = failedFor(sources.failed, unready);
  const failures = failed.reduce((sum, { count }) => sum + count, 0);
  const effects = [effectOf(waiting), failures === 0 ? null : `${counted(failures, 'request')} failed`];
  const isAlone = others.length < unready.length;
  const [first = ''] = unready;
  return {
    kind: 'label-not-ready',
    severity: isAlone && waiting + failures > 0 ? 'critical' : 'warning',
    key: `not ready ${pool} ${first}`,
    title:
      unready.length === 1
        ? `Pool ${pool} cannot serve the label ${shortened(first, MAX_NAME)}`
        : `Pool ${pool} cannot serve ${unready.length} labels`,
    subject: { kind: 'label', id: first },
    since: failed.length === 0 ? null : Math.min(...failed.map((requests) => requests.first)),
    cause,
    details: [
      shortened(reason),
      ...(unready.length === 1 ? [] : withRest(unready.slice(0, MAX_LABELS), unready.length)),
    ],
    effect:
      effects.filter((effect) => effect !== null).join(', ') ||
      (isAlone ? `${unready.length === 1 ? 'its' : 'their'} requests will fail` : 'other pools serve the requests'),
    remedy:
      cause === 'limit'
        ? 'Raise the limit, or reduce what the label needs.'
        : 'Correct the name in the configuration, or create the object in the cloud. The launcher looks again by itself.',
  };
}

function poolMissing({ name, waiting, oldest, reason, pools }: LabelStatus, running: ReadonlySet<string>): Problem {
  const launcher = reason?.launcher ?? null;
  return {
    kind: 'label-without-pool',
    severity: 'critical',
    key: `label ${name}`,
    title: `No pool ${pools.length === 0 ? 'has' : 'can serve'} the label ${shortened(name, MAX_NAME)}`,
    subject: { kind: 'label', id: name },
    since: reason?.since ?? oldest,
    cause: 'configuration',
    details: reason === null || (pools.length === 0 && launcher === null) ? [] : [reason.text],
    effect: effectOf(waiting),
    remedy:
      launcher !== null && !running.has(launcher)
        ? `Start the launcher on ${launcher}, or add the label to another pool.`
        : pools.length === 0
          ? ADD_LABEL
          : '`nodepool explain request ID` shows why its pools declined. Repair what they name.',
  };
}

function failing({ labels, ...requests }: FailedRequests): Problem {
  const { count, first, reason, cause: refused, served, hasPool, lastPool } = requests;
  // A pool that has the labels now ends the cause of requests that failed because no pool had them.
  const isOver = hasPool && (served !== undefined || refused === 'label');
  const { cause, remedy } = REFUSALS[refused ?? 'order'];
  const named = shortened(labels.join(', '), MAX_NAME);
  const had =
    lastPool === undefined ? [] : [`Pool ${lastPool.pool} of launcher ${lastPool.launcher} had the labels before.`];
  return {
    kind: 'failed-requests',
    severity: isOver ? 'info' : 'warning',
    key: `failed ${labels.join(' ')}`,
    title: `${counted(count, 'request')} for the ${labels.length === 1 ? 'label' : 'labels'} ${named} failed${isOver ? '; it is over' : ''}`,
    subject: { kind: 'label', id: labels[0] ?? '' },
    since: first,
    cause,
    details: [...(reason === undefined ? [] : [shortened(reason)]), ...had],
    effect: isOver
      ? `none: ${served === undefined ? 'a pool has the labels now' : 'later requests for the same were fulfilled'}`
      : null,
    remedy: isOver ? null : lastPool === undefined ? remedy : remedyFor(lastPool),
  };
}

function remedyFor({ launcher, isRunning }: FormerPool): string {
  return isRunning ? ADD_LABEL : `Start the launcher on ${launcher}, or add the label to another pool.`;
}

/** Causes and remedies of failed requests, by the kind of the refusal that was recorded with them. */
const REFUSALS: Readonly<Record<RefusalCause, Pick<Problem, 'cause'> & { readonly remedy: string }>> = {
  label: { cause: 'configuration', remedy: ADD_LABEL },
  limit: {
    cause: 'limit',
    remedy: 'Change what the reason names: raise the limit, or ask for fewer or smaller nodes together.',
  },
  configuration: {
    cause: 'configuration',
    remedy: 'Correct what the reason names in the configuration, or create it in the cloud.',
  },
  image: { cause: 'image', remedy: 'See the problems and the page of the disk image.' },
  expired: {
    cause: 'cloud',
    remedy: 'Repair what the reason names, or let requests wait for longer (`max-wait`).',
  },
  launch: {
    cause: 'cloud',
    remedy: 'The page of a failed request lists its launch attempts. Repair what their errors name.',
  },
  order: {
    cause: 'configuration',
    remedy: '`nodepool explain request ID` shows the reason of each pool. Repair what they name.',
  },
};

/** Returns the failed requests of the last hour, except those for min-ready, which the launcher retries. */
export function failedRequests({ status, store, clock }: Observed): readonly FailedRequests[] {
  const failed = new Map<string, FailedRequests>();
  const now = clock.now();
  for (const life of status.recorder.timelines.failedRequests.newestFirst()) {
    const { facts, end = 0, ended } = life;
    if (end < now - FAILED_MS) break;
    if (facts.requestor === MIN_READY_REQUESTOR) continue;
    const labels = [...new Set(facts.labels)].sort();
    const key = JSON.stringify(labels);
    const newest = failed.get(key) ?? {
      ...{ labels, count: 0, served: undefined, cause: ended?.cause, last: end / 1000 },
      // The pools may have changed since then.
      reason: ended?.cause === 'label' ? lackOfPool(labels, [...store.components.pools()]) : ended?.reason,
      ...poolsFor(store, labels, now),
    };
    failed.set(key, { ...newest, first: end / 1000, count: newest.count + 1 });
  }
  return failed.size === 0 ? [] : withServed([...failed.values()], status);
}

/** Returns the requests that wanted one of the labels. */
export function failedFor(failed: readonly FailedRequests[], labels: readonly string[]): readonly FailedRequests[] {
  return failed.filter((requests) => requests.labels.some((label) => labels.includes(label)));
}

function poolsFor(
  { components }: Observed['store'],
  labels: readonly string[],
  now: number,
): Pick<FailedRequests, 'hasPool' | 'lastPool'> {
  const hasLabels = ({ supported_labels: supported }: PoolComponentData): boolean =>
    labels.every((label) => supported.includes(label));
  const mayReturn = [...components.departedPools()].some(
    ({ pool, left }) => now - left < POOL_RETURN_MS && hasLabels(pool),
  );
  if (mayReturn || [...components.pools()].some(hasLabels)) return { hasPool: true, lastPool: undefined };
  const last = components.lastDeparted(hasLabels);
  if (last === undefined) return { hasPool: false, lastPool: undefined };
  const { provider_name: provider, name, hostname: launcher } = last.pool;
  return {
    hasPool: false,
    lastPool: { pool: `${provider}/${name}`, launcher, isRunning: components.hasLauncher(launcher) },
  };
}

/** Adds the times at which the labels were served for the first time after their last failure. */
function withServed(failed: readonly FailedRequests[], { recorder }: Observed['status']): readonly FailedRequests[] {
  const oldest = Math.min(...failed.map(({ last }) => last));
  const served = new Map<FailedRequests, number>();
  for (const { facts, end = 0, ended } of recorder.timelines.endedRequests.newestFirst()) {
    if (end / 1000 < oldest) break;
    if (ended?.result !== 'fulfilled') continue;
    for (const requests of failed) {
      const isSame = requests.labels.every((label) => facts.labels.includes(label));
      if (isSame && end / 1000 > requests.last) served.set(requests, end / 1000);
    }
  }
  return failed.map((requests) => ({ ...requests, served: served.get(requests) }));
}

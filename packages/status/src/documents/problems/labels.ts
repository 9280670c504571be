/** Problems of labels: no pool has them, or their requests fail. */

import { MIN_READY_REQUESTOR } from '@nodepool/core';
import type { PoolComponentData } from '@nodepool/store';
import type { RefusalCause } from '../../facts/timeline-recorder.js';
import { groupBy, shortened, type Observed } from '../sources.js';
import type { LabelStatus, Problem } from '../../client/model.js';
import { counted, effectOf, MAX_NAME, withRest, type FailedRequests, type ProblemSources } from './sources.js';

const MAX_LABELS = 5;
/** Time in ms for which failed requests are a problem. */
const FAILED_MS = 3_600_000;
/** Time in seconds for which failed requests are shown after a later request for the label was fulfilled. */
const OVER_SECONDS = 300;

export function labelProblems(sources: ProblemSources): Problem[] {
  const { labels, failed, images, now } = sources;
  const unready = unreadyLabels(sources);
  const withoutPool = labels.filter(({ waiting, reason }) => waiting > 0 && reason?.phase === 'none');
  const named = new Set([
    ...withoutPool.map(({ name }) => name),
    // The problems of labels that are not ready count their failed requests, too.
    ...unready.flatMap((group) => group.labels),
    // The problem of a missing image counts the failed requests for its labels.
    ...images.filter(({ uploads }) => !uploads.some(({ state }) => state === 'ready')).flatMap((image) => image.labels),
  ]);
  return [
    ...withoutPool.filter(({ name }) => !unready.some((group) => group.labels.includes(name))).map(poolMissing),
    ...unready.map((group) => notReady(group, sources)),
    ...[...failed]
      .filter(([name, { served }]) => !named.has(name) && (served === undefined || now - served < OVER_SECONDS))
      .map(([name, requests]) => failing(name, requests)),
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
      pools.flatMap(({ name, obstacles }) => {
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
  const failed = unready.flatMap((label) => sources.failed.get(label) ?? []);
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

function poolMissing({ name, waiting, oldest, reason, pools }: LabelStatus): Problem {
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
      launcher !== null
        ? `Start the launcher on ${launcher}, or add the label to another pool.`
        : pools.length === 0
          ? 'Add the label to a pool, or correct the jobs that ask for it.'
          : '`nodepool explain request ID` shows why its pools declined. Repair what they name.',
  };
}

function failing(name: string, requests: FailedRequests): Problem {
  const { count, first, reason, cause: refused, served, hasPool } = requests;
  // A pool that has the labels now ends the cause of requests that failed because no pool had them.
  const isOver = served !== undefined || (refused === 'label' && hasPool);
  const { cause, remedy } = REFUSALS[refused ?? 'order'];
  return {
    kind: 'failed-requests',
    severity: isOver ? 'info' : 'warning',
    key: `failed ${name}`,
    title: `${counted(count, 'request')} for the label ${shortened(name, MAX_NAME)} failed${isOver ? '; it is over' : ''}`,
    subject: { kind: 'label', id: name },
    since: first,
    cause,
    details: reason === undefined ? [] : [shortened(reason)],
    effect: isOver
      ? `none: ${served === undefined ? 'a pool has the labels now' : 'later requests for the label were fulfilled'}`
      : null,
    remedy: isOver ? null : remedy,
  };
}

/** Causes and remedies of failed requests, by the kind of the refusal that was recorded with them. */
const REFUSALS: Readonly<Record<RefusalCause, Pick<Problem, 'cause'> & { readonly remedy: string }>> = {
  label: { cause: 'configuration', remedy: 'Add the label to a pool, or correct the jobs that ask for it.' },
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

/** Returns the failed requests of the last hour by label, except those for min-ready, which the launcher retries. */
export function failedByLabel({ status, store, clock }: Observed): ReadonlyMap<string, FailedRequests> {
  const pools = [...store.components.pools()];
  const failed = new Map<string, FailedRequests>();
  for (const life of status.recorder.timelines.failedRequests.newestFirst()) {
    const { facts, end = 0, ended } = life;
    if (end < clock.now() - FAILED_MS) break;
    if (facts.requestor === MIN_READY_REQUESTOR) continue;
    for (const label of new Set(facts.labels)) {
      const newest = failed.get(label) ?? {
        ...{ reason: ended?.reason, cause: ended?.cause, last: end / 1000, served: undefined, count: 0 },
        hasPool: ended?.cause === 'label' && pools.some((pool) => hasLabels(pool, facts.labels)),
      };
      failed.set(label, { ...newest, first: end / 1000, count: newest.count + 1 });
    }
  }
  return failed.size === 0 ? failed : withServed(failed, status);
}

function hasLabels({ supported_labels: supported }: PoolComponentData, labels: readonly string[]): boolean {
  return labels.every((label) => supported.includes(label));
}

/** Adds the times at which the labels were served for the first time after their last failure. */
function withServed(
  failed: ReadonlyMap<string, FailedRequests>,
  { recorder }: Observed['status'],
): ReadonlyMap<string, FailedRequests> {
  const oldest = Math.min(...[...failed.values()].map(({ last }) => last));
  const served = new Map<string, number>();
  for (const { facts, end = 0, ended } of recorder.timelines.endedRequests.newestFirst()) {
    if (end / 1000 < oldest) break;
    if (ended?.result !== 'fulfilled') continue;
    for (const label of facts.labels)
      if (end / 1000 > (failed.get(label)?.last ?? Infinity)) served.set(label, end / 1000);
  }
  return new Map([...failed].map(([label, requests]) => [label, { ...requests, served: served.get(label) }]));
}

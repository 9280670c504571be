/** The documents of labels. */

import { explainLabel } from '../explain/explain-label.js';
import type { WaitReason } from '../explain/wait-reason.js';
import type { LabelDocument, LabelHistory, LabelsDocument, LabelStatus } from '../client/model.js';
import { groupBy, oncePerMoment, shortened, type Observed } from './sources.js';
import type { Parameters } from './parameters.js';
import { reasonsOf, requestRows } from './requests.js';
import { decisions, quantiles, secondsOrNull, waitStatus } from './texts.js';

const MAX_REQUESTS = 50;

export function labelsDocument(observed: Observed): LabelsDocument {
  return { labels: labelsStatus(observed) };
}

/** Returns undefined if nothing is known of the label. */
export function labelDocument(observed: Observed, { id }: Parameters): LabelDocument | undefined {
  const label = labelsStatus(observed).find(({ name }) => name === id);
  const explanation = explainLabel(observed, id);
  if (label === undefined && explanation === undefined) return undefined;
  return {
    label: label ?? null,
    poolAnswers: (explanation?.pools ?? []).map(({ pool, launcher, says }) => ({
      pool,
      launcher,
      says: shortened(says),
    })),
    requests: requestRows(observed, ({ labels }) => labels.includes(id), MAX_REQUESTS),
    decisions: decisions(observed.decisions.of('label', id)),
    history: historyOf(observed, id),
  };
}

interface Waiting {
  count: number;
  /** Unix seconds. */
  oldest: number;
  readonly reason: WaitReason | undefined;
}

/** Returns the labels that are configured here, that a registered pool serves, or that a request waits for. */
export const labelsStatus = oncePerMoment((observed): LabelStatus[] => {
  const { store, status, counts } = observed;
  const { labels: configured } = status.config();
  const served = groupBy(
    [...store.components.pools()].flatMap((pool) => pool.supported_labels.map((label) => ({ label, pool }))),
    ({ label }) => label,
  );
  const waiting = waitingByLabel(observed);
  const { history } = status.recorder;
  const names = new Set([...configured.keys(), ...served.keys(), ...waiting.keys(), ...counts.labels()]);
  return [...names].sort().map((name) => {
    const groups = counts.groupsOfLabel(name);
    const wait = waiting.get(name);
    const pools = (served.get(name) ?? []).map(({ pool }) => `${pool.provider_name}/${pool.name}`);
    return {
      name,
      ready: groups.ready,
      building: groups.building,
      inUse: groups['in use'],
      total: Object.values(groups).reduce((sum, count) => sum + count, 0),
      waiting: wait?.count ?? 0,
      oldest: wait?.oldest ?? null,
      readyTarget: observed.readyTarget(name)?.count ?? 0,
      readyReason: observed.readyTarget(name)?.reason ?? null,
      maxAge: limitOf(configured.get(name)?.maxAgeMs),
      minRetention: limitOf(configured.get(name)?.minRetentionMs),
      toNode: quantiles(history.toNode(({ labels }) => labels.get(name)?.toNode)),
      pools: [...new Set(pools)].sort(),
      reason: wait?.reason === undefined ? null : waitStatus(wait.reason),
    };
  });
});

/** Returns the limit of an age in seconds; null if there is none. */
function limitOf(ms: number | undefined): number | null {
  return ms === undefined || ms === 0 || ms === Infinity ? null : ms / 1000;
}

/** Returns the waiting requests by label, with the reason of the request that has waited longest. */
function waitingByLabel(observed: Observed): Map<string, Waiting> {
  const reasons = reasonsOf(observed);
  const byLabel = new Map<string, Waiting>();
  for (const { request } of observed.store.requests.inState('requested')) {
    const since = request.created_time ?? request.state_time;
    for (const label of new Set(request.node_types)) {
      const before = byLabel.get(label);
      if (before !== undefined && before.oldest <= since) before.count += 1;
      else {
        const reason = reasons.of(request);
        byLabel.set(label, { count: (before?.count ?? 0) + 1, oldest: since, reason });
      }
    }
  }
  return byLabel;
}

function historyOf({ status }: Observed, name: string): LabelHistory {
  return status.recorder.history.buckets().flatMap(({ start, labels }) => {
    const values = labels.get(name);
    if (values === undefined) return [];
    const { waiting, fulfilled, failed, toNode } = values;
    return [
      {
        ...{ time: start / 1000, waiting, fulfilled, failed },
        p50: secondsOrNull(toNode.quantile(0.5)),
        p95: secondsOrNull(toNode.quantile(0.95)),
      },
    ];
  });
}

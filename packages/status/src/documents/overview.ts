/** The document of the overview. */

import type { HistoryBucket } from '../history/history-bucket.js';
import { HISTORY_STEP_MS } from '../history/history.js';
import type { FailureStatus, HistoryStatus, LauncherStatus, OverviewDocument } from '../client/model.js';
import { groupsOfStates, NODE_GROUPS } from './node-counts.js';
import { shortened, type Observed } from './sources.js';
import { costStatus } from './costs.js';
import { labelsStatus } from './labels.js';
import { problemsOf } from './problems/index.js';
import { providersStatus } from './providers.js';
import { reasonsOf, requestCounts } from './requests.js';
import { quantiles, secondsOrNull, SHORT, textOrNull } from './texts.js';

export function overviewDocument(observed: Observed): OverviewDocument {
  const { store, counts, status } = observed;
  return {
    problems: problemsOf(observed),
    nodes: { total: store.nodes.size, groups: counts.groups() },
    requests: requestCounts(observed),
    reasons: reasonsOf(observed).groups(),
    toNode: quantiles(status.recorder.history.toNode(({ toNode }) => toNode)),
    history: historyStatus(observed),
    providers: providersStatus(observed),
    labels: labelsStatus(observed),
    failures: failuresStatus(observed),
    costs: costStatus(observed),
  };
}

/** Returns the member that all documents have. */
export function launcherStatus(observed: Observed): LauncherStatus {
  const { store, status } = observed;
  return {
    hostname: status.hostname,
    version: status.version,
    zookeeper: store.zooKeeper.state,
    nodes: store.nodes.size,
    waiting: requestCounts(observed).waiting,
    problems: problemsOf(observed).length,
    scaleSets: observed.scaleSetCount,
  };
}

function historyStatus({ status }: Observed): HistoryStatus {
  const { history, persisted, providerEvents } = status.recorder;
  const buckets = history.buckets();
  return {
    step: HISTORY_STEP_MS / 1000,
    samples: buckets.map(sampleOf),
    events: providerEvents.list().map(({ time, provider, state, reason }) => ({
      time: time / 1000,
      text: shortened(`Provider ${provider} is ${state}${reason === null ? '' : `: ${reason}`}`),
      subject: { kind: 'provider', id: provider },
    })),
    persisted,
    since: (buckets[0]?.start ?? 0) / 1000,
  };
}

function sampleOf(bucket: HistoryBucket): HistoryStatus['samples'][number] {
  const { start, waiting, launches, failures, fulfilled, failed, cancelled, toNode } = bucket;
  const groups = groupsOfStates(bucket.nodes);
  return {
    ...{ time: start / 1000, waiting, launches, failures, fulfilled, failed, cancelled },
    nodes: NODE_GROUPS.map((group) => groups[group]),
    p50: secondsOrNull(toNode.quantile(0.5)),
    p95: secondsOrNull(toNode.quantile(0.95)),
  };
}

function failuresStatus({ status }: Observed): FailureStatus[] {
  return status.failures.list().map(({ level, message, reason, first, last, times, fields }) => ({
    ...{ level, times, message: shortened(message), reason: textOrNull(reason) },
    first: first / 1000,
    last: last / 1000,
    provider: named(fields.provider),
    pool: named(fields.pool),
    label: named(fields.label),
    node: named(fields.node_id),
    request: named(fields.node_request_id),
  }));
}

function named(field: unknown): string | null {
  return typeof field === 'string' ? shortened(field, SHORT) : null;
}

/** Reports what the status page shows as metrics, so that alerts name the same problems with the same reasons. */

import type { Metrics, RequestState } from '@nodepool/core';
import { ReportedGauge } from '@nodepool/daemon';
import { OLDEST_REQUEST, PROBLEMS, PROVIDER_STATE, UNFULFILLED_REQUESTS } from '../metrics/status-gauges.js';
import type { Problem, ProviderState } from '../client/model.js';
import { labelsStatus } from '../documents/labels.js';
import { problemsOf } from '../documents/problems/index.js';
import { providersStatus } from '../documents/providers.js';
import type { Observed } from '../documents/sources.js';

const UNFULFILLED = ['requested', 'pending'] as const satisfies readonly RequestState[];
const STATES: Readonly<Record<ProviderState, true>> = {
  starting: true,
  serving: true,
  degraded: true,
  unavailable: true,
  unreachable: true,
  misconfigured: true,
  elsewhere: true,
  gone: true,
};

/** Starts to report. Returns a function that ends the reports. */
export function reportStatus(metrics: Pick<Metrics, 'set' | 'onCollect'>, observe: () => Observed): () => void {
  const problems = new ReportedGauge(metrics, PROBLEMS);
  const providers = new ReportedGauge(metrics, PROVIDER_STATE);
  const requests = new ReportedGauge(metrics, UNFULFILLED_REQUESTS);
  const oldest = new ReportedGauge(metrics, OLDEST_REQUEST);
  return metrics.onCollect(() => {
    const observed = observe();
    for (const [{ kind: problem, severity }, count] of countByKind(problemsOf(observed))) {
      problems.set({ problem, severity }, count);
    }
    problems.end();
    for (const { name: provider, state } of providersStatus(observed)) {
      for (const each of Object.keys(STATES)) providers.set({ provider, state: each }, each === state ? 1 : 0);
    }
    providers.end();
    for (const [label, { requested, pending, since }] of unfulfilled(observed)) {
      for (const [state, count] of Object.entries({ requested, pending })) requests.set({ label, state }, count);
      oldest.set({ label }, since === Infinity ? 0 : Math.max(0, observed.clock.now() / 1000 - since));
    }
    requests.end();
    oldest.end();
  });
}

function countByKind(problems: readonly Problem[]): Iterable<readonly [Problem, number]> {
  const counts = new Map<string, readonly [Problem, number]>();
  for (const problem of problems) {
    const key = `${problem.kind} ${problem.severity}`;
    counts.set(key, [problem, (counts.get(key)?.[1] ?? 0) + 1]);
  }
  return counts.values();
}

interface Unfulfilled {
  requested: number;
  pending: number;
  /** Unix seconds of the creation of the oldest request. */
  since: number;
}

/** Returns the requests by label. Labels that no pool has come from clients, so they share one entry. */
function unfulfilled(observed: Observed): ReadonlyMap<string, Unfulfilled> {
  const { labels: configured } = observed.status.config();
  const known = labelsStatus(observed).filter(({ name, pools }) => pools.length > 0 || configured.has(name));
  const counts = new Map<string, Unfulfilled>();
  for (const name of ['', ...known.map((label) => label.name)]) {
    counts.set(name, { requested: 0, pending: 0, since: Infinity });
  }
  for (const state of UNFULFILLED) {
    for (const { request } of observed.store.requests.inState(state)) {
      const names = new Set(request.node_types.map((label) => (counts.has(label) ? label : '')));
      for (const name of names) {
        const count = counts.get(name);
        if (count === undefined) continue;
        count[state] += 1;
        count.since = Math.min(count.since, request.created_time ?? request.state_time);
      }
    }
  }
  return counts;
}

/** Reports the phases of requests and nodes as histograms. */

import { duration, type Metrics } from '@nodepool/core';
import type { RequestLife } from '../timeline/request-life.js';
import type { Timelines } from '../timeline/timelines.js';

/** Few buckets, because every label of every provider has a series per phase and bucket. */
const PHASE_SECONDS = [0.1, 1, 5, 15, 30, 60, 120, 300, 900, 3600];

/** `label` is the first label of the request; `provider` is that of the pool that served it. */
export const REQUEST_PHASE = duration(
  'nodepool_request_phase_duration_seconds',
  ['phase', 'provider', 'label'],
  'Phases of fulfilled requests, which add up to the whole wait (each request by one launcher).',
  PHASE_SECONDS,
);

export const REQUEST_WAIT = duration(
  'nodepool_request_duration_seconds',
  ['result', 'provider', 'label'],
  'Time from creation to end; result: fulfilled, failed, cancelled (each request by one launcher).',
  PHASE_SECONDS,
);

export const NODE_PHASE = duration(
  'nodepool_node_phase_duration_seconds',
  ['phase', 'provider', 'label'],
  'Phases of nodes from launch to deletion (each node by one launcher).',
  PHASE_SECONDS,
);

/** Starts reporting until the returned function is called. */
export function reportPhases({ events }: Pick<Timelines, 'events'>, metrics: Metrics): () => void {
  const unsubscribe = [
    events.requestEnded.on((life) => {
      if (life.isReported) reportRequest(life, metrics);
    }),
    events.nodePhase.on(({ life, phase, ms }) => {
      const { provider, labels } = life.facts;
      metrics.observe(NODE_PHASE, { phase, provider: provider ?? '', label: labels[0] ?? '' }, ms);
    }),
  ];
  return () => {
    for (const end of unsubscribe) end();
  };
}

function reportRequest(life: RequestLife, metrics: Metrics): void {
  const { end, ended, created } = life;
  if (end === undefined || ended === undefined) return;
  const provider = providerOf(life);
  const label = life.facts.labels[0] ?? '';
  metrics.observe(REQUEST_WAIT, { result: ended.result, provider, label }, end - created);
  if (ended.result !== 'fulfilled') return;
  life.durations(end).forEach((ms, phase) => metrics.observe(REQUEST_PHASE, { phase, provider, label }, ms));
}

/** Returns the provider whose pool fulfilled the request; empty if another launcher fulfilled it. */
export function providerOf({ pool, settled }: Pick<RequestLife, 'pool' | 'settled'>): string {
  if (pool === undefined || settled?.result !== 'fulfilled') return '';
  return pool.slice(0, pool.indexOf('/'));
}

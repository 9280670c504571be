/** Logs all work in progress of a launcher and what it waits for, as `nodepool.stack_dump`. */

import { dumpProcess, type ProcessDumpSources } from '@nodepool/daemon';
import type { Logger, WorkInProgress } from '@nodepool/core';
import type { Store } from '@nodepool/store';
import type { PoolActivity, ProviderActivity } from '@nodepool/status';
import { nodeFields } from './record-fields.js';

export interface StackDumpSources extends ProcessDumpSources {
  readonly store: Store;
  readonly activity: () => readonly ProviderActivity[];
}

/** Logs one line for the process and one for each operation in progress. */
export function dumpStacks(sources: StackDumpSources, log: Logger): void {
  dumpProcess(sources, log, (to) => dumpProviders(sources, to));
}

function dumpProviders({ activity, store }: StackDumpSources, to: Logger): void {
  for (const { provider, state, reason, deletions, pools, work } of activity()) {
    to.info('Provider', { provider, state, reason, deletions: deletions.length });
    for (const pool of pools) dumpPool(store, provider, pool, to);
    for (const each of work) dumpWork(store, provider, each, to);
    for (const node_id of deletions) {
      const entry = store.nodes.get(node_id);
      to.info('Node being deleted', {
        provider,
        ...(entry === undefined ? { node_id } : nodeFields(store, entry)),
        state: entry?.node.state,
        locked: entry?.locked,
      });
    }
  }
}

function dumpPool(store: Store, provider: string, activity: PoolActivity, log: Logger): void {
  const { pool, waiting, next, accepting, deferred, outOfCapacity, limit, used, labels, requests } = activity;
  const obstacles = labels.filter(({ obstacle }) => obstacle !== undefined);
  log.info('Pool', {
    provider,
    pool,
    waiting,
    next,
    accepting,
    deferred,
    out_of_capacity: outOfCapacity,
    limit,
    used,
    obstacles,
  });
  for (const { request, ending, locks, nodes } of requests) {
    log.info('Request in progress', {
      node_request_id: request,
      event_id: store.requests.get(request)?.request.event_id,
      provider,
      pool,
      ending,
      locks,
      nodes,
    });
  }
}

function dumpWork(store: Store, provider: string, work: WorkInProgress, log: Logger): void {
  const { kind, nodeId, state, ageMs, waitingFor, waitingMs, externalId } = work;
  const entry = store.nodes.get(nodeId);
  log.info(kind === 'create' ? 'Launch in progress' : 'Deletion in progress', {
    ...(entry === undefined ? { node_id: nodeId } : nodeFields(store, entry)),
    provider,
    state,
    age: ageMs / 1000,
    waiting_for: waitingFor,
    waiting: waitingMs / 1000,
    external_id: externalId,
  });
}

/** Everything that runs in a launcher and what it waits for, written to the log as `nodepool.stack_dump`. */

import type { Clock, Logger, Store, TaskSupervisor, WorkInProgress } from '@nodepool/core';
import type { PoolActivity, ProviderActivity } from './activity.js';
import type { EventLoopDelay } from './process-metrics.js';
import { nodeFields } from './record-fields.js';

export interface StackDumpSources {
  readonly store: Store;
  readonly clock: Clock;
  readonly tasks: TaskSupervisor;
  readonly activity: () => readonly ProviderActivity[];
  readonly eventLoopDelay: () => EventLoopDelay;
}

/** One line for the process, and one for everything that runs. */
export function dumpStacks(sources: StackDumpSources, log: Logger): void {
  const to = log.named('nodepool.stack_dump');
  const { tasks, activity, store } = sources;
  to.info('Stack dump begins', processFields(sources));
  for (const { provider, serving, deletions, pools, work } of activity()) {
    to.info('Provider', { provider, serving, deletions: deletions.length });
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
  const running = tasks.list();
  for (const { name, ageMs, waitingFor, startedFrom } of running) {
    to.info('Background task', {
      task: name,
      age: ageMs / 1000,
      waiting_for: waitingFor,
      started_from: startedFrom.split('\n').map((frame) => frame.trim()),
    });
  }
  to.info('Stack dump ends', { tasks: running.length });
}

function processFields({ store, eventLoopDelay }: StackDumpSources): Record<string, unknown> {
  const { state, session, counters } = store.zooKeeper;
  const { rss, heapUsed, heapTotal, external } = process.memoryUsage();
  return {
    pid: process.pid,
    uptime: Math.round(process.uptime()),
    zookeeper: state,
    session: session === undefined ? undefined : `0x${session.id.toString(16)}`,
    session_confirmed: session?.confirmed,
    session_timeout: session === undefined ? undefined : session.timeoutMs / 1000,
    records_complete: store.complete,
    calls_pending: counters.pendingCalls,
    calls_in_flight: counters.inFlight,
    nodes: store.nodes.size,
    requests: store.requests.size,
    event_loop_delay: eventLoopDelay(),
    memory: { rss, heap_used: heapUsed, heap_total: heapTotal, external },
  };
}

function dumpPool(store: Store, provider: string, activity: PoolActivity, log: Logger): void {
  const { pool, waiting, next, accepting, deferred, outOfRoom, limit, used, labels, requests } = activity;
  const obstacles = labels.filter(({ obstacle }) => obstacle !== undefined);
  log.info('Pool', {
    provider,
    pool,
    waiting,
    next,
    accepting,
    deferred,
    out_of_room: outOfRoom,
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

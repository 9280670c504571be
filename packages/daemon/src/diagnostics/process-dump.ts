/** The common part of every stack dump: connection, memory, and running tasks. */

import type { Logger, TaskSupervisor } from '@nodepool/core';
import type { ZooKeeper } from '@nodepool/zookeeper';
import type { EventLoopDelay } from './event-loop.js';

export interface ProcessDumpSources {
  /** The store, whose cached records are counted. */
  readonly store: {
    readonly zooKeeper: ZooKeeper;
    readonly complete: boolean;
    readonly nodes: { readonly size: number };
    readonly requests: { readonly size: number };
  };
  readonly tasks: TaskSupervisor;
  readonly eventLoopDelay: () => EventLoopDelay;
}

/** Logs a dump as `nodepool.stack_dump`; `dumpWork` writes the part between its header and the background tasks. */
export function dumpProcess(sources: ProcessDumpSources, log: Logger, dumpWork: (to: Logger) => void): void {
  const to = log.named('nodepool.stack_dump');
  to.info('Stack dump begins', processFields(sources));
  dumpWork(to);
  const running = sources.tasks.list();
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

function processFields({ store, eventLoopDelay }: ProcessDumpSources): Record<string, unknown> {
  const { state, server, session, counters } = store.zooKeeper;
  const { rss, heapUsed, heapTotal, external } = process.memoryUsage();
  return {
    pid: process.pid,
    uptime: Math.round(process.uptime()),
    zookeeper: state,
    zookeeper_server: server,
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

/** Fixtures for tests of the web endpoint: a store with given records, and a clock that is advanced manually. */
import type { Clock, Timer } from '@nodepool/core';
import { nodeWith, requestWith } from '@nodepool/core/testing';
import { type ImageStore, NodeEntry, type PoolComponentData, RequestEntry, type Store } from '@nodepool/store';

export class ManualClock implements Clock {
  private time = Date.UTC(2026, 10, 20, 13, 0, 0);
  private readonly timers = new Set<{ at: number; run: () => void }>();

  now(): number {
    return this.time;
  }
  monotonic(): number {
    return this.time;
  }
  schedule(delayMs: number, run: () => void): Timer {
    const timer = { at: this.time + delayMs, run };
    this.timers.add(timer);
    return { cancel: () => void this.timers.delete(timer) };
  }
  advance(ms: number): void {
    this.time += ms;
    for (const timer of [...this.timers]) {
      if (timer.at > this.time) continue;
      this.timers.delete(timer);
      timer.run();
    }
  }
  get pending(): number {
    return this.timers.size;
  }
}

export class Records {
  nodes: NodeEntry[] = [];
  requests: RequestEntry[] = [];
  pools: PoolComponentData[] = [];
  images: Partial<ImageStore> = {};
  complete = true;
  /** Number of times that the nodes were listed. */
  listed = 0;

  /** Returns a store with the parts that the endpoint reads; access to other parts throws. */
  asStore(): Store {
    const parts = {
      zooKeeper: { state: 'connected' },
      nodes: {
        all: () => {
          this.listed += 1;
          return this.nodes;
        },
        get: (id: string) => this.nodes.find((entry) => entry.id === id),
      },
      requests: { all: () => this.requests, inState: () => [] },
      components: { pools: () => this.pools },
    };
    Object.defineProperty(parts, 'images', { get: () => this.images });
    Object.defineProperty(parts, 'complete', { get: () => this.complete });
    return parts as unknown as Store;
  }
}

export function nodeEntry(id: string, node: Partial<NodeEntry['node']> = {}): NodeEntry {
  const data: Partial<NodeEntry['node']> = {
    ...{ provider: 'cloud', pool: 'main', external_id: 'server-1', public_ipv4: '192.0.2.7', public_ipv6: '' },
    ...{ connection_type: 'ssh', connection_port: 22 },
    state_time: Date.UTC(2026, 10, 20, 12, 0, 0) / 1000,
    type: ['small'],
  };
  return new NodeEntry({ value: nodeWith({ id, ...data, ...node }), data: new Uint8Array() }, 0, false);
}

export function requestEntry(id: string, labels: readonly string[]): RequestEntry {
  const request = requestWith({ id, node_types: labels, requestor: 'zuul', event_id: 'event' });
  return new RequestEntry({ value: request, data: new Uint8Array() }, 0, false);
}

export function pool(name: string, labels: readonly string[]): PoolComponentData {
  return {
    hostname: 'host',
    kind: 'pool',
    state: 'running',
    version: '1',
    model_api: 0,
    id: `host-PoolWorker.cloud-${name}-0`,
    name,
    provider_name: 'cloud',
    supported_labels: labels,
    priority: 100,
    paused: false,
  };
}

/** Records for tests of lists. */
import type { Node, NodeRequest } from '@nodepool/core';
import { nodeWith, requestWith } from '@nodepool/core/testing';
import { NodeEntry, type PoolComponentData, RequestEntry } from '@nodepool/store';

export function nodeEntry(facts: Partial<Node>, locked = false): NodeEntry {
  const node = nodeWith(facts);
  return new NodeEntry({ value: node, data: new Uint8Array() }, 0, locked);
}

export function requestEntry(facts: Partial<NodeRequest>): RequestEntry {
  const request = requestWith(facts);
  return new RequestEntry({ value: request, data: new Uint8Array() }, 0, false);
}

export function pool(labels: readonly string[]): PoolComponentData {
  return {
    hostname: 'host',
    kind: 'pool',
    state: 'running',
    version: '1',
    model_api: 0,
    id: 'host-PoolWorker.cloud-main-0',
    name: 'main',
    provider_name: 'cloud',
    supported_labels: labels,
    priority: 100,
    paused: false,
  };
}

/** Returns the part of a store of nodes that the lists use. */
export function nodesOf(...entries: NodeEntry[]): {
  all(): Iterable<NodeEntry>;
  get(id: string): NodeEntry | undefined;
} {
  return { all: () => entries, get: (id) => entries.find((entry) => entry.id === id) };
}

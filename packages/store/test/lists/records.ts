/** Records for tests of lists. */
import type { Node, NodeRequest } from '@nodepool/core';
import { nodeWith, requestWith } from '@nodepool/core/testing';
import type { NodeEntry, PoolComponentData, RequestEntry } from '@nodepool/store';

export function nodeEntry(facts: Partial<Node>, locked = false): NodeEntry {
  const node = nodeWith(facts);
  return { id: node.id, version: 0, locked, node, source: { value: node, data: new Uint8Array() } };
}

export function requestEntry(facts: Partial<NodeRequest>): RequestEntry {
  const request = requestWith(facts);
  return { id: request.id, version: 0, locked: false, request, source: { value: request, data: new Uint8Array() } };
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

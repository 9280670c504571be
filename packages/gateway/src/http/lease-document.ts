/** A lease as the API shows it. */

import type { Node } from '@nodepool/core';
import { leasedNode, requestReasons } from '@nodepool/requestor';
import {
  nodeDocument,
  type InterruptionDocument,
  type LeaseDocument,
  type LeasePhase,
  type NodeDocument,
} from '@nodepool/requestor/http';
import type { RequestEntry, Store } from '@nodepool/store';
import type { LeaseIndex } from '../leases/lease-index.js';
import { expiryOf, type LeaseEntry, type LeaseNode, type LeaseRecord } from '../leases/record.js';

export interface DocumentSources {
  readonly store: Pick<Store, 'nodes' | 'components'>;
  readonly index: Pick<LeaseIndex, 'requestOf'>;
}

export function leaseDocument({ store, index }: DocumentSources, { id, record }: LeaseEntry): LeaseDocument {
  const request = record.state === 'waiting' ? index.requestOf(id) : undefined;
  const expiry = expiryOf(record);
  const { end } = record;
  const nodes = record.nodes.map((node) => documentOfNode(node, record, store.nodes.get(node.id)?.node));
  return {
    id,
    name: record.name,
    state: record.state,
    phase: phaseOf(record, request),
    labels: record.labels,
    priority: record.priority,
    tenant: record.tenant,
    created_by: record.created_by,
    data: record.data,
    lifetime: record.lifetime,
    expires: expiry === undefined ? null : timeText(expiry),
    reasons: reasonsOf(record, nodes, request, store),
    request: request?.id ?? null,
    nodes,
    times: { created: timeText(record.created), ready: timeOrNull(record.ready), ended: timeOrNull(record.ended) },
    end: end === null ? null : { reason: end.reason, outcome: end.outcome, comment: end.comment, at: timeText(end.at) },
  };
}

function phaseOf({ state, end }: LeaseRecord, request: RequestEntry | undefined): LeasePhase {
  switch (state) {
    case 'waiting':
      if (request?.request.state === 'pending') return 'launching';
      return request?.request.state === 'fulfilled' ? 'handing-over' : 'queued';
    case 'ready':
      return 'in-use';
    case 'ending':
      return end?.reason === 'held' ? 'holding' : 'returning';
    case 'ended':
      return 'over';
  }
}

function reasonsOf(
  { state, reasons }: LeaseRecord,
  nodes: readonly NodeDocument[],
  request: RequestEntry | undefined,
  { components }: Pick<Store, 'components'>,
): readonly string[] {
  if (state === 'waiting') return request === undefined ? [] : requestReasons(request.request, [...components.pools()]);
  const losses = nodes.flatMap(({ id, reason, interruption }) => {
    if (reason !== null) return [`node ${id} is lost: ${reason}`];
    return interruption === null ? [] : [`node ${id} is interrupted: ${interruption.reason}`];
  });
  return [...reasons, ...losses];
}

function documentOfNode(
  { id, label, lost }: LeaseNode,
  { state, end }: LeaseRecord,
  node: Node | undefined,
): NodeDocument {
  const ended = end?.reason === 'held' ? 'held' : 'returned';
  const now = lost !== null ? 'lost' : state === 'ended' ? ended : 'in-use';
  // The record of a lost or returned node may already be about another use.
  const details = now === 'in-use' && node !== undefined ? nodeDocument(leasedNode(node, label)) : UNKNOWN_NODE;
  const interruption = now === 'in-use' ? interruptionOf(node) : null;
  return { ...details, id, label, state: now, reason: lost, interruption };
}

function interruptionOf(node: Node | undefined): InterruptionDocument | null {
  const found = node?.interruption ?? null;
  if (found === null) return null;
  const { kind, reason, time, ends_at: ends } = found;
  return { kind, reason, noticed: timeText(time), ends: timeOrNull(ends) };
}

const UNKNOWN_NODE = nodeDocument(undefined);

function timeText(seconds: number): string {
  return new Date(Math.round(seconds * 1000)).toISOString();
}

function timeOrNull(seconds: number | null): string | null {
  return seconds === null ? null : timeText(seconds);
}

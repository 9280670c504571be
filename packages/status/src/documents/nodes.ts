/** The documents of nodes. */

import { NODE_STATES, slotPlaceOf, type ExternalId } from '@nodepool/core';
import { backingSlots, type NodeEntry } from '@nodepool/store';
import { explainNode, interruptionOf } from '../explain/explain-node.js';
import type { NodeDocument, NodeRow, NodesDocument } from '../client/model.js';
import { shortened, type Observed } from './sources.js';
import { jobLink } from './job-link.js';
import { select, type ListDefinition } from './lists.js';
import type { Parameters } from './parameters.js';
import { decisions, SHORT, textOrNull, timeline } from './texts.js';

const LIST: ListDefinition<NodeEntry> = {
  values: {
    state: ({ node }) => [node.state],
    provider: ({ node }) => (node.provider === null ? [] : [node.provider]),
    pool: ({ node }) => (node.provider === null ? [] : [`${node.provider}/${node.pool ?? ''}`]),
    label: ({ node }) => node.type,
  },
  texts: ({ id, node }) => [
    ...[id, node.hostname, node.interface_ip, node.public_ipv4, node.private_ipv4, node.public_ipv6],
    ...[externalIdText(node.external_id), node.allocated_to, node.comment, node.hold_job, node.requestor],
    ...[node.tenant_name, node.az, node.provider, node.pool, node.state, ...node.type],
  ],
  sorts: {
    id: ({ id }) => id,
    age: ({ node }) => -node.state_time,
    created: ({ node }) => node.created_time ?? node.state_time,
    state: ({ node }) => node.state,
    provider: ({ node }) => `${node.provider ?? ''}/${node.pool ?? ''}`,
    label: ({ node }) => node.type[0] ?? '',
    requestor: ({ node }) => node.requestor ?? '',
    tenant: ({ node }) => node.tenant_name ?? '',
  },
};

export const NODE_LIST = {
  filters: ['state', 'provider', 'pool', 'label', 'q'],
  states: NODE_STATES,
  sorts: Object.keys(LIST.sorts),
} as const;

export function nodesDocument({ store, counts }: Observed, parameters: Parameters): NodesDocument {
  const { records, paging, facets } = select(store.nodes.all(), LIST, parameters);
  return {
    counts: { total: store.nodes.size, groups: counts.groups() },
    facets: {
      state: facets.get('state') ?? [],
      provider: facets.get('provider') ?? [],
      label: facets.get('label') ?? [],
    },
    paging,
    rows: records.map((entry) => nodeRow(entry, store)),
  };
}

/** Returns undefined if nothing is known of the node. */
export function nodeDocument(observed: Observed, { id }: Parameters): NodeDocument | undefined {
  const life = observed.timelines.node(id);
  const explanation = explainNode(observed, id);
  if (explanation === undefined) return undefined;
  const entry = observed.store.nodes.get(id);
  return {
    node: entry === undefined ? null : nodeRow(entry, observed.store),
    summary: shortened(explanation.summary, 1000),
    facts: explanation.facts,
    job: jobLink(observed, entry?.node.user_data ?? null),
    timeline: life === undefined ? [] : timeline(life.closed()),
    decisions: decisions(observed.decisions.of('node', id)),
  };
}

/** Returns the facts for a list; credentials are never among them. */
export function nodeRow(entry: NodeEntry, store: Observed['store']): NodeRow {
  const { id, node, locked } = entry;
  return {
    id,
    state: node.state,
    since: node.state_time,
    created: node.created_time,
    labels: node.type.slice(0, 20).map((label) => shortened(label, SHORT)),
    provider: textOrNull(node.provider, SHORT),
    pool: textOrNull(node.pool, SHORT),
    az: textOrNull(node.az, SHORT),
    externalId: textOrNull(externalIdText(node.external_id), SHORT),
    hostname: textOrNull(node.hostname, SHORT),
    ip: textOrNull(node.interface_ip ?? node.public_ipv4 ?? node.private_ipv4 ?? node.public_ipv6, SHORT),
    launcher: textOrNull(node.launcher, 200),
    request: textOrNull(node.allocated_to, SHORT),
    requestor: textOrNull(node.requestor, SHORT),
    tenant: textOrNull(node.tenant_name, SHORT),
    locked,
    comment: textOrNull(node.comment),
    machineType: textOrNull(node.machine_type ?? node.progress?.machine_type ?? null, SHORT),
    interruption: textOrNull(interruptionOf(entry) ?? null),
    slots: textOrNull(backingSlots(store.nodes, entry)?.text ?? null, SHORT),
    backingNode: textOrNull(slotPlaceOf(node)?.backingNode ?? null, SHORT),
    slot: node.slot,
  };
}

function externalIdText(id: ExternalId | null): string | null {
  return id === null || typeof id === 'string' ? id : JSON.stringify(id);
}

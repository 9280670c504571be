/** Describes requests, nodes, labels and providers from the records in ZooKeeper alone. */

import { slotPlaceOf, type JsonObject, type NodeRequest, type NodeState } from '@nodepool/core';
import type { BackingSlots, NodeEntry, PoolComponentData, RequestEntry, Store } from '@nodepool/store';
import {
  backingSlots,
  describePool,
  formatAge,
  isOffered,
  newestForecast,
  SERVES_REQUESTS,
  slotText,
} from '@nodepool/store';
import { readyTarget, type NodepoolConfig, type TopLabelConfig } from '@nodepool/config';
import type { LockHolder } from '@nodepool/zookeeper';
import type { Description, DescribedKind, Fact } from './description.js';
import { nodesTable, poolName, poolsTable, requestsTable, uploadsTable } from './tables.js';

export interface DescriptionSources {
  readonly store: Store;
  readonly config: Pick<NodepoolConfig, 'labels' | 'providers' | 'brokenProviders'>;
  /** Milliseconds since the epoch. */
  readonly now: number;
  /** The holder of the lock of a described node, if it was read. */
  readonly holder?: LockHolder | undefined;
}

/** Returns undefined if ZooKeeper and the configuration do not know the subject. */
export function describeRecord(
  sources: DescriptionSources,
  kind: DescribedKind,
  name: string,
): Description | undefined {
  switch (kind) {
    case 'request':
      return describeRequest(sources, name);
    case 'node':
      return describeNode(sources, name);
    case 'label':
      return describeLabel(sources, name);
    case 'provider':
      return describeProvider(sources, name);
  }
}

function describeRequest({ store, now }: DescriptionSources, id: string): Description | undefined {
  const entry = store.requests.get(id);
  if (entry === undefined) return undefined;
  const { request, locked } = entry;
  return {
    kind: 'request',
    name: id,
    summary: requestSummary(store, entry),
    facts: [
      fact('state', 'State', request.state),
      ageFact('created_time', 'Age', now, request.created_time),
      ageFact('state_time', 'In this state for', now, request.state_time),
      fact('node_types', 'Labels', request.node_types),
      fact('relative_priority', 'Relative priority', request.relative_priority),
      fact('requestor', 'Requestor', request.requestor),
      fact('tenant_name', 'Tenant', request.tenant_name),
      fact('provider', 'Only provider', request.provider),
      fact('reuse', 'Ready nodes allowed', request.reuse, request.reuse ? 'yes' : 'no'),
      fact('event_id', 'Event', request.event_id),
      fact('locked', 'Locked', locked, locked ? 'yes, by the pool that accepted it' : 'no'),
      fact('declined_by', 'Declined by', request.declined_by),
    ],
    sections: [
      { field: 'nodes', title: 'Nodes', list: nodesTable(nodesOfRequest(store, entry), now) },
      { field: 'pools', title: 'Pools', list: poolsTable(store, (pool) => poolStatement(request, pool)) },
    ],
  };
}

function nodesOfRequest(store: Store, { id, request }: RequestEntry): readonly NodeEntry[] {
  const ids = new Set([...request.nodes, ...store.nodes.allocatedTo(id).map((node) => node.id)]);
  return [...ids].sort().flatMap((nodeId) => store.nodes.get(nodeId) ?? []);
}

function requestSummary(store: Store, { id, request, locked }: RequestEntry): string {
  switch (request.state) {
    case 'fulfilled':
      return `Fulfilled with ${request.nodes.join(', ')}; the requestor has to take the nodes.`;
    case 'failed':
      return `Failed: ${request.declined_by.length} pools declined it, and no other pool can serve it.`;
    case 'pending': {
      const count = store.nodes.allocatedTo(id).length;
      const progress = `${count} of ${request.node_types.length} nodes have a record`;
      if (locked) return `Pending: the pool that accepted it works on it; ${progress}.`;
      const canServe = [...store.components.pools()].some((pool) => poolStatement(request, pool).startsWith(CAN_SERVE));
      const next = canServe ? 'a pool that can serve it takes it over' : 'no registered pool can, so it may wait again';
      return `Pending, but no pool works on it: ${next}; ${progress}.`;
    }
    case 'requested': {
      const able = [...store.components.pools()].filter((pool) => poolStatement(request, pool).startsWith(CAN_SERVE));
      const pools = [...new Set(able.map(poolName))].join(', ');
      return able.length === 0
        ? 'Waiting: no registered pool that has not declined it has all its labels.'
        : `Waiting: ${pools} can serve it.`;
    }
  }
}

const CAN_SERVE = 'has all its labels';

function poolStatement(request: NodeRequest, pool: PoolComponentData): string {
  if (request.declined_by.includes(pool.id)) return 'declined it';
  if (request.provider !== null && request.provider !== pool.provider_name) return 'is of another provider';
  const missing = new Set(request.node_types.filter((label) => !pool.supported_labels.includes(label)));
  if (missing.size > 0) return `has no label ${[...missing].join(', ')}`;
  const says = describePool(pool, request.node_types);
  return says === SERVES_REQUESTS ? CAN_SERVE : `${CAN_SERVE}, but ${says}`;
}

function describeNode({ store, now, holder }: DescriptionSources, id: string): Description | undefined {
  const entry = store.nodes.get(id);
  if (entry === undefined) return undefined;
  const { node, locked } = entry;
  const slots = backingSlots(store.nodes, entry);
  const place = slotPlaceOf(node);
  const request = node.allocated_to === null ? undefined : store.requests.get(node.allocated_to);
  return {
    kind: 'node',
    name: id,
    summary: nodeSummary(store, entry),
    facts: [
      fact('state', 'State', node.state),
      ageFact('state_time', 'In this state for', now, node.state_time),
      ageFact('created_time', 'Age', now, node.created_time),
      fact('locked', 'Locked', locked, locked ? 'yes' : 'no'),
      fact('holder', 'Locked by', holder?.identifier ?? null, holderText(holder)),
      fact('type', 'Labels', node.type),
      fact('provider', 'Provider', node.provider),
      fact('pool', 'Pool', node.pool),
      fact('az', 'Zone', node.az),
      fact('machine_type', 'Machine type', node.machine_type ?? node.progress?.machine_type ?? null),
      fact('launcher', 'Launcher', node.launcher),
      fact('external_id', 'Server', node.external_id),
      fact('hostname', 'Host name', node.hostname),
      fact('public_ipv4', 'Public IPv4', node.public_ipv4),
      fact('public_ipv6', 'Public IPv6', node.public_ipv6),
      fact('private_ipv4', 'Private IPv4', node.private_ipv4),
      fact('connection_type', 'Connection', node.connection_type),
      fact('username', 'User', node.username),
      fact('resources', 'Resources', node.resources),
      fact('attempt', 'Attempt', node.progress?.number ?? null),
      fact('allocated_to', 'Request', node.allocated_to, requestText(node.allocated_to, request)),
      fact('requestor', 'Requestor', node.requestor),
      fact('tenant_name', 'Tenant', node.tenant_name),
      fact('hold_job', 'Held for job', node.hold_job),
      fact('comment', 'Comment', node.comment),
      fact('interruption', 'Interruption', node.interruption === null ? null : { ...node.interruption }),
      fact('slots', 'Slots', slots === undefined ? null : slotsValue(slots), slots && slotsText(slots)),
      fact('backing_node', 'Backing node', place === undefined ? null : { ...place }, slotText(node)),
      fact('user_data', 'User data', slots?.label === undefined || slots.label === null ? node.user_data : null),
    ],
    sections: [],
  };
}

function slotsValue({ label, slots, used, closed }: BackingSlots): JsonObject {
  return { label, slots, used: Object.fromEntries(used), closed: closed ?? null };
}

function slotsText({ label, used, closed, text }: BackingSlots): string {
  const nodes = [...used].map(([slot, id]) => `${slot}: ${id}`).join(', ');
  const end = closed === undefined ? '' : `; gets no further nodes: ${closed}`;
  return `${text}${label === null ? '' : ` by label ${label}`}${nodes === '' ? '' : ` (${nodes})`}${end}`;
}

function holderText(holder: LockHolder | undefined): string | undefined {
  if (holder === undefined) return undefined;
  return holder.persistent ? `${holder.identifier} (durable lease)` : holder.identifier;
}

function requestText(id: string | null, request: RequestEntry | undefined): string | undefined {
  if (id === null) return undefined;
  return request === undefined ? `${id} (does not exist any more)` : `${id} (${request.request.state})`;
}

function nodeSummary(store: Store, { node, locked }: NodeEntry): string {
  const forRequest = node.allocated_to === null ? '' : ` for request ${node.allocated_to}`;
  switch (node.state) {
    case 'init':
    case 'building':
    case 'testing':
      return locked
        ? `A launcher launches it${forRequest}.`
        : `Its launch${forRequest} was interrupted: a launcher resumes it or deletes the node.`;
    case 'ready':
      if (node.allocated_to !== null) return `Ready and allocated${forRequest}.`;
      return isOffered(store, node) ? 'Ready for any request.' : 'Ready, but no registered pool hands it out.';
    case 'in-use':
      return locked ? 'In use by its requestor.' : 'In use, but its requestor has released it: a launcher deletes it.';
    case 'hold':
      return 'Held for inspection.';
    case 'used':
    case 'failed':
    case 'aborted':
    case 'deleting':
      return locked ? 'A launcher deletes it.' : 'A launcher will delete it.';
    case 'deleted':
      return 'Its instance is deleted; the record will be deleted next.';
  }
}

/** Returns the number of ready nodes that the label should have, if it is not always `min-ready`. */
function targetFacts(
  { components }: Pick<Store, 'components'>,
  label: TopLabelConfig | undefined,
  nodes: readonly NodeEntry[],
  now: number,
): Fact[] {
  if (label?.ready === undefined) return [];
  const inUse = nodes.filter(({ node }) => node.state === 'in-use').length;
  const { count, reason } = readyTarget(now, inUse, label, newestForecast(components, label.name));
  return [fact('ready_target', 'Ready nodes wanted', count, `${count} = ${reason}`)];
}

function describeLabel({ store, config, now }: DescriptionSources, label: string): Description | undefined {
  const top = config.labels.get(label);
  const nodes = [...store.nodes.all()].filter(({ node }) => node.type.includes(label));
  const requests = waitingFor(store, label);
  const pools = [...store.components.pools()].filter((pool) => pool.supported_labels.includes(label));
  if (top === undefined && nodes.length === 0 && requests.length === 0 && pools.length === 0) return undefined;
  const counts = countsOf(nodes);
  const names = [...new Set(pools.map(poolName))];
  const served = names.length === 0 ? 'No registered pool serves it' : `Served by ${names.join(', ')}`;
  return {
    kind: 'label',
    name: label,
    summary: `${served}; ${number(nodes.length, 'node')}; ${number(requests.length, 'request')} not fulfilled.`,
    facts: [
      fact('min_ready', 'Min-ready', top?.minReady ?? null),
      ...targetFacts(store, top, nodes, now),
      limitFact('max_age', 'Max-age', top?.maxAgeMs),
      limitFact('max_ready_age', 'Max-ready-age', top?.maxReadyAgeMs),
      limitFact('min_retention_time', 'Min-retention-time', top?.minRetentionMs),
      fact('nodes', 'Nodes', counts, countsText(counts)),
      fact('requests', 'Requests that wait', requests.length),
    ],
    sections: [
      {
        field: 'pools',
        title: 'Pools',
        list: poolsTable(
          store,
          (pool) => describePool(pool, [label]),
          (pool) => pool.supported_labels.includes(label),
        ),
      },
      { field: 'waiting', title: 'Waiting requests', list: requestsTable(requests.slice(0, MAX_ROWS), now) },
      { field: 'node_list', title: 'Nodes', list: nodesTable(nodes.slice(0, MAX_ROWS), now) },
    ],
  };
}

/** Number of rows of a section at most; `list` and `request-list` show all. */
const MAX_ROWS = 20;

function describeProvider({ store, config, now }: DescriptionSources, name: string): Description | undefined {
  const configured = config.providers.get(name) ?? config.brokenProviders.get(name);
  const nodes = [...store.nodes.ofProvider(name)];
  const uploads = [...store.images.uploads({ provider: name })];
  const pools = [...store.components.pools()].filter((pool) => pool.provider_name === name);
  if (configured === undefined && nodes.length === 0 && uploads.length === 0 && pools.length === 0) return undefined;
  const counts = countsOf(nodes);
  const served = pools.length === 0 ? 'No registered launcher serves it' : `${number(pools.length, 'pool')} registered`;
  return {
    kind: 'provider',
    name,
    summary: `${served}${configured === undefined ? '; it is not in the configuration' : ''}; ${number(nodes.length, 'node')}.`,
    facts: [
      fact('driver', 'Driver', configured?.driver ?? null),
      fact('driver_versions', 'Driver versions', driverVersions(store, configured?.driver)),
      fact('nodes', 'Nodes', counts, countsText(counts)),
    ],
    sections: [
      {
        field: 'pools',
        title: 'Pools',
        list: poolsTable(
          store,
          (pool) => describePool(pool),
          (pool) => pool.provider_name === name,
        ),
      },
      { field: 'uploads', title: 'Images', list: uploadsTable(uploads, now) },
      { field: 'node_list', title: 'Nodes', list: nodesTable(nodes.slice(0, MAX_ROWS), now) },
    ],
  };
}

function driverVersions(store: Store, driver: string | undefined): readonly string[] {
  if (driver === undefined) return [];
  const versions = new Set<string>();
  for (const { component } of store.components.all('launcher')) {
    const version = component.drivers?.[driver];
    if (version !== undefined) versions.add(`${version} on ${component.hostname}`);
  }
  return [...versions].sort();
}

/** Returns the requests for the label that are not fulfilled, in the order of ids. */
function waitingFor(store: Store, label: string): readonly RequestEntry[] {
  const waiting = [...store.requests.inState('requested'), ...store.requests.inState('pending')];
  return waiting.filter(({ request }) => request.node_types.includes(label));
}

function countsOf(nodes: readonly NodeEntry[]): Readonly<Partial<Record<NodeState, number>>> {
  const counts: Partial<Record<NodeState, number>> = {};
  for (const { node } of nodes) counts[node.state] = (counts[node.state] ?? 0) + 1;
  return counts;
}

function countsText(counts: Readonly<Partial<Record<NodeState, number>>>): string {
  const texts = Object.entries(counts).map(([state, count]) => `${count} ${state}`);
  return texts.length === 0 ? 'none' : texts.join(', ');
}

function fact(field: string, title: string, value: Fact['value'], text?: string): Fact {
  return { field, title, value, text };
}

/** Returns a fact for a limit of an age: seconds in JSON; null if there is none. */
function limitFact(field: string, title: string, ms: number | undefined): Fact {
  const seconds = ms === undefined || ms === 0 || ms === Infinity ? null : ms / 1000;
  return fact(field, title, seconds, seconds === null ? undefined : formatAge(seconds));
}

/** Returns a fact for a time: unix seconds in JSON, the age for people. */
function ageFact(field: string, title: string, now: number, time: number | null): Fact {
  return { field, title, value: time, text: time === null ? '' : formatAge(now / 1000 - time) };
}

function number(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

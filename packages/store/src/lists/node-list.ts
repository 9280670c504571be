/** The list of nodes. */

import { NODE_STATES, type JsonValue } from '@nodepool/core';
import type { NodeEntry } from '../nodes/node-entry.js';
import type { NodeStore } from '../nodes/node-store.js';
import { formatAge, parseAge } from './age.js';
import { createRecordList, type ColumnChoice, type ListColumn, type RecordList } from './record-list.js';

export interface NodeListOptions {
  readonly columns: ColumnChoice;
  /** Current time for the ages, in milliseconds since the epoch. */
  readonly now: number;
  /** Limits the list to this node; the list is empty if it does not exist. */
  readonly nodeId?: string | undefined;
}

/** Lists all nodes in the store, by id. Throws `UnknownFieldError`. */
export function nodeList(nodes: Pick<NodeStore, 'all' | 'get'>, options: NodeListOptions): RecordList {
  const rows = options.nodeId === undefined ? [...nodes.all()] : entriesOf(nodes.get(options.nodeId));
  return nodeListOf(rows, options);
}

/** Lists these nodes, by id. Throws `UnknownFieldError`. */
export function nodeListOf(entries: readonly NodeEntry[], options: Omit<NodeListOptions, 'nodeId'>): RecordList {
  const byId = [...entries].sort((a, b) => (a.id < b.id ? -1 : a.id > b.id ? 1 : 0));
  return createRecordList(nodeColumns(options.now), options.columns, byId);
}

/** Returns the columns. Names and order are those of the Python Nodepool's `node-list`, on which scripts rely. */
function nodeColumns(now: number): readonly ListColumn<NodeEntry>[] {
  return [
    { field: 'id', header: 'ID', value: (entry) => entry.id },
    { field: 'provider', header: 'Provider', value: ({ node }) => node.provider },
    { field: 'label', header: 'Label', value: ({ node }) => node.type },
    { field: 'server_id', header: 'Server ID', value: ({ node }) => node.external_id },
    { field: 'public_ipv4', header: 'Public IPv4', value: ({ node }) => node.public_ipv4 },
    { field: 'ipv6', header: 'IPv6', value: ({ node }) => node.public_ipv6 },
    { field: 'state', header: 'State', values: NODE_STATES, value: ({ node }) => node.state },
    {
      field: 'age',
      header: 'Age',
      value: ({ node }) => formatAge(now / 1000 - node.state_time),
      order: parseAge,
    },
    {
      field: 'locked',
      header: 'Locked',
      values: ['locked', 'unlocked'],
      value: ({ locked }) => (locked ? 'locked' : 'unlocked'),
    },
    { field: 'pool', header: 'Pool', detail: true, value: ({ node }) => node.pool },
    { field: 'hostname', header: 'Hostname', detail: true, value: ({ node }) => node.hostname },
    { field: 'private_ipv4', header: 'Private IPv4', detail: true, value: ({ node }) => node.private_ipv4 },
    { field: 'AZ', header: 'AZ', detail: true, value: ({ node }) => node.az },
    { field: 'username', header: 'Username', detail: true, value: ({ node }) => node.username },
    { field: 'connection_port', header: 'Port', detail: true, value: ({ node }) => portOf(node.connection_port) },
    { field: 'launcher', header: 'Launcher', detail: true, value: ({ node }) => node.launcher },
    { field: 'allocated_to', header: 'Allocated To', detail: true, value: ({ node }) => node.allocated_to },
    { field: 'hold_job', header: 'Hold Job', detail: true, value: ({ node }) => node.hold_job },
    { field: 'comment', header: 'Comment', detail: true, value: ({ node }) => node.comment },
    { field: 'user_data', header: 'User Data', detail: true, value: ({ node }) => node.user_data },
    { field: 'driver_data', header: 'Driver Data', detail: true, value: ({ node }) => node.driver_data },
  ];
}

/**
 * Returns the port, or `redacted` if it is not a number, because container-like clouds put credentials into it.
 * The lists of the Python Nodepool do the same.
 */
function portOf(port: NodeEntry['node']['connection_port']): JsonValue {
  return typeof port === 'number' ? port : 'redacted';
}

function entriesOf(entry: NodeEntry | undefined): readonly NodeEntry[] {
  return entry === undefined ? [] : [entry];
}

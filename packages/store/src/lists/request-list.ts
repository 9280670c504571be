/** The list of node requests. */

import { compareRequests, REQUEST_STATES } from '@nodepool/core';
import type { RequestEntry } from '../requests/request-entry.js';
import type { RequestStore } from '../requests/request-store.js';
import { ageColumn } from './age.js';
import { createRecordList, type ColumnChoice, type ListColumn, type RecordList } from './record-list.js';

/** Returns the columns. Names and order of the short form are the Python Nodepool's, on which scripts rely. */
function requestColumns(now: number): readonly ListColumn<RequestEntry>[] {
  return [
    { field: 'id', header: 'Request ID', value: (entry) => entry.id },
    { field: 'relative_priority', header: 'Priority', value: ({ request }) => request.relative_priority },
    { field: 'state', header: 'State', values: REQUEST_STATES, value: ({ request }) => request.state },
    { field: 'requestor', header: 'Requestor', value: ({ request }) => request.requestor },
    { field: 'node_types', header: 'Node Types', value: ({ request }) => request.node_types },
    { field: 'nodes', header: 'Nodes', value: ({ request }) => request.nodes },
    { field: 'declined_by', header: 'Declined By', value: ({ request }) => request.declined_by },
    { field: 'event_id', header: 'Event ID', value: ({ request }) => request.event_id },
    {
      ...ageColumn<RequestEntry>('age', 'Age', now, ({ request }) => request.created_time ?? request.state_time),
      detail: true,
    },
    { field: 'tenant_name', header: 'Tenant', detail: true, value: ({ request }) => request.tenant_name },
    { field: 'provider', header: 'Provider', detail: true, value: ({ request }) => request.provider },
  ];
}

export interface RequestListOptions {
  readonly columns: ColumnChoice;
  /** Milliseconds since the epoch; the end of ages in a table. */
  readonly now: number;
}

/** Lists all requests in the store, in the order in which they are served. Throws `UnknownFieldError`. */
export function requestList(requests: Pick<RequestStore, 'all'>, options: RequestListOptions): RecordList {
  const rows = [...requests.all()].sort((a, b) => compareRequests(a.request, b.request));
  return createRecordList(requestColumns(options.now), options.columns, rows);
}

/** The list of node requests. */

import { compareRequests } from '@nodepool/core';
import type { RequestEntry, RequestStore } from '../api.js';
import { makeRecordList, type ColumnChoice, type ListColumn, type RecordList } from './record-list.js';

/** Names and order are those of the existing Nodepool's `request-list`, on which scripts rely. */
const REQUEST_COLUMNS: readonly ListColumn<RequestEntry>[] = [
  { field: 'id', header: 'Request ID', value: (entry) => entry.id },
  { field: 'relative_priority', header: 'Priority', value: ({ request }) => request.relative_priority },
  { field: 'state', header: 'State', value: ({ request }) => request.state },
  { field: 'requestor', header: 'Requestor', value: ({ request }) => request.requestor },
  { field: 'node_types', header: 'Node Types', value: ({ request }) => request.node_types },
  { field: 'nodes', header: 'Nodes', value: ({ request }) => request.nodes },
  { field: 'declined_by', header: 'Declined By', value: ({ request }) => request.declined_by },
  { field: 'event_id', header: 'Event ID', value: ({ request }) => request.event_id },
];

/** Lists all requests in the store, in the order in which they are served. Throws `UnknownFieldError`. */
export function requestList(
  requests: Pick<RequestStore, 'all'>,
  options: { readonly columns: ColumnChoice },
): RecordList {
  const rows = [...requests.all()].sort((a, b) => compareRequests(a.request, b.request));
  return makeRecordList(REQUEST_COLUMNS, options.columns, rows);
}

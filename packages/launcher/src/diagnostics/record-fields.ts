/** The fields that tie a log line to a node, and to the request that it was made for. */

import type { LogFields } from '@nodepool/core';
import type { NodeEntry, Store } from '@nodepool/store';

/** The event is that of the request, while that exists. */
export function nodeFields(
  { requests }: Pick<Store, 'requests'>,
  { id, node }: Pick<NodeEntry, 'id' | 'node'>,
): LogFields {
  const { allocated_to: requestId } = node;
  if (requestId === null) return { node_id: id };
  return { node_id: id, node_request_id: requestId, event_id: requests.get(requestId)?.request.event_id };
}

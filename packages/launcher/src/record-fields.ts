import type { LogFields } from '@nodepool/core';
import type { NodeEntry, Store } from '@nodepool/store';

/** Returns the fields. `event_id` is that of the request; it is missing once the request is deleted. */
export function nodeFields(
  { requests }: Pick<Store, 'requests'>,
  { id, node }: Pick<NodeEntry, 'id' | 'node'>,
): LogFields {
  const { allocated_to: requestId } = node;
  if (requestId === null) return { node_id: id };
  return { node_id: id, node_request_id: requestId, event_id: requests.get(requestId)?.request.event_id };
}

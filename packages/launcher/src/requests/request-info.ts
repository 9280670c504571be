import type { LogFields, NodeRequest, RequestInfo } from '@nodepool/core';
import type { RequestEntry } from '@nodepool/store';
import type { Pool } from '../pool/pool.js';

/** Returns log fields of a request in a pool. */
export function requestFields(
  { provider, config }: Pool,
  { id, request }: Pick<RequestEntry, 'id' | 'request'>,
): LogFields {
  return {
    node_request_id: id,
    event_id: request.event_id,
    provider: provider.config.name,
    pool: config.name,
  };
}

/** Returns the request in the form that drivers get. */
export function requestInfo(request: NodeRequest): RequestInfo {
  return {
    id: request.id,
    labels: request.node_types,
    requestor: request.requestor,
    requestorData: request.requestor_data,
    relativePriority: request.relative_priority,
    eventId: request.event_id,
    createdTime: request.created_time,
    tenantName: request.tenant_name,
  };
}

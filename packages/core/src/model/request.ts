/** A node request: `/nodepool/requests/<id>`. Field names are those of the znode's JSON. */

import type { JsonValue } from './json.js';

export const REQUEST_STATES = ['requested', 'pending', 'fulfilled', 'failed'] as const;
export type RequestState = (typeof REQUEST_STATES)[number];

export interface NodeRequestData {
  readonly state: RequestState;
  /** Unix seconds. */
  readonly state_time: number;
  /** Labels wanted, in order, repeats allowed. */
  readonly node_types: readonly string[];
  /** Ids of the nodes, in the order of `node_types`, once fulfilled. */
  readonly nodes: readonly string[];
  /** `id`s of the pool components that declined. */
  readonly declined_by: readonly string[];
  /** False: launch new nodes, take none that are ready. */
  readonly reuse: boolean;
  readonly requestor: string | null;
  readonly requestor_data: JsonValue;
  /** Only this provider, as long as a pool of it can serve the request. */
  readonly provider: string | null;
  /** Lower first. */
  readonly relative_priority: number;
  readonly event_id: string | null;
  /** Unix seconds. */
  readonly created_time: number | null;
  readonly tenant_name: string | null;
}

export interface NodeRequest extends NodeRequestData {
  /** `<priority, three digits>-<sequence, ten digits>`. */
  readonly id: string;
}

/** `requestor` of the requests that a launcher makes to keep `min-ready` nodes. */
export const MIN_READY_REQUESTOR = 'NodePool:min-ready';

/** Order of service: priority prefix of the id, then relative priority, then sequence. For `Array.sort`. */
export function compareRequests(a: NodeRequest, b: NodeRequest): number {
  return (
    compareText(priorityOf(a.id), priorityOf(b.id)) ||
    a.relative_priority - b.relative_priority ||
    compareText(sequenceOf(a.id), sequenceOf(b.id))
  );
}

/** `200` of `200-0000000042`. */
export function priorityOf(requestId: string): string {
  return requestId.slice(0, requestId.lastIndexOf('-'));
}

/** `0000000042` of `200-0000000042`. */
export function sequenceOf(requestId: string): string {
  return requestId.slice(requestId.lastIndexOf('-') + 1);
}

function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

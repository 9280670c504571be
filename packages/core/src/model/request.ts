/** A node request: `/nodepool/requests/<id>`. Field names are those of the znode's JSON. */

import { isJsonObject, type JsonValue } from './json.js';

export const REQUEST_STATES = ['requested', 'pending', 'fulfilled', 'failed'] as const;
export type RequestState = (typeof REQUEST_STATES)[number];

export interface NodeRequestData {
  readonly state: RequestState;
  /** Unix seconds. */
  readonly state_time: number;
  /** Requested labels in order; a label can occur repeatedly. */
  readonly node_types: readonly string[];
  /** Ids of the allocated nodes once the request is fulfilled, in the order of `node_types`. */
  readonly nodes: readonly string[];
  /** `id`s of the pool components that declined. */
  readonly declined_by: readonly string[];
  /** Reasons of the pools in `declined_by`, by id, for the requestor. The Python Nodepool does not know them. */
  readonly decline_reasons: Readonly<Record<string, string>>;
  /** True if ready nodes may be used; false if every node must be launched for the request. */
  readonly reuse: boolean;
  readonly requestor: string | null;
  readonly requestor_data: JsonValue;
  /** The only provider that may serve the request, as long as one of its pools can. */
  readonly provider: string | null;
  /** Priority; lower values are served first. */
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

/** `requestor` of the requests that a launcher creates to maintain `min-ready` nodes. */
export const MIN_READY_REQUESTOR = 'NodePool:min-ready';

/** `requestor` of the requests with which a launcher tests uploads. */
export const LAUNCH_TEST_REQUESTOR = 'NodePool:launch-test';

/** Returns the path of the upload that a launch test demands; undefined for other requests. */
export function uploadToTest({
  requestor,
  requestor_data: data,
}: Pick<NodeRequestData, 'requestor' | 'requestor_data'>): string | undefined {
  if (requestor !== LAUNCH_TEST_REQUESTOR || !isJsonObject(data)) return undefined;
  const path = data['image_upload'];
  return typeof path === 'string' ? path : undefined;
}

/** Limit of the length of a project's name, in characters, because it is stored in every node of the project. */
const MAX_PROJECT_LENGTH = 200;

/**
 * Returns the project that the requestor works for, as its data name it: `project` (a name, or an object with a name),
 * `project_name`, the repository of a runner's job, or the same in the data of a lease. Null if they name none.
 */
export function projectOf({ requestor_data: data }: Pick<NodeRequestData, 'requestor_data'>): string | null {
  if (!isJsonObject(data)) return null;
  const { project, project_name: name, github, data: ofLease = null } = data;
  const { canonical_name: canonical, name: short } = isJsonObject(project) ? project : {};
  const job = isJsonObject(github) ? github['job'] : undefined;
  const repository = isJsonObject(job) ? job['repository'] : undefined;
  for (const found of [project, canonical, short, name, repository]) {
    if (typeof found === 'string' && found !== '') return found.slice(0, MAX_PROJECT_LENGTH);
  }
  return isJsonObject(ofLease) ? projectOf({ requestor_data: { ...ofLease, data: null } }) : null;
}

/** Compares requests by the order of service, for `Array.sort`: priority of the id, relative priority, sequence. */
export function compareRequests(a: NodeRequest, b: NodeRequest): number {
  return (
    compareText(priorityOf(a.id), priorityOf(b.id)) ||
    a.relative_priority - b.relative_priority ||
    compareText(sequenceOf(a.id), sequenceOf(b.id))
  );
}

/** Returns the priority prefix of a request id, e.g. `200` for `200-0000000042`. */
export function priorityOf(requestId: string): string {
  return requestId.slice(0, requestId.lastIndexOf('-'));
}

/** Returns the sequence of a request id, e.g. `0000000042` for `200-0000000042`. */
export function sequenceOf(requestId: string): string {
  return requestId.slice(requestId.lastIndexOf('-') + 1);
}

function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

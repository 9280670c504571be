import { isUsableUpload, type ImageUpload } from '@nodepool/core';
import type { ListColumn, NodeEntry, PoolComponentData, RecordList, RequestEntry, Store } from '@nodepool/store';
import { ageColumn, createRecordList } from '@nodepool/store';

/** `now` is in milliseconds since the epoch, here and below. */
export function nodesTable(nodes: readonly NodeEntry[], now: number): RecordList {
  const columns: readonly ListColumn<NodeEntry>[] = [
    { field: 'id', header: 'ID', value: ({ id }) => id },
    { field: 'state', header: 'State', value: ({ node }) => node.state },
    ageColumn('age', 'Age', now, ({ node }) => node.state_time),
    { field: 'label', header: 'Label', value: ({ node }) => node.type },
    { field: 'provider', header: 'Provider', value: ({ node }) => node.provider },
    { field: 'pool', header: 'Pool', value: ({ node }) => node.pool },
    { field: 'request', header: 'Request', value: ({ node }) => node.allocated_to },
    { field: 'server_id', header: 'Server', value: ({ node }) => node.external_id },
  ];
  return createRecordList(columns, 'all', nodes);
}

export function requestsTable(requests: readonly RequestEntry[], now: number): RecordList {
  const columns: readonly ListColumn<RequestEntry>[] = [
    { field: 'id', header: 'ID', value: ({ id }) => id },
    { field: 'state', header: 'State', value: ({ request }) => request.state },
    ageColumn('age', 'Age', now, ({ request }) => request.created_time ?? request.state_time),
    { field: 'label', header: 'Labels', value: ({ request }) => request.node_types },
    { field: 'requestor', header: 'Requestor', value: ({ request }) => request.requestor },
    { field: 'tenant_name', header: 'Tenant', value: ({ request }) => request.tenant_name },
  ];
  return createRecordList(columns, 'all', requests);
}

/** Returns the registered pools, each with a statement. */
export function poolsTable(
  { components }: Store,
  says: (pool: PoolComponentData) => string,
  isIncluded: (pool: PoolComponentData) => boolean = () => true,
): RecordList {
  const columns: readonly ListColumn<PoolComponentData>[] = [
    { field: 'pool', header: 'Pool', value: poolName },
    { field: 'launcher', header: 'Launcher', value: ({ hostname }) => hostname },
    { field: 'says', header: 'Says', value: says },
  ];
  return createRecordList(columns, 'all', [...components.pools()].filter(isIncluded));
}

export function uploadsTable(uploads: readonly ImageUpload[], now: number): RecordList {
  const columns: readonly ListColumn<ImageUpload>[] = [
    { field: 'image', header: 'Image', value: ({ image }) => image },
    { field: 'build', header: 'Build', value: ({ build }) => build },
    { field: 'upload', header: 'Upload', value: ({ id }) => id },
    {
      field: 'state',
      header: 'State',
      value: (upload) => (upload.state === 'ready' && !isUsableUpload(upload) ? 'gone' : upload.state),
    },
    ageColumn('age', 'Age', now, ({ state_time: time }) => time),
  ];
  return createRecordList(columns, 'all', uploads);
}

export function poolName({ provider_name: provider, name }: PoolComponentData): string {
  return `${provider}/${name}`;
}

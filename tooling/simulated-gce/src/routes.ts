/** The calls that the simulated cloud supports, by Google's published names. */

import type { Answer } from '@nodepool/simulated-cloud';
import { linkTo, type GceState } from './cloud-state.js';
import type { Api } from './definitions.js';
import { operationErrorOf, type GceContext } from './faults.js';
import { asMessage, type Message } from './messages.js';
import type { Images } from './images.js';
import type { Instances } from './instances.js';
import { matchesFilter } from './list-filter.js';
import type { Operations } from './operations.js';
import { invalid, notFound } from './api-error.js';
import { REGIONS } from './settings.js';
import type { Buckets, Progress } from './storage.js';

/** A published method and its handler. */
export interface PublishedRoute {
  readonly api: Api;
  /** e.g. `instances.insert`. */
  readonly operation: string;
  /** A call of the resumable upload protocol. The definitions contain only its path. */
  readonly upload?: { readonly name: string; readonly httpMethod: 'POST' | 'PUT' | 'DELETE' };
  readonly handle: (context: GceContext) => Answer | Promise<Answer>;
}

export interface Parts {
  readonly state: GceState;
  readonly instances: Instances;
  readonly images: Images;
  readonly operations: Operations;
  readonly buckets: Buckets;
}

export function routesOf(parts: Parts): readonly PublishedRoute[] {
  return [...instanceRoutes(parts), ...placeRoutes(parts), ...imageRoutes(parts), ...storageRoutes(parts)];
}

/** Returns the items of a collection, which are then filtered and paginated. */
type Lister = (params: GceContext['params']) => readonly Message[];

function compute(operation: string, handle: (context: GceContext) => Message | Promise<Message>): PublishedRoute {
  return { api: 'compute', operation, handle: async (context) => ok(await handle(context)) };
}

function list(state: GceState, operation: string, kind: string, items: Lister): PublishedRoute {
  return compute(operation, ({ params, query }) => {
    const page = pageOf(items(params), query, state.settings.pageSize);
    return { kind: `compute#${kind}List`, id: operation, ...page };
  });
}

function instanceRoutes({ state, instances }: Parts): readonly PublishedRoute[] {
  const nameIn = (params: GceContext['params']): string => params['instance'] ?? '';
  return [
    compute('instances.insert', (context) => {
      const { params, query, body } = context;
      const requestId = query.get('requestId') ?? undefined;
      return instances.insert(project(params), zone(params), jsonIn(body), requestId, operationErrorOf(context));
    }),
    compute('instances.delete', (context) => {
      const { params } = context;
      return instances.delete(project(params), zone(params), nameIn(params), operationErrorOf(context));
    }),
    compute('instances.get', ({ params }) => instances.get(zone(params), nameIn(params))),
    list(state, 'instances.list', 'instance', (params) => {
      const there = zone(params);
      const listed = instances.listed(project(params)).filter((each) => each.zone === there);
      return listed.map(({ message }) => message);
    }),
    compute('instances.aggregatedList', ({ params, query }) => aggregated(state, instances, project(params), query)),
    compute('instances.getSerialPortOutput', ({ params }) => {
      const contents = instances.console(zone(params), nameIn(params));
      return { kind: 'compute#serialPortOutput', contents, start: '0', next: String(contents.length) };
    }),
    list(state, 'disks.list', 'disk', (params) => instances.disks.list(project(params), zone(params))),
    compute('disks.get', ({ params }) => {
      const { disk = '' } = params;
      const found = instances.disks.list(project(params), zone(params)).find(({ name }) => name === disk);
      if (found === undefined) throw notFound(`projects/${project(params)}/zones/${zone(params)}/disks/${disk}`);
      return found;
    }),
  ];
}

function placeRoutes({ state, instances, operations }: Parts): readonly PublishedRoute[] {
  const nameIn = (params: GceContext['params']): string => params['operation'] ?? '';
  return [
    compute('machineTypes.get', ({ params }) =>
      instances.machineType(project(params), zone(params), params['machineType'] ?? ''),
    ),
    list(state, 'machineTypes.list', 'machineType', (params) => instances.machineTypes(project(params), zone(params))),
    compute('regions.get', ({ params }) => instances.region(project(params), params['region'] ?? '')),
    list(state, 'regions.list', 'region', (params) => instances.regions(project(params))),
    compute('zones.get', ({ params }) => {
      const name = zone(params);
      return asMessage(instances.zones(project(params)).find((each) => each['name'] === name));
    }),
    list(state, 'zones.list', 'zone', (params) => instances.zones(project(params))),
    compute('zoneOperations.wait', ({ params, signal }) => operations.wait(nameIn(params), zone(params), signal)),
    compute('zoneOperations.get', ({ params }) => operations.get(nameIn(params), zone(params))),
    list(state, 'zoneOperations.list', 'operation', (params) => operations.list(project(params), zone(params))),
    compute('globalOperations.wait', ({ params, signal }) => operations.wait(nameIn(params), undefined, signal)),
    compute('globalOperations.get', ({ params }) => operations.get(nameIn(params), undefined)),
    list(state, 'globalOperations.list', 'operation', (params) => operations.list(project(params), undefined)),
  ];
}

function imageRoutes({ state, images }: Parts): readonly PublishedRoute[] {
  const nameIn = (params: GceContext['params']): string => params['image'] ?? '';
  return [
    compute('images.insert', (context) => {
      const { params, query, body } = context;
      const requestId = query.get('requestId') ?? undefined;
      return images.insert(project(params), jsonIn(body), requestId, operationErrorOf(context));
    }),
    compute('images.get', ({ params }) => images.get(project(params), nameIn(params))),
    compute('images.getFromFamily', ({ params }) => images.newestOf(project(params), params['family'] ?? '')),
    list(state, 'images.list', 'image', (params) => images.list(project(params))),
    compute('images.delete', ({ params }) => images.delete(project(params), nameIn(params))),
  ];
}

function storageRoutes({ state, buckets, images }: Parts): readonly PublishedRoute[] {
  const storage = { api: 'storage' } as const;
  const sessionIn = (query: URLSearchParams): string => query.get('upload_id') ?? '';
  const bucketIn = (params: GceContext['params']): string => params['bucket'] ?? '';
  const upload = { ...storage, operation: 'objects.insert' } as const;
  return [
    {
      ...upload,
      upload: { name: 'objects.insert', httpMethod: 'POST' },
      handle: ({ params, query, body }) => {
        if (query.get('uploadType') !== 'resumable') throw invalid('only resumable uploads are simulated');
        const bucket = bucketIn(params);
        const id = buckets.begin(bucket, jsonIn(body), query.get('name') ?? undefined);
        const location = `${state.url}/upload/storage/v1/b/${bucket}/o?uploadType=resumable&upload_id=${id}`;
        return { status: 200, headers: { location } };
      },
    },
    {
      ...upload,
      upload: { name: 'objects.upload', httpMethod: 'PUT' },
      handle: ({ query, headers, body }) => {
        const range = headers['content-range'];
        return progress(buckets.put(sessionIn(query), typeof range === 'string' ? range : '', body));
      },
    },
    {
      ...upload,
      upload: { name: 'objects.cancelUpload', httpMethod: 'DELETE' },
      handle: ({ query }) => {
        buckets.cancel(sessionIn(query));
        return { status: 499 };
      },
    },
    {
      ...storage,
      operation: 'objects.list',
      handle: ({ params, query }) => {
        const all = buckets.list(bucketIn(params), query.get('prefix') ?? '');
        return ok({ kind: 'storage#objects', ...pageOf(all, query, state.settings.pageSize) });
      },
    },
    {
      ...storage,
      operation: 'objects.get',
      handle: ({ params }) => ok(buckets.get(bucketIn(params), params['object'] ?? '')),
    },
    {
      ...storage,
      operation: 'objects.delete',
      handle: ({ params }) => {
        const [bucket, object] = [bucketIn(params), params['object'] ?? ''];
        buckets.delete(bucket, object);
        images.objectDeleted(bucket, object);
        return { status: 204 };
      },
    },
  ];
}

function aggregated(state: GceState, instances: Instances, inProject: string, query: URLSearchParams): Message {
  const listed = instances.listed(inProject).map(({ message }) => message);
  const { items = [], ...next } = pageOf(listed, query, state.settings.pageSize);
  const scopes = new Map<string, Message>();
  for (const name of [...REGIONS.values()].flat()) {
    const found = items.filter((item) => String(item['zone']).endsWith(`/zones/${name}`));
    const warning = {
      code: 'NO_RESULTS_ON_PAGE',
      message: `There are no results for scope 'zones/${name}' on this page.`,
      data: [{ key: 'scope', value: `zones/${name}` }],
    };
    scopes.set(`zones/${name}`, found.length > 0 ? { instances: found } : { warning });
  }
  const selfLink = linkTo(state, `projects/${inProject}/aggregated/instances`);
  return {
    kind: 'compute#instanceAggregatedList',
    id: 'instances',
    items: Object.fromEntries(scopes),
    selfLink,
    ...next,
  };
}

/** Published maximum number of items per page. */
const MAX_RESULTS = 500;

/** A page of a list. Google's answers omit an empty list. */
interface Page {
  readonly items?: readonly Message[];
  readonly nextPageToken?: string;
}

function pageOf(all: readonly Message[], query: URLSearchParams, largest: number): Page {
  if (query.get('orderBy') !== null) throw invalid("Invalid value for field 'orderBy': it is not simulated");
  const filtered = all.filter((message) => matchesFilter(message, query.get('filter')));
  const begin = Number(query.get('pageToken') ?? 0);
  if (!Number.isInteger(begin) || begin < 0) throw invalid("Invalid value for field 'pageToken'");
  const wanted = Number(query.get('maxResults') ?? largest);
  if (wanted > Math.max(MAX_RESULTS, largest)) {
    throw invalid(`Invalid value for field 'maxResults': '${wanted}'. Must be less than or equal to '${MAX_RESULTS}'`);
  }
  const end = begin + Math.min(wanted, largest);
  const items = filtered.slice(begin, end);
  return {
    ...(items.length > 0 ? { items } : {}),
    ...(end < filtered.length ? { nextPageToken: String(end) } : {}),
  };
}

function progress(state: Progress): Answer {
  if ('object' in state) return ok(state.object);
  const { received } = state;
  return { status: 308, headers: received === 0 ? {} : { range: `bytes=0-${received - 1}` } };
}

function ok(message: Message): Answer {
  return { status: 200, body: message };
}

function project(params: GceContext['params']): string {
  return params['project'] ?? '';
}

function zone(params: GceContext['params']): string {
  const name = params['zone'] ?? '';
  if ([...REGIONS.values()].flat().includes(name)) return name;
  throw notFound(`projects/${project(params)}/zones/${name}`);
}

function jsonIn(body: Buffer): Message {
  return asMessage(JSON.parse(body.toString('utf8')));
}

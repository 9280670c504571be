/** The calls that the simulated cloud answers, each under the path that Google has published. */

import { asMessage, linkTo, type Ground, type Message } from './ground.js';
import type { Images } from './images.js';
import type { Instances } from './instances.js';
import type { OperationError, Operations } from './operations.js';
import { invalid, notFound } from './refusal.js';
import { REGIONS } from './settings.js';
import type { Buckets, Progress } from './storage.js';

/** A call, taken apart. */
export interface Exchange {
  readonly params: Readonly<Record<string, string>>;
  readonly query: URLSearchParams;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: Buffer;
  readonly signal: AbortSignal;
  /** The operation of the call shall end with this. */
  readonly failure: OperationError | undefined;
}

export interface Answer {
  readonly status: number;
  readonly message?: Message;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface Route {
  readonly api: 'compute' | 'storage';
  /** e.g. `instances.insert`. */
  readonly operation: string;
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  readonly path: string;
  /** Names of the published types of body and answer. */
  readonly request?: string;
  readonly response?: string;
  readonly handle: (exchange: Exchange) => Answer | Promise<Answer>;
}

export interface Parts {
  readonly ground: Ground;
  readonly instances: Instances;
  readonly images: Images;
  readonly operations: Operations;
  readonly buckets: Buckets;
}

const PROJECT_PATH = '/compute/v1/projects/{project}';
const ZONE_PATH = `${PROJECT_PATH}/zones/{zone}`;

export function routesOf(parts: Parts): readonly Route[] {
  return [...instanceRoutes(parts), ...operationRoutes(parts), ...imageRoutes(parts), ...storageRoutes(parts)];
}

function instanceRoutes({ ground, instances }: Parts): readonly Route[] {
  const compute = { api: 'compute', response: 'Operation' } as const;
  return [
    {
      ...compute,
      operation: 'instances.insert',
      method: 'POST',
      path: `${ZONE_PATH}/instances`,
      request: 'Instance',
      handle: ({ params, query, body, failure }) =>
        ok(instances.insert(project(params), zone(params), jsonIn(body), query.get('requestId') ?? undefined, failure)),
    },
    {
      ...compute,
      operation: 'instances.delete',
      method: 'DELETE',
      path: `${ZONE_PATH}/instances/{instance}`,
      handle: ({ params, failure }) =>
        ok(instances.delete(project(params), zone(params), params['instance'] ?? '', failure)),
    },
    {
      ...compute,
      operation: 'instances.get',
      method: 'GET',
      path: `${ZONE_PATH}/instances/{instance}`,
      response: 'Instance',
      handle: ({ params }) => ok(instances.get(zone(params), params['instance'] ?? '')),
    },
    {
      ...compute,
      operation: 'instances.aggregatedList',
      method: 'GET',
      path: `${PROJECT_PATH}/aggregated/instances`,
      response: 'InstanceAggregatedList',
      handle: ({ params, query }) => ok(aggregated(ground, instances, project(params), query)),
    },
    {
      ...compute,
      operation: 'instances.getSerialPortOutput',
      method: 'GET',
      path: `${ZONE_PATH}/instances/{instance}/serialPort`,
      response: 'SerialPortOutput',
      handle: ({ params }) => {
        const contents = instances.console(zone(params), params['instance'] ?? '');
        return ok({ kind: 'compute#serialPortOutput', contents, start: '0', next: String(contents.length) });
      },
    },
    {
      ...compute,
      operation: 'machineTypes.get',
      method: 'GET',
      path: `${ZONE_PATH}/machineTypes/{machineType}`,
      response: 'MachineType',
      handle: ({ params }) => ok(instances.machineType(project(params), zone(params), params['machineType'] ?? '')),
    },
    {
      ...compute,
      operation: 'regions.get',
      method: 'GET',
      path: `${PROJECT_PATH}/regions/{region}`,
      response: 'Region',
      handle: ({ params }) => ok(instances.region(project(params), params['region'] ?? '')),
    },
  ];
}

function operationRoutes({ operations }: Parts): readonly Route[] {
  const compute = { api: 'compute', response: 'Operation' } as const;
  const nameIn = (params: Exchange['params']): string => params['operation'] ?? '';
  return [
    {
      ...compute,
      operation: 'zoneOperations.wait',
      method: 'POST',
      path: `${ZONE_PATH}/operations/{operation}/wait`,
      handle: async ({ params, signal }) => ok(await operations.wait(nameIn(params), zone(params), signal)),
    },
    {
      ...compute,
      operation: 'zoneOperations.get',
      method: 'GET',
      path: `${ZONE_PATH}/operations/{operation}`,
      handle: ({ params }) => ok(operations.get(nameIn(params), zone(params))),
    },
    {
      ...compute,
      operation: 'globalOperations.wait',
      method: 'POST',
      path: `${PROJECT_PATH}/global/operations/{operation}/wait`,
      handle: async ({ params, signal }) => ok(await operations.wait(nameIn(params), undefined, signal)),
    },
    {
      ...compute,
      operation: 'globalOperations.get',
      method: 'GET',
      path: `${PROJECT_PATH}/global/operations/{operation}`,
      handle: ({ params }) => ok(operations.get(nameIn(params), undefined)),
    },
  ];
}

function imageRoutes({ ground, images }: Parts): readonly Route[] {
  const compute = { api: 'compute', response: 'Operation' } as const;
  return [
    {
      ...compute,
      operation: 'images.insert',
      method: 'POST',
      path: `${PROJECT_PATH}/global/images`,
      request: 'Image',
      handle: async ({ params, query, body, failure }) =>
        ok(await images.insert(project(params), jsonIn(body), query.get('requestId') ?? undefined, failure)),
    },
    {
      ...compute,
      operation: 'images.list',
      method: 'GET',
      path: `${PROJECT_PATH}/global/images`,
      response: 'ImageList',
      handle: ({ params, query }) => {
        const { items, next } = pageOf(images.list(project(params)), query, ground.settings().pageSize);
        return ok({ kind: 'compute#imageList', id: 'images', items, ...next });
      },
    },
    {
      ...compute,
      operation: 'images.delete',
      method: 'DELETE',
      path: `${PROJECT_PATH}/global/images/{image}`,
      handle: ({ params }) => ok(images.delete(project(params), params['image'] ?? '')),
    },
  ];
}

const UPLOAD_PATH = '/upload/storage/v1/b/{bucket}/o';

function storageRoutes({ ground, buckets }: Parts): readonly Route[] {
  const sessionIn = (query: URLSearchParams): string => query.get('upload_id') ?? '';
  return [
    {
      api: 'storage',
      operation: 'objects.insert',
      method: 'POST',
      path: UPLOAD_PATH,
      request: 'Object',
      handle: ({ params, query, body }) => {
        if (query.get('uploadType') !== 'resumable') throw invalid('only resumable uploads are simulated');
        const bucket = params['bucket'] ?? '';
        const id = buckets.begin(bucket, jsonIn(body), query.get('name') ?? undefined);
        const location = `${ground.url()}/upload/storage/v1/b/${bucket}/o?uploadType=resumable&upload_id=${id}`;
        return { status: 200, headers: { location } };
      },
    },
    {
      api: 'storage',
      operation: 'objects.upload',
      method: 'PUT',
      path: UPLOAD_PATH,
      response: 'Object',
      handle: ({ query, headers, body }) => {
        const range = headers['content-range'];
        return progress(buckets.put(sessionIn(query), typeof range === 'string' ? range : '', body));
      },
    },
    {
      api: 'storage',
      operation: 'objects.cancelUpload',
      method: 'DELETE',
      path: UPLOAD_PATH,
      handle: ({ query }) => {
        buckets.cancel(sessionIn(query));
        return { status: 499 };
      },
    },
    {
      api: 'storage',
      operation: 'objects.list',
      method: 'GET',
      path: '/storage/v1/b/{bucket}/o',
      response: 'Objects',
      handle: ({ params, query }) => {
        const all = buckets.list(params['bucket'] ?? '', query.get('prefix') ?? '');
        const { items, next } = pageOf(all, query, ground.settings().pageSize);
        return ok({ kind: 'storage#objects', items, ...next });
      },
    },
    {
      api: 'storage',
      operation: 'objects.delete',
      method: 'DELETE',
      path: '/storage/v1/b/{bucket}/o/{object}',
      handle: ({ params }) => {
        buckets.delete(params['bucket'] ?? '', params['object'] ?? '');
        return { status: 204 };
      },
    },
  ];
}

function aggregated(ground: Ground, instances: Instances, inProject: string, query: URLSearchParams): Message {
  const { items, next } = pageOf(instances.listed(inProject), query, ground.settings().pageSize);
  const scopes = new Map<string, Message>();
  for (const name of [...REGIONS.values()].flat()) {
    const found = items.filter((item) => item.zone === name).map(({ message }) => message);
    const warning = {
      code: 'NO_RESULTS_ON_PAGE',
      message: `There are no results for scope 'zones/${name}' on this page.`,
      data: [{ key: 'scope', value: `zones/${name}` }],
    };
    scopes.set(`zones/${name}`, found.length > 0 ? { instances: found } : { warning });
  }
  const selfLink = linkTo(ground, `projects/${inProject}/aggregated/instances`);
  return {
    kind: 'compute#instanceAggregatedList',
    id: 'instances',
    items: Object.fromEntries(scopes),
    selfLink,
    ...next,
  };
}

function pageOf<T>(
  all: readonly T[],
  query: URLSearchParams,
  largest: number,
): { readonly items: readonly T[]; readonly next: { readonly nextPageToken?: string } } {
  const begin = Number(query.get('pageToken') ?? 0);
  if (!Number.isInteger(begin) || begin < 0) throw invalid("Invalid value for field 'pageToken'");
  const end = begin + Math.min(Number(query.get('maxResults') ?? largest), largest);
  return { items: all.slice(begin, end), next: end < all.length ? { nextPageToken: String(end) } : {} };
}

function progress(state: Progress): Answer {
  if ('object' in state) return ok(state.object);
  const { received } = state;
  return { status: 308, headers: received === 0 ? {} : { range: `bytes=0-${received - 1}` } };
}

function ok(message: Message): Answer {
  return { status: 200, message };
}

function project(params: Exchange['params']): string {
  return params['project'] ?? '';
}

function zone(params: Exchange['params']): string {
  const name = params['zone'] ?? '';
  if ([...REGIONS.values()].flat().includes(name)) return name;
  throw notFound(`projects/${project(params)}/zones/${name}`);
}

function jsonIn(body: Buffer): Message {
  return asMessage(JSON.parse(body.toString('utf8')));
}

/** The routes of the API: create, get, list, watch and delete of every kind. */

import { objectAt, stringAt, type JsonObject } from '@nodepool/core';
import {
  jsonObjectIn,
  type Answer,
  type CallFault,
  type CloudState,
  type RequestContext,
  type Route,
  type VendorForm,
} from '@nodepool/simulated-cloud';
import type { Access } from './access.js';
import { checkNamespace, checkObject, checkPod } from './admission.js';
import { alreadyExists, apiError, notFound, statusAnswer } from './api-error.js';
import { problemOf } from './definitions.js';
import { KINDS, NAMESPACES, PODS, PROJECTS, type Kind } from './kinds.js';
import { selectorIn, type Matches } from './selectors.js';
import type { ClusterSettings } from './settings.js';
import type { Store, StoredObject } from './store.js';
import type { Watches } from './watches.js';

const DELETE_OPTIONS = 'io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions';
const MIN_TIMEOUT_SECONDS = 1800;

type Context = RequestContext<CallFault>;

export interface ApiParts {
  readonly state: CloudState<ClusterSettings>;
  readonly store: Store;
  readonly watches: Watches;
  readonly access: Access;
}

export class Api {
  constructor(private readonly parts: ApiParts) {}

  routes(): Route<CallFault>[] {
    return KINDS.flatMap((kind) => this.routesOf(kind));
  }

  /** Answers a list or a watch of a kind, which `show` can present as another one. */
  listOrWatch(
    context: Context,
    kind: Kind,
    source = kind,
    show = (object: StoredObject): JsonObject => object,
    isVisible: Matches = () => true,
  ): Answer {
    const { query, params } = context;
    const { namespace } = params;
    const isWatch = ['true', '1'].includes(query.get('watch') ?? '');
    this.check(context, isWatch ? 'watch' : 'list', kind, namespace);
    const selected = selectorIn(query);
    const matches: Matches = (object) => selected(object) && isVisible(object);
    if (isWatch) return this.watch(context, kind, source, show, matches);
    const items = this.parts.store.list(source, namespace).filter(matches).map(show);
    const { store, state } = this.parts;
    return page(kind, items, query, store.version, state.settings.pageLimit);
  }

  check({ headers }: Context, verb: string, kind: Kind, namespace: string | undefined): void {
    this.parts.access.check({ headers }, { verb, kind, namespace });
  }

  /** Deletes an object; a namespace and a running pod remain for a while. */
  delete(context: Context, kind: Kind, source: Kind, name: string, namespace: string | undefined): Answer {
    this.check(context, 'delete', kind, kind === PROJECTS ? name : namespace);
    const { store } = this.parts;
    const object = store.get(source, name, namespace);
    if (object === undefined) throw notFound(kind.plural, name);
    checkPreconditions(context, kind, object);
    const running = source === PODS && objectAt(object, 'spec')?.['nodeName'] !== undefined;
    if (source !== NAMESPACES && !running) {
      store.remove(source, object);
      return { status: 200, body: object };
    }
    if (object.metadata.deletionTimestamp !== undefined) {
      if (source === PODS) return { status: 200, body: object };
      const why =
        'The system is ensuring all content is removed from this namespace.  Upon completion, this namespace will automatically be purged by the system.';
      throw apiError(409, `Operation cannot be fulfilled on ${kind.plural} "${name}": ${why}`);
    }
    const change = source === NAMESPACES ? { status: { phase: 'Terminating' } } : {};
    return { status: 200, body: store.mark(source, object, change) };
  }

  private routesOf(kind: Kind): Route<CallFault>[] {
    const { plural, path, namespaced } = kind;
    const collection = namespaced ? `${path}/namespaces/:namespace/${plural}` : `${path}/${plural}`;
    const named = (context: Context): { name: string; namespace: string | undefined } => ({
      name: context.params['name'] ?? '',
      namespace: context.params['namespace'],
    });
    return [
      {
        operation: `${plural}.create`,
        method: 'POST',
        path: collection,
        handle: (context) => this.create(context, kind),
      },
      {
        operation: `${plural}.list`,
        method: 'GET',
        path: collection,
        handle: (context) => this.listOrWatch(context, kind),
      },
      {
        operation: `${plural}.get`,
        method: 'GET',
        path: `${collection}/:name`,
        handle: (context) => {
          const { name, namespace } = named(context);
          this.check(context, 'get', kind, namespace);
          const object = this.parts.store.get(kind, name, namespace);
          if (object === undefined) throw notFound(plural, name);
          return { status: 200, body: object };
        },
      },
      {
        operation: `${plural}.delete`,
        method: 'DELETE',
        path: `${collection}/:name`,
        handle: (context) => {
          const { name, namespace } = named(context);
          return this.delete(context, kind, kind, name, namespace);
        },
      },
      ...(namespaced
        ? [
            {
              operation: `${plural}.list`,
              method: 'GET',
              path: `${path}/${plural}`,
              handle: (context: Context) => this.listOrWatch(context, kind),
            },
          ]
        : []),
    ];
  }

  private create(context: Context, kind: Kind): Answer {
    const { store } = this.parts;
    const { namespace } = context.params;
    this.check(context, 'create', kind, namespace);
    const body = jsonObjectIn(context, () => apiError(400, 'the object provided is unrecognized'));
    const name = checkObject(kind, body);
    if (namespace !== undefined) checkNamespace(store, kind, name, namespace);
    if (store.get(kind, name, namespace) !== undefined) throw alreadyExists(kind.plural, name);
    if (kind === PODS && namespace !== undefined) checkPod(store, body, name, namespace);
    return { status: 201, body: store.add(kind, { ...body, ...initialState(kind) }, name, namespace) };
  }

  private watch(
    context: Context,
    kind: Kind,
    source: Kind,
    show: (object: StoredObject) => JsonObject,
    matches: Matches,
  ): Answer {
    const { query, params } = context;
    const version = query.get('resourceVersion') ?? '';
    const seconds = Number(query.get('timeoutSeconds') ?? '0');
    const body = this.parts.watches.start({
      kind,
      source,
      show,
      namespace: params['namespace'],
      matches,
      since: version === '' || version === '0' ? undefined : Number(version),
      sendsExisting: version === '' || version === '0',
      wantsBookmarks: query.get('allowWatchBookmarks') === 'true',
      timeoutSeconds: seconds > 0 ? seconds : MIN_TIMEOUT_SECONDS,
    });
    return { status: 200, body };
  }
}

/** The format of the API's answers outside of handlers. */
export const form: VendorForm<CallFault> = {
  jsonType: 'application/json',
  noRoute: (_context, pathExists) =>
    pathExists
      ? statusAnswer(405, 'the server does not allow this method on the requested resource')
      : statusAnswer(404, 'the server could not find the requested resource'),
  fault: ({ status, ...more }) => {
    const { body } = more as { readonly body?: JsonObject };
    return statusAnswer(status, stringAt(body ?? {}, 'message') ?? 'a planned fault', body ?? {});
  },
  failure: (status, message) => statusAnswer(status, message),
};

function initialState(kind: Kind): JsonObject {
  if (kind === NAMESPACES) return { spec: { finalizers: ['kubernetes'] }, status: { phase: 'Active' } };
  return kind === PODS ? { status: { phase: 'Pending' } } : {};
}

/** Compares the uid in the options of a deletion. */
function checkPreconditions(context: Context, kind: Kind, { metadata }: StoredObject): void {
  if (context.body.length === 0) return;
  const options = jsonObjectIn(context, () => apiError(400, 'the options provided are unrecognized'));
  const problem = problemOf(DELETE_OPTIONS, options);
  if (problem !== undefined) throw apiError(400, `DeleteOptions cannot be handled: ${problem}`);
  const uid = stringAt(objectAt(options, 'preconditions') ?? {}, 'uid');
  if (uid === undefined || uid === metadata.uid) return;
  const why = `Precondition failed: UID in precondition: ${uid}, UID in object meta: ${metadata.uid}`;
  throw apiError(409, `Operation cannot be fulfilled on ${kind.plural} "${metadata.name}": ${why}`);
}

/** Returns a page of a list; `continue` is the index of its first item and the version of the list. */
function page(
  kind: Kind,
  items: readonly JsonObject[],
  query: URLSearchParams,
  version: number,
  largest: number,
): Answer {
  const limit = Math.min(Number(query.get('limit') ?? '0'), largest);
  const [start = 0, listVersion = version] = (query.get('continue') ?? '').split(':').filter(Boolean).map(Number);
  const end = limit > 0 ? start + limit : items.length;
  const more = end < items.length ? { continue: `${end}:${listVersion}`, remainingItemCount: items.length - end } : {};
  return {
    status: 200,
    body: {
      apiVersion: kind.apiVersion,
      kind: `${kind.kind}List`,
      metadata: { resourceVersion: String(listVersion), ...more },
      // The API of OpenShift writes an empty list as null.
      items: kind === PROJECTS && items.length === 0 ? null : items.slice(start, end),
    },
  };
}

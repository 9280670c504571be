/**
 * The projects of OpenShift: a view of the namespaces, and their creation by a request. As in OpenShift, a project gets
 * the description of its request, but not its labels, and watches do not continue at a version. A user who is not an
 * administrator of the cluster has rights in the projects that he requested; calls to any other project are forbidden,
 * even if it does not exist.
 */

import { objectAt, stringAt, type JsonObject } from '@nodepool/core';
import { jsonObjectIn, type CallFault, type RequestContext, type Route } from '@nodepool/simulated-cloud';
import type { Access, User } from './access.js';
import { checkObject } from './admission.js';
import type { Api } from './api.js';
import { alreadyExists, apiError, forbidden, notFound } from './api-error.js';
import { NAMESPACES, PROJECT_REQUESTS, PROJECTS, ROLE_BINDINGS } from './kinds.js';
import type { Store, StoredObject } from './store.js';

const REQUESTER = 'openshift.io/requester';
const TYPE_OF_BINDING = { apiVersion: ROLE_BINDINGS.apiVersion, kind: ROLE_BINDINGS.kind };

export class Projects {
  /** Maximum number of projects; `Infinity` for no limit. */
  limit = Infinity;

  constructor(
    private readonly api: Api,
    private readonly store: Store,
    private readonly access: Access,
  ) {}

  routes(): Route<CallFault>[] {
    const { path, plural } = PROJECTS;
    return [
      {
        operation: 'projectrequests.create',
        method: 'POST',
        path: `${path}/${PROJECT_REQUESTS.plural}`,
        handle: (context) => {
          this.api.check(context, 'create', PROJECT_REQUESTS, undefined);
          const body = jsonObjectIn(context, () => apiError(400, 'the object provided is unrecognized'));
          return { status: 201, body: asProject(this.request(body, this.userOf(context))) };
        },
      },
      {
        operation: `${plural}.list`,
        method: 'GET',
        path: `${path}/${plural}`,
        handle: (context) => {
          if (context.query.get('watch') !== null) context.query.delete('resourceVersion');
          const user = this.userOf(context);
          return this.api.listOrWatch(context, PROJECTS, NAMESPACES, asProject, (each) => isVisible(each, user));
        },
      },
      {
        operation: `${plural}.get`,
        method: 'GET',
        path: `${path}/${plural}/:name`,
        handle: (context) => {
          const { name = '' } = context.params;
          this.api.check(context, 'get', PROJECTS, name);
          const found = this.store.get(NAMESPACES, name);
          if (found === undefined) throw notFound(plural, name);
          return { status: 200, body: asProject(found) };
        },
      },
      {
        operation: `${plural}.delete`,
        method: 'DELETE',
        path: `${path}/${plural}/:name`,
        handle: (context) => {
          this.api.delete(context, PROJECTS, NAMESPACES, context.params['name'] ?? '', undefined);
          return { status: 200, body: { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success' } };
        },
      },
    ];
  }

  private userOf({ headers }: Pick<RequestContext, 'headers'>): User {
    return this.access.userOf(headers.authorization);
  }

  private request(body: JsonObject, user: User): StoredObject {
    const name = checkObject(PROJECT_REQUESTS, body);
    if (/^(openshift|kubernetes|kube)(-|$)/.test(name)) {
      throw forbidden('projects', name, `cannot request a project starting with "${name}"`);
    }
    if (this.store.get(NAMESPACES, name) !== undefined) throw alreadyExists('projects', name);
    const projects = this.store.list(NAMESPACES).filter(({ metadata }) => metadata.annotations !== undefined);
    if (projects.length >= this.limit) {
      const why = `user ${user.name} cannot create more than ${this.limit} project(s)`;
      throw forbidden('projectrequests', name, why);
    }
    const annotations = {
      'openshift.io/description': stringAt(body, 'description') ?? '',
      'openshift.io/display-name': stringAt(body, 'displayName') ?? '',
      [REQUESTER]: user.name,
    };
    const namespace = {
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { annotations },
      spec: { finalizers: ['kubernetes'] },
      status: { phase: 'Active' },
    };
    const created = this.store.add(NAMESPACES, namespace, name, undefined);
    const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'admin' };
    const subjects = [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: user.name }];
    this.store.add(ROLE_BINDINGS, { ...TYPE_OF_BINDING, roleRef, subjects }, 'admin', name);
    return created;
  }
}

function isVisible({ metadata }: StoredObject, { name, isAdmin }: User): boolean {
  return isAdmin || metadata.annotations?.[REQUESTER] === name;
}

function asProject(namespace: StoredObject): JsonObject {
  return {
    apiVersion: PROJECTS.apiVersion,
    kind: PROJECTS.kind,
    metadata: namespace.metadata,
    spec: objectAt(namespace, 'spec') ?? {},
    status: objectAt(namespace, 'status') ?? {},
  };
}

/** Objects of the Kubernetes API, as far as the drivers read them. */

import { isJsonObject, objectAt, stringAt, textsAt, type JsonObject, type JsonValue } from '@nodepool/core';

/** An object with its identity, parsed once. */
export interface KubernetesObject {
  readonly name: string;
  readonly namespace: string | undefined;
  readonly uid: string;
  readonly resourceVersion: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  /** True once the deletion has been accepted. */
  readonly isBeingDeleted: boolean;
  readonly data: JsonObject;
}

export function objectOf(data: JsonObject): KubernetesObject {
  const metadata = objectAt(data, 'metadata') ?? {};
  return {
    name: stringAt(metadata, 'name') ?? '',
    namespace: stringAt(metadata, 'namespace'),
    uid: stringAt(metadata, 'uid') ?? '',
    resourceVersion: stringAt(metadata, 'resourceVersion') ?? '',
    labels: textsAt(metadata, 'labels'),
    annotations: textsAt(metadata, 'annotations'),
    isBeingDeleted: metadata['deletionTimestamp'] !== undefined && metadata['deletionTimestamp'] !== null,
    data,
  };
}

/** Returns the objects in a list of a JSON object. */
export function listAt(data: JsonObject, key: string): readonly JsonObject[] {
  const value: JsonValue | undefined = data[key];
  return Array.isArray(value) ? (value as readonly JsonValue[]).filter(isJsonObject) : [];
}

/** A kind of object and its place in the API. */
export interface Kind {
  /** Name for metrics and messages, e.g. `pods`. */
  readonly name: string;
  /** e.g. `/api/v1`. */
  readonly group: string;
  /** `kind` of an object in the API, e.g. `Pod`. */
  readonly objectKind: string;
}

export const NAMESPACES: Kind = { name: 'namespaces', group: '/api/v1', objectKind: 'Namespace' };
export const PROJECTS: Kind = { name: 'projects', group: '/apis/project.openshift.io/v1', objectKind: 'Project' };
/** The cluster answers the creation of a request with the project. */
export const PROJECT_REQUESTS: Kind = {
  name: 'projectrequests',
  group: '/apis/project.openshift.io/v1',
  objectKind: 'Project',
};
export const PODS: Kind = { name: 'pods', group: '/api/v1', objectKind: 'Pod' };
export const EVENTS: Kind = { name: 'events', group: '/api/v1', objectKind: 'Event' };
export const SERVICE_ACCOUNTS: Kind = { name: 'serviceaccounts', group: '/api/v1', objectKind: 'ServiceAccount' };
export const SECRETS: Kind = { name: 'secrets', group: '/api/v1', objectKind: 'Secret' };
export const RESOURCE_QUOTAS: Kind = { name: 'resourcequotas', group: '/api/v1', objectKind: 'ResourceQuota' };
export const ROLES: Kind = { name: 'roles', group: '/apis/rbac.authorization.k8s.io/v1', objectKind: 'Role' };
export const ROLE_BINDINGS: Kind = {
  name: 'rolebindings',
  group: '/apis/rbac.authorization.k8s.io/v1',
  objectKind: 'RoleBinding',
};

/** A collection of objects: all of a kind, or those of a namespace. */
export interface Collection {
  readonly kind: Kind;
  readonly namespace?: string | undefined;
}

export function pathOf({ kind, namespace }: Collection, name?: string): string {
  const place = namespace === undefined ? '' : `/namespaces/${encodeURIComponent(namespace)}`;
  return `${kind.group}${place}/${kind.name}${name === undefined ? '' : `/${encodeURIComponent(name)}`}`;
}

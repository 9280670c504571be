/** The kinds of objects that the simulated cluster has. */

export interface Kind {
  /** Name in paths, e.g. `pods`. */
  readonly plural: string;
  readonly kind: string;
  /** e.g. `/api/v1`. */
  readonly path: string;
  readonly apiVersion: string;
  /** API group; empty for the core group. */
  readonly group: string;
  readonly namespaced: boolean;
  /** Name of the published definition. */
  readonly definition: string;
}

function kind(plural: string, name: string, group: string, namespaced: boolean, definition: string): Kind {
  const core = group === '';
  return {
    plural,
    kind: name,
    path: core ? '/api/v1' : `/apis/${group}/v1`,
    apiVersion: core ? 'v1' : `${group}/v1`,
    group,
    namespaced,
    definition,
  };
}

const CORE = 'io.k8s.api.core.v1';
const RBAC = 'rbac.authorization.k8s.io';
const PROJECT = 'com.github.openshift.api.project.v1';

export const NAMESPACES = kind('namespaces', 'Namespace', '', false, `${CORE}.Namespace`);
export const PODS = kind('pods', 'Pod', '', true, `${CORE}.Pod`);
export const SERVICE_ACCOUNTS = kind('serviceaccounts', 'ServiceAccount', '', true, `${CORE}.ServiceAccount`);
export const SECRETS = kind('secrets', 'Secret', '', true, `${CORE}.Secret`);
const CONFIG_MAPS = kind('configmaps', 'ConfigMap', '', true, `${CORE}.ConfigMap`);
export const QUOTAS = kind('resourcequotas', 'ResourceQuota', '', true, `${CORE}.ResourceQuota`);
export const EVENTS = kind('events', 'Event', '', true, `${CORE}.Event`);
export const ROLES = kind('roles', 'Role', RBAC, true, 'io.k8s.api.rbac.v1.Role');
export const ROLE_BINDINGS = kind('rolebindings', 'RoleBinding', RBAC, true, 'io.k8s.api.rbac.v1.RoleBinding');
/** Another view of the namespaces. */
export const PROJECTS = kind('projects', 'Project', 'project.openshift.io', false, `${PROJECT}.Project`);
export const PROJECT_REQUESTS = kind(
  'projectrequests',
  'ProjectRequest',
  'project.openshift.io',
  false,
  `${PROJECT}.ProjectRequest`,
);

/** The kinds of Kubernetes itself. Namespaces are last, so that a namespace is removed after its contents. */
export const KINDS: readonly Kind[] = [
  PODS,
  SERVICE_ACCOUNTS,
  SECRETS,
  CONFIG_MAPS,
  QUOTAS,
  EVENTS,
  ROLES,
  ROLE_BINDINGS,
  NAMESPACES,
];

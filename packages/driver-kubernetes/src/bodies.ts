/** The objects that a launch creates. They are those of the Python Nodepool. */

import type { JsonObject, JsonValue, RequestInfo } from '@nodepool/core';
import type { Amounts, KubernetesLabel, PodTemplate } from './config.js';
import { toLabelValue, toName, type Tags } from './identity.js';

/** Name of the service account, its secret, and of the user that Zuul writes into its kubeconfig. */
export const USER = 'zuul-worker';
/** Cluster role that OpenShift gives to the administrator of a project. */
const ADMIN = 'admin';

const ALL_VERBS = ['create', 'delete', 'get', 'list', 'patch', 'update', 'watch'];

/** Rights in a namespace without a pod of Nodepool. */
const FULL_ACCESS: JsonObject = {
  name: 'zuul',
  rules: [
    {
      apiGroups: [''],
      resources: [
        'pods',
        'pods/exec',
        'pods/log',
        'pods/portforward',
        'services',
        'endpoints',
        'crontabs',
        'jobs',
        'deployments',
        'replicasets',
        'configmaps',
        'secrets',
      ],
      verbs: ALL_VERBS,
    },
  ],
};

/** Rights in a namespace with a pod: its use, but not its replacement. */
const POD_ACCESS: JsonObject = {
  name: 'zuul-restricted',
  rules: [
    { apiGroups: [''], resources: ['pods'], verbs: ['get', 'list'] },
    { apiGroups: [''], resources: ['pods/exec', 'pods/log', 'pods/portforward'], verbs: ALL_VERBS },
  ],
};

/** Name of the role for a type of label. */
function roleNameOf(type: KubernetesLabel['type']): string {
  return type === 'pod' ? 'zuul-restricted' : 'zuul';
}

/**
 * Returns the labels of the objects of a node: those of the configuration, overridden by the tags. A label of the
 * configuration that Kubernetes would refuse is adapted, because its text may come from a request.
 */
export function labelsOf(label: KubernetesLabel, tags: Tags, request: RequestInfo): Record<string, string> {
  const dynamic = [...label.dynamicLabels].map(([name, template]) => [name, toLabelValue(template.render(request))]);
  return {
    ...label.labels,
    ...(Object.fromEntries(dynamic) as Record<string, string>),
    ...tags,
    nodepool_node_label: toLabelValue(label.name),
  };
}

export function namespaceBody(name: string, labels: Tags): JsonObject {
  return { apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels } };
}

/** OpenShift copies the description to the project, but not the labels. */
export function projectRequestBody(name: string, labels: Tags, description: string): JsonObject {
  return { apiVersion: 'project.openshift.io/v1', kind: 'ProjectRequest', metadata: { name, labels }, description };
}

export function serviceAccountBody(labels: Tags): JsonObject {
  return { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: USER, labels } };
}

/** The cluster fills the secret with a token of the service account and the certificate of its authority. */
export function tokenSecretBody(labels: Tags): JsonObject {
  const annotations = { 'kubernetes.io/service-account.name': USER };
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    type: 'kubernetes.io/service-account-token',
    metadata: { name: USER, labels, annotations },
  };
}

export function roleBody(type: KubernetesLabel['type'], labels: Tags): JsonObject {
  const { name, rules } = type === 'pod' ? POD_ACCESS : FULL_ACCESS;
  return {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'Role',
    metadata: { name: name ?? '', labels },
    rules: rules ?? [],
  };
}

/** Binds the service account to its role, or in a project to the cluster role of administrators. */
export function roleBindingBody(
  namespace: string,
  type: KubernetesLabel['type'],
  isProject: boolean,
  labels: Tags,
): JsonObject {
  return {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'RoleBinding',
    metadata: { name: isProject ? 'admin-0' : 'zuul-role', labels },
    roleRef: {
      apiGroup: 'rbac.authorization.k8s.io',
      kind: isProject ? 'ClusterRole' : 'Role',
      name: isProject ? ADMIN : roleNameOf(type),
    },
    subjects: [{ kind: 'ServiceAccount', name: USER, namespace }],
  };
}

export function podBody(name: string, label: KubernetesLabel, labels: Tags): JsonObject {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, labels, annotations: label.annotations },
    spec: 'spec' in label.pod ? label.pod.spec : podSpec(label, label.pod),
  };
}

function podSpec(label: KubernetesLabel, pod: PodTemplate): JsonObject {
  return {
    containers: [container(label, pod)],
    ...given('imagePullSecrets', pod.imagePullSecrets),
    ...given('nodeSelector', pod.nodeSelector),
    ...given('schedulerName', pod.schedulerName),
    ...given('volumes', pod.volumes),
  };
}

/** The container runs until it is deleted; Zuul executes commands in it. */
function container(label: KubernetesLabel, pod: PodTemplate): JsonObject {
  const requests = { ...resourceList(label.requests), ...gpuOf(label) };
  const limits = { ...resourceList(pod.limits), ...gpuOf(label) };
  const resources = {
    ...(Object.keys(requests).length === 0 ? {} : { requests }),
    ...(Object.keys(limits).length === 0 ? {} : { limits }),
  };
  return {
    name: toName(label.name),
    image: pod.image,
    imagePullPolicy: pod.imagePull,
    command: ['/bin/sh', '-c'],
    args: ['while true; do sleep 30; done;'],
    env: pod.env,
    ...(Object.keys(resources).length === 0 ? {} : { resources }),
    ...given('volumeMounts', pod.volumeMounts),
    ...(pod.privileged === undefined ? {} : { securityContext: { privileged: pod.privileged } }),
  };
}

/** Amounts of 0 are omitted, as in the Python Nodepool. Units: CPUs, MiB and MB (10^6 bytes). */
function resourceList({ cpu = 0, memory = 0, storage = 0 }: Partial<Amounts>): JsonObject {
  return {
    ...(cpu === 0 ? {} : { cpu: String(cpu) }),
    ...(memory === 0 ? {} : { memory: `${memory}Mi` }),
    ...(storage === 0 ? {} : { 'ephemeral-storage': `${storage}M` }),
  };
}

function gpuOf({ gpu }: KubernetesLabel): JsonObject {
  return gpu === undefined ? {} : { [gpu.resource]: gpu.amount.toFixed(2) };
}

function given(key: string, value: JsonValue | undefined): JsonObject {
  return value === undefined ? {} : { [key]: value };
}

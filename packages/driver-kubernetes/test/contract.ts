/** The drivers and a simulated cluster, in the form that the driver kit expects. */

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stringAt, type ExternalId, type JsonObject } from '@nodepool/core';
import {
  abilitiesExcept,
  type CloudResource,
  type DriverFixture,
  type PlannedFault,
  type TestCloud,
} from '@nodepool/driver-kit';
import {
  ADMIN_TOKEN,
  httpControls,
  PROVISIONER_TOKEN,
  type CallFault,
  type SimulatedKubernetes,
  type StoredObject,
} from '@nodepool/simulated-kubernetes';
import { tagsInDescription, tagsInLabels, type Tags } from '../src/identity.js';
import { KubernetesAdapter, kubernetesDriver, type Flavour, type KubernetesProvider } from '../src/index.js';
import { openCluster, POOL, section } from './cluster.js';

const podKeys: JsonObject = {
  image: 'docker.io/fedora:28',
  'image-pull': 'Always',
  'python-path': '/usr/bin/python3',
  'shell-type': 'sh',
  cpu: 2,
  memory: 512,
  storage: 10,
  'cpu-limit': 4,
  'memory-limit': 1024,
  'storage-limit': 20,
  'extra-resources': { licences: 1 },
  gpu: 0.5,
  'gpu-resource': 'nvidia.com/gpu',
  env: [{ name: 'A', value: 'b' }],
  'node-selector': { disk: 'fast' },
  'scheduler-name': 'other',
  privileged: true,
  volumes: [{ name: 'data', emptyDir: {} }],
  'volume-mounts': [{ name: 'data', mountPath: '/data' }],
};

/** Returns a section with every key that a provider of the driver can have. */
function everyKey(flavour: Flavour): JsonObject {
  const type = (name: string): JsonObject => (flavour === 'openshiftpods' ? {} : { type: name });
  const secrets: JsonObject = flavour === 'kubernetes' ? {} : { 'image-pull-secrets': [{ name: 'registry' }] };
  const alias: JsonObject =
    flavour === 'openshift' ? { 'max-projects': 5 } : flavour === 'openshiftpods' ? { 'max-pods': 5 } : {};
  return {
    name: 'all',
    driver: flavour,
    context: 'admin',
    'max-concurrency': 5,
    priority: 10,
    'launch-retries': 2,
    'launch-timeout': 600,
    rate: 10,
    'max-servers': 10,
    'max-cores': 20,
    'max-ram': 4096,
    'max-resources': { licences: 3 },
    ...alias,
    pools: [
      {
        name: POOL,
        priority: 5,
        'max-servers': 4,
        'max-cores': 8,
        'max-ram': 2048,
        'max-resources': { licences: 2 },
        'node-attributes': { key: 'value' },
        'default-label-cpu': 1,
        'default-label-memory': 256,
        'default-label-storage': 5,
        'default-label-cpu-limit': 2,
        'default-label-memory-limit': 512,
        'default-label-storage-limit': 10,
        'default-label-extra-resources': { licences: 1 },
        labels: [
          {
            name: 'pod',
            ...type('pod'),
            ...podKeys,
            ...secrets,
            labels: { environment: 'ci' },
            'dynamic-labels': { tenant: '{request.tenant_name}' },
            annotations: { note: 'any text' },
          },
          { name: 'own', ...type('pod'), spec: { containers: [{ name: 'own', image: 'ubuntu:jammy' }] } },
          ...(flavour === 'openshiftpods'
            ? []
            : [{ name: 'space', type: flavour === 'openshift' ? 'project' : 'namespace' }]),
        ],
      },
    ],
  };
}

function configuration(flavour: Flavour): DriverFixture['configuration'] {
  const label = ['pools', 0, 'labels', 0] as const;
  return {
    accepted: [everyKey(flavour)],
    refused: [
      {
        why: 'a template over an unknown field of requests',
        section: section(flavour, { 'dynamic-labels': { tenant: '{request.tennant_name}' } }),
        at: [...label, 'dynamic-labels', 'tenant'],
      },
      {
        why: 'both a specification and other keys of a pod',
        section: section(flavour, { spec: { containers: [] } }),
        at: [...label, 'image'],
      },
      {
        why: 'a provider name that is invalid as a label',
        section: section(flavour, {}, { name: 'a b' }),
        at: ['name'],
      },
    ],
  };
}

/** Operation of the cluster that creates an instance. */
const INSTANCES: Readonly<Record<Flavour, { readonly create: string; readonly plural: string }>> = {
  kubernetes: { create: 'namespaces.create', plural: 'namespaces' },
  openshift: { create: 'projectrequests.create', plural: 'projects' },
  openshiftpods: { create: 'pods.create', plural: 'pods' },
};

const FAULTS: Readonly<Record<PlannedFault['kind'], CallFault & { readonly body?: JsonObject }>> = {
  refuse: { kind: 'status', status: 500 },
  'fail-after': { kind: 'status', status: 500, when: 'after' },
  'lose-answer': { kind: 'cut', when: 'after' },
  hang: { kind: 'hang', when: 'before' },
  echo: { kind: 'proxy', status: 502, echo: true },
  'proxy-404': { kind: 'proxy', status: 404 },
  'proxy-200': { kind: 'proxy', status: 200 },
  'proxy-json': { kind: 'proxy', status: 200, json: { message: 'sign in' } },
  throttle: { kind: 'status', status: 429, retryAfter: 2 },
  auth: { kind: 'status', status: 401 },
  conflict: { kind: 'status', status: 409, body: { reason: 'Conflict', message: 'the object has been modified' } },
  'not-found': { kind: 'status', status: 404, body: { reason: 'NotFound', message: 'there is no such object' } },
  quota: {
    kind: 'status',
    status: 403,
    body: { message: 'pods "x" is forbidden: exceeded quota: q, requested: pods=1, used: pods=3, limited: pods=3' },
  },
  capacity: { kind: 'status', status: 503 },
  invalid: { kind: 'status', status: 422, body: { message: 'Namespace "x" is invalid: metadata.name' } },
};

/** Returns the driver on a simulated cluster. */
export function simulated(flavour: Flavour): DriverFixture {
  const { create, plural } = INSTANCES[flavour];
  const ownsQuota = flavour === 'openshiftpods';
  return {
    name: flavour,
    packageFolder: join(__dirname, '..'),
    configuration: configuration(flavour),
    can: abilitiesExcept(
      'zones',
      'reused-ids',
      'machine-types',
      'images',
      'image-checksums',
      'image-labels',
      'image-copies',
      'image-times',
      // Lists of a cluster are consistent, and the driver reads instances from a watch.
      'list-lag',
      'foreign-instances',
      'fault:list:refuse',
      'fault:list:fail-after',
      'fault:list:lose-answer',
      'fault:list:conflict',
      'fault:list:not-found',
      'fault:list:proxy-404',
      'fault:list:proxy-200',
      'fault:list:proxy-json',
      'fault:list:auth',
      'fault:list:hang',
      'fault:list:throttle',
      // A cluster never refuses a namespace for missing capacity.
      'fault:create:capacity',
      ...(ownsQuota ? [] : (['quota'] as const)),
      // The watch of an OpenShift project covers its existence only; the pod is watched during the launch.
      ...(flavour === 'openshift' ? (['break-instance'] as const) : []),
    ),
    async open(): Promise<TestCloud> {
      const { time, cluster, environment } = await openCluster(flavour);
      const user = flavour === 'openshift' ? 'provisioner' : 'admin';
      let token = flavour === 'openshift' ? PROVISIONER_TOKEN : ADMIN_TOKEN;
      let tokens = 0;
      return {
        time,
        section: section(flavour),
        site: {
          settings: { context: stringAt(section(flavour), 'context') ?? '', project: POOL },
          chosen: { image: 'docker.io/library/debian:12' },
        },
        makeDriver: () => kubernetesDriver(flavour, environment),
        makeAdapter: (config) => new KubernetesAdapter(config as KubernetesProvider, environment),
        resources: () => resourcesOf(flavour, cluster),
        setTimes: (times) => cluster.configure(times),
        breakInstance: (id) => {
          const { namespace, name } = podOf(flavour, cluster, id);
          cluster.setPodStatus(namespace, name, { phase: 'Failed', reason: 'Evicted', message: 'no room' });
        },
        destroyInstance: (id) => {
          if (flavour === 'openshiftpods') {
            const { namespace, name } = podOf(flavour, cluster, id);
            cluster.remove('pods', name, namespace);
          } else {
            cluster.remove('namespaces', text(id));
          }
        },
        copyInstance: (id) => copyInstance(flavour, cluster, id),
        setQuota: ({ instances }) => {
          const spec = { hard: { pods: String(instances) } };
          cluster.add('resourcequotas', { apiVersion: 'v1', kind: 'ResourceQuota', spec }, 'quota', POOL);
        },
        plan: ({ operation, kind, skip }) => {
          const on = operation === 'create' ? create : operation === 'delete' ? `${plural}.delete` : '*';
          cluster.faults.add({ on, after: skip, fault: FAULTS[kind] });
        },
        secrets: () => [...cluster.calls.credentials],
        http: httpControls({
          ...cluster,
          clock: time.clock,
          any: '*',
          create,
          throttled: { kind: 'status', status: 503 },
        }),
        replaceCredentials() {
          const next = `another-token-${(tokens += 1)}`;
          const { kubeconfig } = cluster;
          writeFileSync(kubeconfig, readFileSync(kubeconfig, 'utf8').replaceAll(token, next));
          cluster.addToken(user, next);
          cluster.revokeToken(token);
          token = next;
        },
        clearFaults: () => cluster.faults.clear(),
        close: () => cluster.close(),
      };
    },
  };
}

function resourcesOf(flavour: Flavour, cluster: SimulatedKubernetes): CloudResource[] {
  const objects = cluster.list(flavour === 'openshiftpods' ? 'pods' : 'namespaces');
  return objects.flatMap((object) => {
    const { name, namespace } = object.metadata;
    const tags = tagsOf(object);
    const externalId = namespace === undefined ? name : `${namespace}-${name}`;
    return tags['nodepool_node_id'] === undefined ? [] : [{ kind: 'instance', externalId, tags }];
  });
}

function tagsOf({ metadata }: StoredObject): Tags {
  const { labels = {}, annotations = {} } = metadata;
  return { ...tagsInLabels(labels), ...tagsInDescription(annotations['openshift.io/description'] ?? '') };
}

/** Creates a namespace or pod with the labels and annotations of another one. */
function copyInstance(flavour: Flavour, cluster: SimulatedKubernetes, id: ExternalId): () => boolean {
  const plural = flavour === 'openshiftpods' ? 'pods' : 'namespaces';
  const original = cluster
    .list(plural)
    .find(({ metadata: { name, namespace } }) => (namespace === undefined ? name : `${namespace}-${name}`) === id);
  if (original === undefined) throw new Error(`there is no instance ${text(id)}`);
  const { apiVersion = '', kind = '', spec = {}, status = {} } = original;
  const { labels, annotations, name, namespace } = original.metadata;
  const copied = { labels: { ...labels }, annotations: { ...annotations } };
  cluster.add(plural, { apiVersion, kind, metadata: copied, spec, status }, `copy-of-${name}`, namespace);
  return () => cluster.list(plural).some(({ metadata }) => metadata.name === `copy-of-${name}`);
}

function podOf(flavour: Flavour, cluster: SimulatedKubernetes, id: ExternalId): { namespace: string; name: string } {
  const [pod] = cluster
    .list('pods')
    .map(({ metadata }) => metadata)
    .filter(({ name, namespace }) => (flavour === 'openshiftpods' ? `${namespace}-${name}` : namespace) === id);
  if (pod?.namespace === undefined) throw new Error(`there is no pod of ${text(id)}`);
  return { namespace: pod.namespace, name: pod.name };
}

function text(id: ExternalId): string {
  return typeof id === 'string' ? id : JSON.stringify(id);
}

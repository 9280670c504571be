/** The schemas of the providers. The reference pages are generated from them, so every key is documented here only. */

import { providerSchema, type JsonSchema, type ProviderDefaults } from '@nodepool/core';

/** The Python Nodepool waits 300 s for a pod. */
export const DEFAULTS: ProviderDefaults = {
  bootTimeoutSeconds: 60,
  launchTimeoutSeconds: 300,
  rateUnit: 'calls-per-second',
};
export const DEFAULT_IMAGE_PULL = 'IfNotPresent';

/** A driver of this package. */
export type Flavour = 'kubernetes' | 'openshift' | 'openshiftpods';

const text: JsonSchema = { type: 'string', minLength: 1 };
const LABEL_VALUE = '^([A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?$';
const LABEL_NAME = '^([a-z0-9.-]{1,253}/)?[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$';

const integer = (description: string): JsonSchema => ({ type: 'integer', minimum: 0, description });
const limit = (description: string): JsonSchema => ({ type: 'integer', description });
const amounts = (description: string): JsonSchema => ({
  type: ['object', 'null'],
  additionalProperties: { type: 'integer' },
  description,
});
const mapping = (description: string): JsonSchema => ({ type: ['object', 'null'], description });
const objects = (description: string): JsonSchema => ({ type: 'array', items: { type: 'object' }, description });

const limits: Readonly<Record<string, JsonSchema>> = {
  'max-servers': limit('Nodes of each pool at once. Default: unlimited.'),
  'max-cores': limit('Sum of `cpu` of the nodes of each pool. Default: unlimited.'),
  'max-ram': limit('Sum of `memory` of the nodes of each pool, MiB. Default: unlimited.'),
  'max-resources': amounts('Limits of other resources of each pool, by the names in `extra-resources`.'),
};

const poolProperties: Readonly<Record<string, JsonSchema>> = {
  'max-cores': limit("Sum of `cpu` of the nodes of this pool. Default: the provider's."),
  'max-ram': limit("Sum of `memory` of the nodes of this pool, MiB. Default: the provider's."),
  'max-resources': amounts("Limits of other resources of this pool; they replace the provider's one by one."),
  'default-label-cpu': integer('Default of `cpu` of the labels.'),
  'default-label-memory': integer('Default of `memory` of the labels, MiB.'),
  'default-label-storage': integer('Default of `storage` of the labels, MB.'),
  'default-label-cpu-limit': integer('Default of `cpu-limit` of the labels.'),
  'default-label-memory-limit': integer('Default of `memory-limit` of the labels, MiB.'),
  'default-label-storage-limit': integer('Default of `storage-limit` of the labels, MB.'),
  'default-label-extra-resources': amounts('Default of `extra-resources` of the labels.'),
};

const environment: JsonSchema = {
  type: 'array',
  items: {
    type: 'object',
    properties: {
      name: { ...text, description: 'Name of the variable.' },
      value: { type: 'string', description: 'Value of the variable.' },
    },
    required: ['name', 'value'],
    additionalProperties: false,
  },
  description: 'Environment variables of the container.',
};

/** Keys that describe a pod, which a label with `spec` cannot have. */
const POD_PROPERTIES: Readonly<Record<string, JsonSchema>> = {
  image: { ...text, description: 'Image of the container.' },
  'image-pull': {
    type: 'string',
    enum: ['IfNotPresent', 'Always', 'Never'],
    default: DEFAULT_IMAGE_PULL,
    description: 'When the image is pulled.',
  },
  'python-path': {
    ...text,
    default: 'auto',
    description: 'Python interpreter in the container; `auto` lets Ansible find it.',
  },
  'shell-type': { ...text, description: 'Shell in the container, by its name in Ansible. Default: `sh`.' },
  cpu: integer('CPUs that the container requests. Default: `default-label-cpu` of the pool.'),
  memory: integer('Memory that the container requests, MiB. Default: `default-label-memory` of the pool.'),
  storage: integer('Ephemeral storage that the container requests, MB. Default: `default-label-storage` of the pool.'),
  'cpu-limit': integer('Limit of the CPUs. Default: `default-label-cpu-limit` of the pool, else `cpu`.'),
  'memory-limit': integer(
    'Limit of the memory, MiB. Default: `default-label-memory-limit` of the pool, else `memory`.',
  ),
  'storage-limit': integer(
    'Limit of the ephemeral storage, MB. Default: `default-label-storage-limit` of the pool, else `storage`.',
  ),
  'extra-resources': amounts('Further amounts that count against `max-resources`. The pod does not request them.'),
  gpu: { type: 'number', minimum: 0, description: 'Amount of `gpu-resource` for the container.' },
  'gpu-resource': { ...text, description: "Resource name of the cluster's GPUs, e.g. `nvidia.com/gpu`." },
  env: environment,
  'node-selector': mapping('Labels of the cluster nodes on which the pod may run.'),
  'scheduler-name': { ...text, description: 'Scheduler of the pod. Default: that of the cluster.' },
  privileged: { type: 'boolean', description: 'Value of `securityContext.privileged` of the container.' },
  volumes: objects('Volumes of the pod, as in the API of Kubernetes.'),
  'volume-mounts': objects('Volume mounts of the container, as in the API of Kubernetes.'),
};

const PULL_SECRETS: JsonSchema = objects('Secrets for pulling the image, as in the API of Kubernetes: `[{name: …}]`.');

const commonLabelProperties: Readonly<Record<string, JsonSchema>> = {
  labels: {
    type: ['object', 'null'],
    propertyNames: { pattern: LABEL_NAME },
    additionalProperties: { type: ['string', 'number', 'boolean'], pattern: LABEL_VALUE },
    description: 'Labels of the namespace and the pod in the cluster.',
  },
  'dynamic-labels': {
    type: ['object', 'null'],
    propertyNames: { pattern: LABEL_NAME },
    additionalProperties: { type: 'string' },
    description:
      'Like `labels`, with data of the request, e.g. `{request.tenant_name}`. Characters that are invalid in labels become `-`.',
  },
  annotations: {
    type: ['object', 'null'],
    additionalProperties: { type: ['string', 'number', 'boolean'] },
    description: 'Annotations of the pod in the cluster.',
  },
  spec: {
    type: 'object',
    description: 'The `spec` of the pod, which is used unchanged. Excludes all other keys that describe the pod.',
  },
};

interface Parts {
  readonly description: string;
  readonly context: JsonSchema;
  readonly isContextRequired: boolean;
  /** Another name of `max-servers`. */
  readonly alias?: Readonly<Record<string, JsonSchema>>;
  readonly type?: JsonSchema;
  readonly podProperties: Readonly<Record<string, JsonSchema>>;
}

const PARTS: Readonly<Record<Flavour, Parts>> = {
  kubernetes: {
    description: 'A provider of the driver "kubernetes": namespaces of a cluster.',
    context: {
      ...text,
      description:
        'Context of the kubeconfig file. Default: its current context; without a file, the service account of the pod in which Nodepool runs.',
    },
    isContextRequired: false,
    type: {
      type: 'string',
      enum: ['namespace', 'pod'],
      description: '`namespace`: an empty namespace; `pod`: a namespace with one pod.',
    },
    podProperties: POD_PROPERTIES,
  },
  openshift: {
    description: 'A provider of the driver "openshift": projects of a cluster.',
    context: { ...text, description: 'Context of the kubeconfig file.' },
    isContextRequired: true,
    alias: { 'max-projects': limit('Other name of `max-servers`; it takes precedence.') },
    type: {
      type: 'string',
      enum: ['project', 'pod'],
      description: '`project`: an empty project; `pod`: a project with one pod.',
    },
    podProperties: { ...POD_PROPERTIES, 'image-pull-secrets': PULL_SECRETS },
  },
  openshiftpods: {
    description: 'A provider of the driver "openshiftpods": pods in existing projects of a cluster.',
    context: { ...text, description: 'Context of the kubeconfig file.' },
    isContextRequired: true,
    alias: { 'max-pods': limit('Other name of `max-servers`; it takes precedence.') },
    podProperties: { ...POD_PROPERTIES, 'image-pull-secrets': PULL_SECRETS },
  },
};

/** Keys of a label that describe its pod, for each driver. */
export function podKeys(flavour: Flavour): readonly string[] {
  return Object.keys(PARTS[flavour].podProperties);
}

export const schemas: Readonly<Record<Flavour, JsonSchema>> = {
  kubernetes: schemaOf(PARTS.kubernetes),
  openshift: schemaOf(PARTS.openshift),
  openshiftpods: schemaOf(PARTS.openshiftpods),
};

function schemaOf({ description, context, isContextRequired, alias, type, podProperties }: Parts): JsonSchema {
  return providerSchema({
    description,
    compatible: true,
    defaults: DEFAULTS,
    provider: {
      incompatible: ['launch-timeout', 'rate'],
      without: ['boot-timeout'],
      required: ['pools', ...(isContextRequired ? ['context'] : [])],
      properties: { context, ...limits, ...alias },
    },
    pool: {
      without: ['host-key-checking', 'use-internal-ip'],
      required: ['labels'],
      properties: poolProperties,
    },
    label: {
      without: ['host-key-checking'],
      required: type === undefined ? [] : ['type'],
      properties: { ...(type === undefined ? {} : { type }), ...podProperties, ...commonLabelProperties },
    },
  });
}

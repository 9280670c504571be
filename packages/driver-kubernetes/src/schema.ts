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
  'max-servers': limit('Maximum nodes of each pool. Default: unlimited.'),
  'max-cores': limit('Maximum sum of `cpu` in each pool. Default: unlimited.'),
  'max-ram': limit('Maximum sum of `memory` in each pool, MiB. Default: unlimited.'),
  'max-resources': amounts('Limits of each pool for `extra-resources`.'),
};

const poolProperties: Readonly<Record<string, JsonSchema>> = {
  'max-cores': limit("Default: the provider's."),
  'max-ram': limit("Default: the provider's."),
  'max-resources': amounts("Replaces the provider's, one by one."),
  'default-label-cpu': integer('Default of `cpu`.'),
  'default-label-memory': integer('Default of `memory`.'),
  'default-label-storage': integer('Default of `storage`.'),
  'default-label-cpu-limit': integer('Default of `cpu-limit`.'),
  'default-label-memory-limit': integer('Default of `memory-limit`.'),
  'default-label-storage-limit': integer('Default of `storage-limit`.'),
  'default-label-extra-resources': amounts('Default of `extra-resources`.'),
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
  description: 'Environment variables.',
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
    description: 'Python interpreter; `auto` lets Ansible find it.',
  },
  'shell-type': { ...text, description: 'Shell, by its name in Ansible. Default: `sh`.' },
  cpu: integer('Requested CPUs.'),
  memory: integer('Requested memory, MiB.'),
  storage: integer('Requested ephemeral storage, MB.'),
  'cpu-limit': integer('Limit of CPUs. Default: `cpu`.'),
  'memory-limit': integer('Limit of memory, MiB. Default: `memory`.'),
  'storage-limit': integer('Limit of ephemeral storage, MB. Default: `storage`.'),
  'extra-resources': amounts('Amounts that count for `max-resources`; the pod does not request them.'),
  gpu: { type: 'number', minimum: 0, description: 'Amount of `gpu-resource`.' },
  'gpu-resource': { ...text, description: 'Resource name of GPUs, e.g. `nvidia.com/gpu`.' },
  env: environment,
  'node-selector': mapping('Labels of cluster nodes for the pod.'),
  'scheduler-name': { ...text, description: "Scheduler of the pod. Default: the cluster's." },
  privileged: { type: 'boolean', description: '`securityContext.privileged` of the container.' },
  volumes: objects('Volumes, as in a pod.'),
  'volume-mounts': objects('Volume mounts, as in a pod.'),
};

const PULL_SECRETS: JsonSchema = objects('Secrets for pulling the image, as in a pod: `[{name: …}]`.');

const commonLabelProperties: Readonly<Record<string, JsonSchema>> = {
  labels: {
    type: ['object', 'null'],
    propertyNames: { pattern: LABEL_NAME },
    additionalProperties: { type: ['string', 'number', 'boolean'], pattern: LABEL_VALUE },
    description: 'Labels of the namespace and the pod.',
  },
  'dynamic-labels': {
    type: ['object', 'null'],
    propertyNames: { pattern: LABEL_NAME },
    additionalProperties: { type: 'string' },
    description: 'Labels with data of the request, e.g. `{request.tenant_name}`. Invalid characters become `-`.',
  },
  annotations: {
    type: ['object', 'null'],
    additionalProperties: { type: ['string', 'number', 'boolean'] },
    description: 'Annotations of the pod.',
  },
  spec: {
    type: 'object',
    description: 'The unchanged `spec` of the pod. Excludes the other keys that describe it.',
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
        "Context of the kubeconfig file. Default: its current context; without a file, the service account of Nodepool's pod.",
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

/** Parses the configuration of a provider; see `schema.ts` for its keys. */

import {
  booleanAt,
  loadCommonProvider,
  numberAt,
  objectAt,
  requestTemplatesAt,
  stringAt,
  textsAt,
  type JsonObject,
  type JsonValue,
  type LabelConfig,
  type LabelSource,
  type PoolConfig,
  type PoolSource,
  type ProviderConfig,
  type ProviderConfigContext,
  type RequestTemplate,
  type Resources,
} from '@nodepool/core';
import { isLabelValue } from './identity.js';
import { DEFAULT_IMAGE_PULL, DEFAULTS, podKeys, type Flavour } from './schema.js';

/** Amounts of a container in the units of the configuration: CPUs, MiB and MB. */
export interface Amounts {
  readonly cpu: number | undefined;
  readonly memory: number | undefined;
  readonly storage: number | undefined;
}

export interface PodTemplate {
  readonly image: string;
  readonly imagePull: string;
  readonly imagePullSecrets: readonly JsonValue[] | undefined;
  readonly limits: Amounts;
  readonly env: readonly JsonValue[];
  readonly nodeSelector: JsonObject | undefined;
  readonly schedulerName: string | undefined;
  readonly privileged: boolean | undefined;
  readonly volumes: readonly JsonValue[] | undefined;
  readonly volumeMounts: readonly JsonValue[] | undefined;
}

export interface KubernetesLabel extends LabelConfig {
  /** `pod`, or an empty namespace or project. */
  readonly type: 'namespace' | 'pod';
  /** `spec` of the configuration, or the parts of a pod. */
  readonly pod: PodTemplate | { readonly spec: JsonObject };
  readonly requests: Amounts;
  readonly gpu: { readonly resource: string; readonly amount: number } | undefined;
  readonly extraResources: Resources;
  readonly labels: Readonly<Record<string, string>>;
  readonly dynamicLabels: ReadonlyMap<string, RequestTemplate>;
  readonly annotations: Readonly<Record<string, string>>;
}

export interface KubernetesProvider extends ProviderConfig<KubernetesLabel> {
  readonly flavour: Flavour;
  /** Name of a context, undefined for the current one or the service account of the pod. */
  readonly contextName: string | undefined;
}

const CONNECTION_TYPES: Readonly<Record<Flavour, string>> = {
  kubernetes: 'namespace',
  openshift: 'project',
  openshiftpods: 'kubectl',
};
/** Limits of a provider that hold for each pool without limits of its own, with the names of the resources. */
const INHERITED_LIMITS = { 'max-cores': 'cores', 'max-ram': 'ram' } as const;

export function loadProvider(
  flavour: Flavour,
  section: JsonObject,
  context: ProviderConfigContext,
): KubernetesProvider {
  const common = loadCommonProvider<KubernetesLabel, PoolConfig<KubernetesLabel>>(section, context, {
    defaults: DEFAULTS,
    withoutImages: true,
    loadLabel: (label, source) => loadLabel(flavour, label, source, context),
    loadPool: (pool, source) => loadPool(pool, source, context),
  });
  if (!isLabelValue(common.name)) context.problem(['name'], NOT_A_LABEL_VALUE);
  // Kubernetes does not charge a quota for their CPU and memory either, so that a lost node does not block the owner:
  // https://github.com/kubernetes/kubernetes/blob/master/pkg/quota/v1/evaluator/core/pods.go (`QuotaV1Pod`).
  return { ...common, flavour, contextName: stringAt(section, 'context'), countsUnendedDeletions: false };
}

const NOT_A_LABEL_VALUE = {
  expected: 'a name that can be the value of a label in Kubernetes',
  hint: 'at most 63 letters, digits, "-", "_" and ".", with a letter or a digit at both ends',
} as const;

function loadPool(
  pool: PoolConfig<KubernetesLabel>,
  { section, providerSection, path }: PoolSource,
  context: ProviderConfigContext,
): PoolConfig<KubernetesLabel> {
  if (!isLabelValue(pool.name)) context.problem([...path, 'name'], NOT_A_LABEL_VALUE);
  const limits: Record<string, number> = { ...amountsAt(providerSection, 'max-resources') };
  Object.assign(limits, amountsAt(section, 'max-resources'));
  for (const [key, resource] of Object.entries(INHERITED_LIMITS)) {
    const limit = numberAt(section, key) ?? numberAt(providerSection, key);
    if (limit !== undefined) limits[resource] = limit;
  }
  const inherited =
    numberAt(providerSection, 'max-projects') ??
    numberAt(providerSection, 'max-pods') ??
    numberAt(providerSection, 'max-servers');
  return { ...pool, limits, maxServers: numberAt(section, 'max-servers') ?? inherited ?? Infinity };
}

function loadLabel(
  flavour: Flavour,
  label: LabelConfig,
  { section, poolSection, path }: LabelSource,
  context: ProviderConfigContext,
): KubernetesLabel {
  const type = flavour === 'openshiftpods' || stringAt(section, 'type') === 'pod' ? 'pod' : 'namespace';
  const requests = amountsOf(section, poolSection, '', { cpu: undefined, memory: undefined, storage: undefined });
  const spec = objectAt(section, 'spec');
  checkPod(flavour, type, section, path, context);
  const gpuResource = stringAt(section, 'gpu-resource');
  const gpu = numberAt(section, 'gpu') ?? 0;
  return {
    ...label,
    type,
    connection: {
      ...label.connection,
      type: type === 'pod' ? 'kubectl' : CONNECTION_TYPES[flavour],
      // The namespace and its credentials are known when the node is ready.
      port: {},
      pythonPath: stringAt(section, 'python-path') ?? 'auto',
      shellType: stringAt(section, 'shell-type') ?? null,
    },
    hostKeyChecking: false,
    pod: spec === undefined ? podTemplate(section, poolSection, requests) : { spec },
    requests,
    gpu: gpuResource === undefined || gpu === 0 ? undefined : { resource: gpuResource, amount: gpu },
    extraResources: {
      ...amountsAt(poolSection, 'default-label-extra-resources'),
      ...amountsAt(section, 'extra-resources'),
    },
    labels: textsAt(section, 'labels'),
    dynamicLabels: requestTemplatesAt(section, 'dynamic-labels', path, context),
    annotations: textsAt(section, 'annotations'),
  };
}

/** Checks that the label describes a pod in one way, and only if it has one. */
function checkPod(
  flavour: Flavour,
  type: KubernetesLabel['type'],
  section: JsonObject,
  path: LabelSource['path'],
  context: ProviderConfigContext,
): void {
  const hasSpec = objectAt(section, 'spec') !== undefined;
  if (type === 'pod' && !hasSpec && stringAt(section, 'image') === undefined) {
    context.problem(path, { expected: '"image" or "spec" to be set for a label with a pod' });
  }
  if (!hasSpec) return;
  for (const key of podKeys(flavour).filter((each) => section[each] !== undefined)) {
    context.problem([...path, key], { expected: 'no such key beside "spec"', hint: 'write it into "spec"' });
  }
}

function podTemplate(section: JsonObject, poolSection: JsonObject, requests: Amounts): PodTemplate {
  return {
    image: stringAt(section, 'image') ?? '',
    imagePull: stringAt(section, 'image-pull') ?? DEFAULT_IMAGE_PULL,
    imagePullSecrets: listAt(section, 'image-pull-secrets'),
    limits: amountsOf(section, poolSection, '-limit', requests),
    env: listAt(section, 'env') ?? [],
    nodeSelector: objectAt(section, 'node-selector'),
    schedulerName: stringAt(section, 'scheduler-name'),
    privileged: booleanAt(section, 'privileged'),
    volumes: listAt(section, 'volumes'),
    volumeMounts: listAt(section, 'volume-mounts'),
  };
}

/** Returns the amounts of a label, the defaults of its pool, or `otherwise`. */
function amountsOf(label: JsonObject, pool: JsonObject, suffix: string, otherwise: Amounts): Amounts {
  const amount = (name: keyof Amounts): number | undefined =>
    numberAt(label, name + suffix) ?? numberAt(pool, `default-label-${name}${suffix}`) ?? otherwise[name];
  return { cpu: amount('cpu'), memory: amount('memory'), storage: amount('storage') };
}

function amountsAt(section: JsonObject, key: string): Record<string, number> {
  const found = objectAt(section, key) ?? {};
  return Object.fromEntries(
    Object.keys(found).flatMap((name) => {
      const amount = numberAt(found, name);
      return amount === undefined ? [] : [[name, amount]];
    }),
  );
}

function listAt(section: JsonObject, key: string): readonly JsonValue[] | undefined {
  const value = section[key];
  return Array.isArray(value) ? (value as readonly JsonValue[]) : undefined;
}

import { objectAt, QuotaInformation, stringAt, type Call, type JsonObject } from '@nodepool/core';
import { RESOURCE_QUOTAS } from './client/objects.js';
import type { Cluster } from './cluster.js';
import type { KubernetesLabel } from './config.js';

/** Returns the resources of one node: an instance and what its pod requests. */
export function needOf({ requests, gpu, extraResources }: KubernetesLabel): QuotaInformation {
  const { cpu = 0, memory = 0, storage = 0 } = requests;
  return QuotaInformation.use({
    instances: 1,
    ...(cpu === 0 ? {} : { cores: cpu }),
    ...(memory === 0 ? {} : { ram: memory }),
    ...(storage === 0 ? {} : { 'ephemeral-storage': storage }),
    ...(gpu === undefined ? {} : { [gpu.resource]: gpu.amount }),
    ...extraResources,
  });
}

const MIB = 2 ** 20;
const MB = 10 ** 6;

/** Resources of `ResourceQuota`, with the name and the unit of the same resource in the configuration. */
const RESOURCES: Readonly<Record<string, readonly [resource: string, unit: number]>> = {
  pods: ['instances', 1],
  'count/pods': ['instances', 1],
  cpu: ['cores', 1],
  'requests.cpu': ['cores', 1],
  memory: ['ram', MIB],
  'requests.memory': ['ram', MIB],
  'requests.ephemeral-storage': ['ephemeral-storage', MB],
};

/**
 * Reads the quotas of the pools' projects. A provider has one set of limits: the sum over its pools, without those
 * resources that a pool's project does not limit. The cluster itself enforces the quota of each project.
 */
export async function projectLimits({ client, config }: Cluster, call: Call): Promise<QuotaInformation> {
  const perPool = await Promise.all(
    [...config.pools.keys()].map(async (namespace) => {
      const { items } = await client.list({ kind: RESOURCE_QUOTAS, namespace }, {}, call);
      return items.reduce((limits, { data }) => limits.min(limitsIn(data)), QuotaInformation.limit({}));
    }),
  );
  return perPool.length === 0 ? QuotaInformation.limit({}) : perPool.reduce((sum, limits) => sum.add(limits));
}

/** Returns the limits of a quota; those that hold for some pods only are omitted. */
function limitsIn(quota: JsonObject): QuotaInformation {
  const spec = objectAt(quota, 'spec') ?? {};
  if (spec['scopes'] !== undefined || spec['scopeSelector'] !== undefined) return QuotaInformation.limit({});
  const hard = objectAt(spec, 'hard') ?? {};
  let limits = QuotaInformation.limit({});
  for (const [name, [resource, unit]] of Object.entries(RESOURCES)) {
    const quantity = stringAt(hard, name);
    const amount = quantity === undefined ? undefined : parseQuantity(quantity);
    if (amount !== undefined) limits = limits.min(QuotaInformation.limit({ [resource]: amount / unit }));
  }
  return limits;
}

const SUFFIXES: Readonly<Record<string, number>> = {
  '': 1,
  n: 1e-9,
  u: 1e-6,
  m: 1e-3,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  P: 1e15,
  E: 1e18,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
  Ti: 2 ** 40,
  Pi: 2 ** 50,
  Ei: 2 ** 60,
};

/** Parses a quantity, e.g. `500m`, `1Gi`, `1e3`; undefined if it is not one. */
function parseQuantity(text: string): number | undefined {
  const [, digits = '', suffix = ''] = /^([+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?)([A-Za-z]*)$/.exec(text) ?? [];
  const factor = SUFFIXES[suffix];
  const value = Number(digits);
  return digits === '' || factor === undefined || Number.isNaN(value) ? undefined : value * factor;
}

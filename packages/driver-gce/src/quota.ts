/** Reads the quota of a region and computes the resources of a label's nodes. */

import { numberAt, QuotaInformation, stringAt, type JsonObject } from '@nodepool/core';
import { listAt } from './client/answers.js';
import type { Accelerator } from './config.js';

export interface MachineSize {
  readonly cores: number;
  /** MiB. */
  readonly ram: number;
}

/** Quota metrics of cores for machine families with a quota of their own. */
export const CORE_METRICS: ReadonlyMap<string, string> = new Map(
  ['a2', 'c2', 'c2d', 'c3', 'm1', 'm2', 'm3', 'n2', 'n2a', 'n2d', 't2a', 't2d'].map((family) => [
    family,
    `${family.toUpperCase()}_CPUS`,
  ]),
);
/** Families that share one core quota. Newer families have quotas that the region does not list. */
const SHARED_CORE_FAMILIES = new Set(['n1', 'e2', 'f1', 'g1', 'custom']);
const SHARED_CORE_METRIC = 'CPUS';
const PREEMPTIBLE = 'PREEMPTIBLE_';

/** Properties of an instance that quotas count. */
export interface Hardware {
  readonly machineType: string;
  /** True for a preemptible or spot instance in a region with a separate quota for these. */
  readonly preemptible: boolean;
  readonly accelerators: readonly Accelerator[];
}

/** Returns the instance's usage of each quota metric of the region. */
function usageOf({ machineType, preemptible, accelerators }: Hardware, cores: number): Record<string, number> {
  const [family = ''] = machineType.split('-');
  const metric = SHARED_CORE_FAMILIES.has(family) ? SHARED_CORE_METRIC : CORE_METRICS.get(family);
  const usage: Record<string, number> = {};
  if (preemptible) usage[`${PREEMPTIBLE}${SHARED_CORE_METRIC}`] = cores;
  else if (metric !== undefined) usage[metric] = cores;
  for (const { type, count } of accelerators) {
    const name = `${preemptible ? PREEMPTIBLE : ''}${acceleratorMetric(type)}`;
    usage[name] = (usage[name] ?? 0) + count;
  }
  return usage;
}

/** Returns the metric of an accelerator type: `nvidia-tesla-t4` counts as `NVIDIA_T4_GPUS`. */
export function acceleratorMetric(type: string): string {
  return `${type.replace('-tesla', '').replaceAll('-', '_').toUpperCase()}_GPUS`;
}

/** Returns the resources that an instance uses. If its size is unknown, that is one instance. */
export function needOf(hardware: Hardware, size: MachineSize | undefined): QuotaInformation {
  if (size === undefined) return QuotaInformation.use({ instances: 1 });
  return QuotaInformation.use({ instances: 1, cores: size.cores, ram: size.ram, ...usageOf(hardware, size.cores) });
}

/** Returns the limits of a region that apply to instances; see `Schema$Quota` of the library. */
export function limitsIn(region: JsonObject): QuotaInformation {
  const limits: Record<string, number> = {};
  for (const quota of listAt(region, 'quotas')) {
    const metric = stringAt(quota, 'metric');
    const limit = numberAt(quota, 'limit');
    if (metric === undefined || limit === undefined) continue;
    if (metric === 'INSTANCES') limits['instances'] = limit;
    else if (metric.startsWith(PREEMPTIBLE) && limit === 0) continue;
    else if (/_GPUS$|^([A-Z]\w{1,2}_|PREEMPTIBLE_)?CPUS$/.test(metric)) limits[metric] = limit;
  }
  return QuotaInformation.limit(limits);
}

/** Returns true if the region has a quota for preemptible cores. Without one, they count as regular cores. */
export function hasPreemptibleQuota(region: JsonObject): boolean {
  const quota = listAt(region, 'quotas').find(
    (each) => stringAt(each, 'metric') === `${PREEMPTIBLE}${SHARED_CORE_METRIC}`,
  );
  return (numberAt(quota ?? {}, 'limit') ?? 0) > 0;
}

export function sizeIn(machineType: JsonObject): MachineSize | undefined {
  const cores = numberAt(machineType, 'guestCpus');
  const ram = numberAt(machineType, 'memoryMb');
  return cores === undefined || ram === undefined ? undefined : { cores, ram };
}

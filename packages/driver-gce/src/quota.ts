/** What a region allows, and what the nodes of a label take of it. */

import { numberAt, QuotaInformation, stringAt, type JsonObject } from '@nodepool/core';
import { listAt } from './client/answers.js';

/** A machine type. */
export interface MachineSize {
  readonly cores: number;
  /** MiB. */
  readonly ram: number;
}

/** Families whose cores count for the metric `CPUS`; the others have one of their own, e.g. `N2_CPUS`. */
const COMMON_FAMILIES = new Set(['n1', 'e2', 'f1', 'g1', 'm1', 'custom']);

/** The metric of the region's quota that the cores of a machine type count for. */
export function coreMetric(machineType: string): string {
  const [family = ''] = machineType.split('-');
  return COMMON_FAMILIES.has(family) ? 'CPUS' : `${family.toUpperCase()}_CPUS`;
}

/** One instance; its size where that is known. */
export function needOf(machineType: string, size: MachineSize | undefined): QuotaInformation {
  if (size === undefined) return QuotaInformation.use({ instances: 1 });
  return QuotaInformation.use({
    instances: 1,
    cores: size.cores,
    ram: size.ram,
    [coreMetric(machineType)]: size.cores,
  });
}

/** The limits of a region that hold for instances; see `Schema$Quota` of the library. */
export function limitsIn(region: JsonObject): QuotaInformation {
  const limits: Record<string, number> = {};
  for (const quota of listAt(region, 'quotas')) {
    const metric = stringAt(quota, 'metric');
    const limit = numberAt(quota, 'limit');
    if (metric === undefined || limit === undefined) continue;
    if (metric === 'INSTANCES') limits['instances'] = limit;
    else if (/^([A-Z]\w{1,2}_)?CPUS$/.test(metric)) limits[metric] = limit;
  }
  return QuotaInformation.limit(limits);
}

export function sizeIn(machineType: JsonObject): MachineSize | undefined {
  const cores = numberAt(machineType, 'guestCpus');
  const ram = numberAt(machineType, 'memoryMb');
  return cores === undefined || ram === undefined ? undefined : { cores, ram };
}

/** What a subscription may have in a location, by family of VMs too, and what the nodes of a label take of it. */

import { QuotaInformation, type Call, type Resources } from '@nodepool/core';
import type { AzureLabel } from './config.js';
import type { VmSize } from './lookups.js';
import type { Works } from './works.js';

/** Names of usages, and of the resources that core knows; families keep their names. */
const NAMES: Readonly<Record<string, string>> = {
  cores: 'regionalcores',
  lowPriorityCores: 'lowprioritycores',
  virtualMachines: 'instances',
};
const FAMILY = /Family$/i;

export async function quotaLimits({ client }: Works, call: Call): Promise<QuotaInformation> {
  const limits: Record<string, number> = {};
  for (const { name, limit } of await client.listUsages(call)) {
    const usage = name.value;
    if (usage === undefined) continue;
    const resource = NAMES[usage] ?? (FAMILY.test(usage) ? usage.toLowerCase() : undefined);
    if (resource !== undefined) limits[resource] = limit;
  }
  return QuotaInformation.limit(limits);
}

/** Rejects with `ConfigurationError` when there is no such size. */
export async function quotaOfLabel({ lookups }: Works, label: AzureLabel): Promise<QuotaInformation> {
  return QuotaInformation.use(resourcesOf(await lookups.size(label.vmSize), label.spot !== undefined));
}

/** Returns what a VM has, and what it counts for: spot VMs count for a quota of their own, whatever their family is. */
export function resourcesOf(size: VmSize, spot: boolean): Resources {
  const { cores, ram, family } = size;
  if (spot) return { instances: 1, cores, ram, lowprioritycores: cores };
  // Lists of sizes and of usages do not agree on the case of families.
  const ofFamily = family === '' ? {} : { [family.toLowerCase()]: cores };
  return { instances: 1, cores, ram, regionalcores: cores, ...ofFamily };
}

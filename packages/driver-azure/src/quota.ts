/** Reads the quota of a subscription in a location, also by VM family, and computes the needs of a label's nodes. */

import { QuotaInformation, type Call, type Resources } from '@nodepool/core';
import type { AzureLabel } from './config.js';
import type { VmSize } from './lookups.js';
import type { ProviderSession } from './provider-session.js';

/** Core's resource names by Azure's usage names. Families keep their names. */
const NAMES: Readonly<Record<string, string>> = {
  cores: 'regionalcores',
  lowPriorityCores: 'lowprioritycores',
  virtualMachines: 'instances',
};
const FAMILY = /Family$/i;

export async function quotaLimits({ client }: ProviderSession, call: Call): Promise<QuotaInformation> {
  const limits: Record<string, number> = {};
  for (const { name, limit } of await client.listUsages(call)) {
    const usage = name.value;
    if (usage === undefined) continue;
    const resource = NAMES[usage] ?? (FAMILY.test(usage) ? usage.toLowerCase() : undefined);
    if (resource !== undefined) limits[resource] = limit;
  }
  return QuotaInformation.limit(limits);
}

/** Rejects with `ConfigurationError` if the size does not exist. */
export async function quotaOfLabel(
  { lookups }: ProviderSession,
  label: AzureLabel,
  machineType = label.vmSize,
): Promise<QuotaInformation> {
  return QuotaInformation.use(resourcesOf(await lookups.size(machineType), label.spot !== undefined));
}

/** Returns the resources of a VM for quota purposes. Spot VMs of all families count against a separate quota. */
export function resourcesOf(size: VmSize, spot: boolean): Resources {
  const { cores, ram, family } = size;
  if (spot) return { instances: 1, cores, ram, lowprioritycores: cores };
  // Sizes and usages write family names with different upper and lower case.
  const ofFamily = family === '' ? {} : { [family.toLowerCase()]: cores };
  return { instances: 1, cores, ram, regionalcores: cores, ...ofFamily };
}

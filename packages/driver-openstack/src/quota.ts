import { QuotaInformation, type Call, type Resources } from '@nodepool/core';
import { flavorOf, usesVolumes, type OpenStackLabel } from './config.js';
import type { ProviderSession } from './provider-session.js';

/** Returns the project's limits, including block storage only if a label uses volumes. */
export async function quotaLimits({ client, config }: ProviderSession, call: Call): Promise<QuotaInformation> {
  const compute = await client.compute.limits(call);
  if (!usesVolumes(config) || !(await client.has('volume'))) return QuotaInformation.limit({ ...compute });
  const { volumes, gigabytes } = await client.volume.limits(call);
  return QuotaInformation.limit({ ...compute, volumes, 'volume-gb': gigabytes });
}

/** Rejects with `ConfigurationError` if the cloud has no flavor for the label. */
export async function quotaOfLabel(
  { lookups }: ProviderSession,
  label: OpenStackLabel,
  machineType: string | undefined,
): Promise<QuotaInformation> {
  const { vcpus, ram } = await lookups.flavor(flavorOf(label, machineType));
  return QuotaInformation.use({ instances: 1, cores: vcpus, ram, ...volumeUse(label.volumeSize) });
}

/** Returns the use of the boot volume of a label; `volumeSize` is undefined for a label without one. */
export function volumeUse(volumeSize: number | undefined): Resources {
  return volumeSize === undefined ? {} : { volumes: 1, 'volume-gb': volumeSize };
}

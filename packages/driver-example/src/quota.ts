/** The quota of the cloud, and the resources that the nodes of a label need. */

import { QuotaInformation } from '@nodepool/core';
import type { CloudDescription } from './cloud/types.js';
import type { ExampleLabel } from './config.js';

/** Cores and memory (MiB) of an instance. */
interface Size {
  readonly cores: number;
  readonly ram: number;
}

/** Returns the limits of the account, not what is left of them: core subtracts the resources in use. */
export function limitOf({ quota }: CloudDescription): QuotaInformation {
  return QuotaInformation.limit(quota);
}

/** Returns the resources that one node of a label needs, which depend on its size. */
export function needOf(
  cloud: CloudDescription | undefined,
  label: ExampleLabel,
  size: string | undefined,
): QuotaInformation {
  const { cores, ram } = sizeOf(cloud, label, size) ?? { cores: 1, ram: 0 };
  return QuotaInformation.use({ instances: 1, cores, ram });
}

/** Returns the size of this name, or that of the label without one; undefined if the cloud does not have it. */
export function sizeOf(
  cloud: CloudDescription | undefined,
  label: ExampleLabel,
  size: string | undefined,
): Size | undefined {
  if (size === undefined) return { cores: label.cores, ram: label.ram };
  return cloud?.sizes.find(({ name }) => name === size);
}

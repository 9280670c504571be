/**
 * The configuration of a provider of this driver.
 *
 * `providerSchema` and `loadCommonProvider` supply the keys of all drivers; this file adds the driver's own keys, which
 * are documented only in the schema. Report errors that a schema cannot detect to `context.problem`, with their
 * position.
 */

import {
  loadCommonProvider,
  numberAt,
  providerSchema,
  stringAt,
  type JsonObject,
  type JsonSchema,
  type LabelConfig,
  type PoolConfig,
  type ProviderConfig,
  type ProviderConfigContext,
  type ProviderDefaults,
} from '@nodepool/core';

/** A label with the properties of its instances. */
export interface MyCloudLabel extends LabelConfig {
  /** Name of the image in the cloud. */
  readonly cloudImage: string;
  readonly cores: number;
  /** MiB. */
  readonly ram: number;
}

export interface MyCloudProvider extends ProviderConfig<MyCloudLabel> {
  /** Name of the project that contains the instances. */
  readonly project: string;
}

const DEFAULTS: ProviderDefaults = { bootTimeoutSeconds: 60, rate: 10, rateUnit: 'calls-per-second' };
const DEFAULT_CORES = 1;
const DEFAULT_RAM = 1024;

export const schema: JsonSchema = providerSchema({
  description: 'A provider of the driver "mycloud".',
  defaults: DEFAULTS,
  provider: {
    properties: {
      project: { type: 'string', minLength: 1, description: 'Name of the project that instances are made in.' },
    },
    required: ['project'],
  },
  label: {
    properties: {
      cores: { type: 'integer', minimum: 1, default: DEFAULT_CORES, description: 'Cores of a node.' },
      ram: { type: 'integer', minimum: 1, default: DEFAULT_RAM, description: 'Memory of a node, MiB.' },
    },
  },
  cloudImage: {
    properties: {
      image: { type: 'string', minLength: 1, description: 'Name of the image in the cloud. Default: `name`.' },
    },
  },
});

/** Reads a section that has passed the schema. */
export function loadProvider(section: JsonObject, context: ProviderConfigContext): MyCloudProvider {
  const common = loadCommonProvider<MyCloudLabel, PoolConfig<MyCloudLabel>>(section, context, {
    defaults: DEFAULTS,
    loadLabel: (label, source) => ({
      ...label,
      cloudImage: stringAt(source.imageSection, 'image') ?? label.image.name,
      cores: numberAt(source.section, 'cores') ?? DEFAULT_CORES,
      ram: numberAt(source.section, 'ram') ?? DEFAULT_RAM,
    }),
    loadPool: (pool) => pool,
  });
  return { ...common, project: stringAt(section, 'project') ?? '' };
}

/** The schema of a provider of this driver. Every key is documented only here; the reference pages are generated. */

import { imageUploadProperties, providerSchema, type JsonSchema, type ProviderDefaults } from '@nodepool/core';
import { CLOUD_SETTINGS_SCHEMA } from './cloud/settings-schema.js';

export const DEFAULTS: ProviderDefaults = { bootTimeoutSeconds: 60, rateUnit: 'calls-per-second' };
export const DEFAULT_CORES = 1;
export const DEFAULT_RAM = 1024;
export const DEFAULT_IMAGE_FORMAT = 'raw';

const limit = (what: string): JsonSchema => ({
  type: 'integer',
  description: `Maximum ${what}. Default: unlimited.`,
});

export const schema: JsonSchema = providerSchema({
  description: 'A provider of the driver "example": a simulated cloud for experiments.',
  defaults: DEFAULTS,
  provider: {
    properties: {
      endpoint: {
        type: 'string',
        pattern: '^https?://',
        description: 'URL of `nodepool-example-cloud`. Default: the cloud is inside the launcher and ends with it.',
      },
      cloud: CLOUD_SETTINGS_SCHEMA,
      'image-format': {
        type: 'string',
        default: DEFAULT_IMAGE_FORMAT,
        description: 'Format of uploaded images.',
      },
      ...imageUploadProperties,
    },
  },
  pool: {
    properties: {
      'availability-zones': {
        type: 'array',
        items: { type: 'string' },
        description: 'Zones; all nodes of a request are in one. Default: all.',
      },
      'max-cores': limit('cores'),
      'max-ram': limit('memory, MiB'),
      'host-key-checking': {
        type: 'boolean',
        description: 'Default: true, unless the cloud is inside the launcher and its `ssh` is false.',
      },
    },
  },
  label: {
    rules: [{ not: { required: ['size', 'sizes'] } }],
    properties: {
      size: { type: 'string', minLength: 1, description: 'Size in the cloud. Excludes `cores` and `ram`.' },
      sizes: {
        type: 'array',
        items: { type: 'string', minLength: 1 },
        minItems: 1,
        uniqueItems: true,
        description: 'Alternatives, the preferred size first; the next is used if the cloud has no capacity.',
      },
      cores: { type: 'integer', minimum: 1, default: DEFAULT_CORES, description: 'Cores of a node.' },
      ram: { type: 'integer', minimum: 1, default: DEFAULT_RAM, description: 'Memory of a node, MiB.' },
      'console-log': {
        type: 'boolean',
        default: false,
        description: 'If true, the console output is logged when the login never answers.',
      },
    },
  },
  diskImage: {
    properties: {
      meta: {
        type: 'object',
        additionalProperties: { type: ['string', 'number', 'boolean'] },
        description: 'Properties of the image in the cloud.',
      },
    },
  },
  cloudImage: {
    properties: {
      image: { type: 'string', minLength: 1, description: 'Name of the image in the cloud. Default: `name`.' },
    },
  },
});

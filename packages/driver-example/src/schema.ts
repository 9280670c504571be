/** The schema of a provider of this driver. Every key is documented only here; the reference pages are generated. */

import { imageUploadProperties, providerSchema, type JsonSchema, type ProviderDefaults } from '@nodepool/core';
import { CLOUD_SETTINGS_SCHEMA } from './cloud/settings-schema.js';

export const DEFAULTS: ProviderDefaults = { bootTimeoutSeconds: 60, rateUnit: 'calls-per-second' };
export const DEFAULT_CORES = 1;
export const DEFAULT_RAM = 1024;
export const DEFAULT_IMAGE_FORMAT = 'raw';

const limit = (what: string): JsonSchema => ({
  type: 'integer',
  description: `${what} of all nodes of this pool. Default: unlimited.`,
});

export const schema: JsonSchema = providerSchema({
  description: 'A provider of the driver "example": a simulated cloud for experiments.',
  defaults: DEFAULTS,
  provider: {
    properties: {
      endpoint: {
        type: 'string',
        pattern: '^https?://',
        description:
          'URL of `nodepool-example-cloud`, e.g. `http://127.0.0.1:8480`. Default: the cloud is inside the launcher and ends with it.',
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
        description: 'Zones to use; all nodes of a request are in one. Default: all zones of the cloud.',
      },
      'max-cores': limit('Cores'),
      'max-ram': limit('Memory, in MiB,'),
      'host-key-checking': {
        type: 'boolean',
        description:
          'If true, a node is ready only when it accepts logins and its host keys are known. Default: true, unless the cloud is inside the launcher and its `ssh` is false.',
      },
    },
  },
  label: {
    rules: [{ not: { required: ['size', 'sizes'] } }],
    properties: {
      size: { type: 'string', minLength: 1, description: 'Name of a size of the cloud. Excludes `cores` and `ram`.' },
      sizes: {
        type: 'array',
        items: { type: 'string', minLength: 1 },
        minItems: 1,
        uniqueItems: true,
        description:
          'Alternatives to `size`, in the order of preference: a node gets the next size if the cloud has no capacity for one.',
      },
      cores: { type: 'integer', minimum: 1, default: DEFAULT_CORES, description: 'Cores of a node.' },
      ram: { type: 'integer', minimum: 1, default: DEFAULT_RAM, description: 'Memory of a node, MiB.' },
      'console-log': {
        type: 'boolean',
        default: false,
        description: "If true, the launcher logs the node's console output when the login never answers.",
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

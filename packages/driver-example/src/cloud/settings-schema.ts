/** Reference of the settings of the example cloud, in their written form. */

import type { JsonObject } from '@nodepool/core';
import { DEFAULT_SETTINGS, FAULTS } from './settings.js';

function secondsSchema(description: string): JsonObject {
  return {
    description: `${description} Seconds, or [minimum, maximum].`,
    default: 0,
    anyOf: [
      { type: 'number', minimum: 0 },
      { type: 'array', items: { type: 'number', minimum: 0 }, minItems: 2, maxItems: 2 },
    ],
  };
}

function limitSchema(what: string): JsonObject {
  return { type: 'integer', minimum: -1, default: -1, description: `${what}; -1: unlimited.` };
}

const nameSchema: JsonObject = { type: 'string', minLength: 1 };

const properties: JsonObject = {
  'boot-time': secondsSchema('Time until an instance runs.'),
  'delete-time': secondsSchema('Time until a deleted instance no longer exists.'),
  'api-latency': secondsSchema('Duration of a call.'),
  'list-lag': secondsSchema('Time until listings show a creation or deletion.'),
  'rate-limit': {
    type: 'number',
    exclusiveMinimum: 0,
    description: 'Calls per second, above which the answer is 429. Default: unlimited.',
  },
  quota: {
    type: 'object',
    additionalProperties: false,
    description: 'Limits of the cloud.',
    properties: {
      instances: limitSchema('Instances'),
      cores: limitSchema('Cores of all instances'),
      ram: limitSchema('Memory of all instances, MiB'),
    },
  },
  zones: {
    type: 'array',
    items: nameSchema,
    minItems: 1,
    uniqueItems: true,
    default: ['zone-1'],
    description: 'Availability zones.',
  },
  sizes: {
    type: 'array',
    minItems: 1,
    default: DEFAULT_SETTINGS.sizes.map((size) => ({ ...size })),
    description: 'Instance sizes.',
    items: {
      type: 'object',
      additionalProperties: false,
      required: ['name', 'cores', 'ram'],
      properties: {
        name: { ...nameSchema, description: 'Name of the size.' },
        cores: { type: 'integer', minimum: 1, description: 'Cores.' },
        ram: { type: 'integer', minimum: 1, description: 'Memory, MiB.' },
      },
    },
  },
  'public-images': {
    type: 'array',
    items: nameSchema,
    uniqueItems: true,
    description: 'Images for `cloud-images`. Default: any name.',
  },
  'page-size': {
    type: 'integer',
    minimum: 1,
    default: DEFAULT_SETTINGS.pageSize,
    description: 'Maximum entries of a page of a listing.',
  },
  'reuse-ids': {
    type: 'boolean',
    default: false,
    description: 'If true, a new instance gets the id of a deleted one.',
  },
  ssh: {
    type: 'boolean',
    default: false,
    description: 'If true, every instance is an ssh server on 127.0.0.1 with a port of its own.',
  },
  'authorized-keys': {
    type: 'string',
    description:
      'Absolute path of a file of public keys. With it and `ssh`, instances run the sshd of OpenSSH, and the owners of ' +
      'these keys run commands on this machine as the user of this process. Default: all logins fail.',
  },
  faults: {
    type: 'object',
    additionalProperties: false,
    description: 'Probabilities of faults, 0 to 1.',
    properties: Object.fromEntries(
      Object.entries(FAULTS).map(([name, description]) => [
        name,
        { type: 'number', minimum: 0, maximum: 1, default: 0, description },
      ]),
    ),
  },
};

/** Keys of the settings. */
export const CLOUD_SETTING_NAMES: readonly string[] = Object.keys(properties);

/** Schema of the settings in their written form, for `readCloudSettings`. */
export const CLOUD_SETTINGS_SCHEMA: JsonObject = {
  type: 'object',
  additionalProperties: false,
  description: 'The cloud inside the launcher. Excludes `endpoint`.',
  properties,
};

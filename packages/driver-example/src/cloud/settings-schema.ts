/** Reference of the settings of the example cloud, in their written form. */

import type { JsonObject } from '@nodepool/core';
import { DEFAULT_SETTINGS, FAULTS } from './settings.js';

function secondsSchema(description: string): JsonObject {
  return {
    description: `${description} Seconds: a number, or [least, greatest] to draw from each time.`,
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
  'boot-time': secondsSchema('From the creation of an instance until it runs.'),
  'delete-time': secondsSchema('From the deletion of an instance until it is gone and its quota is free.'),
  'api-latency': secondsSchema('How long a call takes; it takes effect half-way.'),
  'list-lag': secondsSchema('How long listings do not know yet that an instance exists, or that it is gone.'),
  'rate-limit': {
    type: 'number',
    exclusiveMinimum: 0,
    description:
      'Calls per second that the cloud serves; more are answered with 429 and Retry-After. Default: unlimited.',
  },
  quota: {
    type: 'object',
    additionalProperties: false,
    description: 'What may exist at the same time.',
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
    description: 'Names of the images that `cloud-images` can use. Default: any name.',
  },
  'page-size': {
    type: 'integer',
    minimum: 1,
    default: DEFAULT_SETTINGS.pageSize,
    description: 'Entries of one page of a listing.',
  },
  ssh: {
    type: 'boolean',
    default: false,
    description:
      'Whether every instance listens as an ssh server, on 127.0.0.1 and a port and with host keys of its own.',
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
    description: 'Probability of faults, each from 0 (never) to 1 (always).',
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
  description: 'Settings of the example cloud that runs inside the launcher. Not together with `endpoint`.',
  properties,
};

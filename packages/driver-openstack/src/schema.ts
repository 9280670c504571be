/** The schema of a provider. The reference page is generated from it, so every key is documented here only. */

import { imageUploadProperties, providerSchema, type JsonSchema, type ProviderDefaults } from '@nodepool/core';

export const DEFAULTS: ProviderDefaults = { bootTimeoutSeconds: 60, rate: 1, rateUnit: 'seconds-between-calls' };
export const DEFAULT_VOLUME_SIZE_GB = 50;
export const DEFAULT_PORT_CLEANUP_SECONDS = 600;

const text: JsonSchema = { type: 'string', minLength: 1 };
const scalar: JsonSchema = { type: ['string', 'number', 'boolean'] };
const names: JsonSchema = { type: 'array', items: text };

const limit = (what: string): JsonSchema => ({
  type: 'integer',
  description: `Maximum ${what}. Default: unlimited.`,
});

const configDrive: JsonSchema = {
  type: 'boolean',
  description: 'If true, servers get a config drive. Default: the cloud decides.',
};

const properties = (description: string): JsonSchema => ({
  type: ['object', 'null'],
  additionalProperties: scalar,
  description,
});

export const schema: JsonSchema = providerSchema({
  description: 'A provider of the driver "openstack": a project of an OpenStack cloud, in one region.',
  compatible: true,
  defaults: DEFAULTS,
  provider: {
    incompatible: ['image-upload-idle-timeout'],
    required: ['cloud'],
    properties: {
      cloud: { ...text, description: 'Name of the cloud in `clouds.yaml`.' },
      'region-name': {
        type: ['string', 'null'],
        description: 'Region. Default: `region_name` of the cloud, or its only one.',
      },
      ...imageUploadProperties,
      'clean-floating-ips': {
        type: 'boolean',
        default: false,
        description:
          'If true, the driver deletes every unattached floating IP of the project, including those of other programs.',
      },
      'port-cleanup-interval': {
        type: 'integer',
        minimum: 0,
        default: DEFAULT_PORT_CLEANUP_SECONDS,
        description: 'Seconds after which a DOWN port of a nonexistent server is deleted. 0: never.',
      },
      'nodepool-id': { type: ['string', 'null'], description: 'No effect; accepted for old files.' },
    },
  },
  pool: {
    incompatible: ['use-internal-ip'],
    properties: {
      'availability-zones': {
        ...names,
        description: 'Zones; all nodes of a request are in one. Default: all.',
      },
      networks: {
        ...names,
        description: "Names or ids of networks, in this order. Default: the project's only one.",
      },
      'security-groups': {
        ...names,
        description: "Names or ids of security groups. Default: the project's default group.",
      },
      'auto-floating-ip': {
        type: 'boolean',
        default: true,
        description: 'If true, servers without a public address get a floating IP, if the cloud has them.',
      },
      'ignore-provider-quota': {
        type: 'boolean',
        default: false,
        description: "If true, the launcher ignores the cloud's quota, but not the limits of the pool.",
      },
      'max-cores': limit('cores'),
      'max-ram': limit('memory, MiB'),
      'max-volumes': limit('volumes'),
      'max-volume-gb': limit('size of all volumes, GB'),
    },
  },
  label: {
    incompatible: ['flavor-names'],
    rules: [
      { anyOf: [{ required: ['min-ram'] }, { required: ['flavor-name'] }, { required: ['flavor-names'] }] },
      { not: { required: ['flavor-name', 'flavor-names'] } },
    ],
    properties: {
      'min-ram': {
        type: 'integer',
        minimum: 0,
        description: 'Minimum memory, MiB; selects the smallest flavor that has it.',
      },
      'flavor-name': {
        ...text,
        description: 'Name or id of the flavor; with `min-ram`, a part of its name.',
      },
      'flavor-names': {
        ...names,
        minItems: 1,
        uniqueItems: true,
        description: 'Alternatives, the preferred flavor first; the next is used if the cloud has no capacity.',
      },
      'key-name': { type: ['string', 'null'], description: 'Key pair of the user.' },
      'console-log': {
        type: 'boolean',
        default: false,
        description: 'If true, the console output is logged when the login never answers.',
      },
      'boot-from-volume': {
        type: 'boolean',
        default: false,
        description: 'If true, servers boot from a volume, deleted with them.',
      },
      'volume-size': {
        type: 'integer',
        minimum: 1,
        default: DEFAULT_VOLUME_SIZE_GB,
        description: 'Size of that volume, GB.',
      },
      'instance-properties': properties('Metadata of the server; values of at most 255 characters.'),
      'dynamic-instance-properties': properties(
        'Metadata with data of the request, e.g. `{request.tenant_name}`, truncated to 255 bytes.',
      ),
      userdata: { type: ['string', 'null'], description: 'User data of the server.' },
      networks: { ...names, description: "Default: the pool's." },
    },
  },
  diskImage: {
    properties: {
      meta: properties('Properties of the image.'),
      'config-drive': configDrive,
    },
  },
  cloudImage: {
    rules: [{ not: { required: ['image-id', 'image-name'] } }],
    properties: {
      'image-id': { ...text, description: 'Id of the image.' },
      'image-name': { ...text, description: 'Name of the image. Default: `name`.' },
      'config-drive': configDrive,
    },
  },
});

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
  description: `${what} of all nodes of this pool. Default: unlimited.`,
});

const configDrive: JsonSchema = {
  type: 'boolean',
  description: 'If true, servers with this image get a config drive. Default: the cloud decides.',
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
        description: "Region to use. Default: `region_name` of the cloud, or the cloud's only one.",
      },
      ...imageUploadProperties,
      'clean-floating-ips': {
        type: 'boolean',
        default: false,
        description:
          'If true, the driver deletes every unattached floating IP of the project, including those that Nodepool did not create. Floating IPs of deleted nodes are always deleted.',
      },
      'port-cleanup-interval': {
        type: 'integer',
        minimum: 0,
        default: DEFAULT_PORT_CLEANUP_SECONDS,
        description: 'Time after which a DOWN port of a nonexistent server is deleted, in seconds. 0: never.',
      },
      'nodepool-id': { type: ['string', 'null'], description: 'Has no effect; accepted for old files.' },
    },
  },
  pool: {
    incompatible: ['use-internal-ip'],
    properties: {
      'availability-zones': {
        ...names,
        description: 'Zones to use; all nodes of a request are in one. Default: all zones of the cloud.',
      },
      networks: {
        ...names,
        description: "Names or ids of the servers' networks, in this order. Default: the only network of the project.",
      },
      'security-groups': {
        ...names,
        description: "Names or ids of security groups. Default: the project's default group.",
      },
      'auto-floating-ip': {
        type: 'boolean',
        default: true,
        description: 'If true, servers without a public address get a floating IP, if the cloud supports it.',
      },
      'ignore-provider-quota': {
        type: 'boolean',
        default: false,
        description: "If true, the launcher ignores the cloud's quota; the limits of the pool still apply.",
      },
      'max-cores': limit('Cores'),
      'max-ram': limit('Memory, in MiB,'),
      'max-volumes': limit('Volumes'),
      'max-volume-gb': limit('Size of the volumes, in GB,'),
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
        description: 'Minimum memory in MiB; the smallest flavor with that memory is used.',
      },
      'flavor-name': {
        ...text,
        description: 'Name or id of the flavor; together with `min-ram`, a part of its name.',
      },
      'flavor-names': {
        ...names,
        minItems: 1,
        uniqueItems: true,
        description:
          'Alternatives to `flavor-name`, in the order of preference: a node gets the next flavor if the cloud has no capacity for one.',
      },
      'key-name': { type: ['string', 'null'], description: 'Name of a key pair of the user.' },
      'console-log': {
        type: 'boolean',
        default: false,
        description: "If true, the launcher logs the server's console output when the login never answers.",
      },
      'boot-from-volume': {
        type: 'boolean',
        default: false,
        description: 'If true, the server boots from a volume, which is deleted with it.',
      },
      'volume-size': {
        type: 'integer',
        minimum: 1,
        default: DEFAULT_VOLUME_SIZE_GB,
        description: 'Size of that volume in GB.',
      },
      'instance-properties': properties("Added to the server's metadata; values of at most 255 characters."),
      'dynamic-instance-properties': properties(
        "Added to the server's metadata, with data of the request: `{request.id}`, `{request.labels}`, `{request.requestor}`, `{request.requestor_data}`, `{request.relative_priority}`, `{request.event_id}`, `{request.created_time}`, `{request.tenant_name}`. `{request.requestor_data[key]}` selects a value inside of the data. Each can have a width or a number of digits: `{request.id:>20}`, `{request.created_time:.0f}`. `{{` and `}}` stand for braces.",
      ),
      userdata: { type: ['string', 'null'], description: 'User data of the server.' },
      networks: { ...names, description: "Default: the pool's." },
    },
  },
  diskImage: {
    properties: {
      meta: properties('Properties of the image in the cloud.'),
      'config-drive': configDrive,
    },
  },
  cloudImage: {
    rules: [{ not: { required: ['image-id', 'image-name'] } }],
    properties: {
      'image-id': { ...text, description: 'Id of the image in the cloud.' },
      'image-name': { ...text, description: 'Name of the image in the cloud. Default: `name`.' },
      'config-drive': configDrive,
    },
  },
});

/** The schema of a provider. The reference page is generated from it, so every key is documented here only. */

import { imageUploadProperties, providerSchema, type JsonSchema, type ProviderDefaults } from '@nodepool/core';

export const DEFAULTS: ProviderDefaults = { bootTimeoutSeconds: 60, rate: 2, rateUnit: 'calls-per-second' };
export const DEFAULT_VOLUME_TYPE = 'pd-standard';
export const DEFAULT_VOLUME_SIZE_GB = 10;
export const DEFAULT_GUEST_OS_FEATURES: readonly string[] = ['VIRTIO_SCSI_MULTIQUEUE'];
export const DEFAULT_NETWORK = 'global/networks/default';

const text: JsonSchema = { type: 'string', minLength: 1 };
const url: JsonSchema = { type: 'string', pattern: '^https?://[^/?#]+/?$' };
const names: JsonSchema = { type: 'array', items: text, minItems: 1 };

/** Returns the schema of Google Cloud labels. */
const labels = (description: string): JsonSchema => ({
  type: ['object', 'null'],
  propertyNames: { pattern: '^[a-z][a-z0-9_-]{0,62}$' },
  additionalProperties: { type: 'string', pattern: '^[a-z0-9_-]{0,63}$' },
  description,
});

const limit = (what: string): JsonSchema => ({
  type: 'integer',
  description: `Maximum ${what}. Default: unlimited.`,
});

const network: Readonly<Record<string, JsonSchema>> = {
  network: {
    ...text,
    description: 'Name or path of the network. Default: that of `subnetwork`, else `default`.',
  },
  subnetwork: { ...text, description: "Name or path of the subnetwork. Default: the network's." },
};

const provisioningModel: JsonSchema = {
  type: 'string',
  enum: ['standard', 'spot'],
  description: '`spot`: cheaper, but Google Cloud can stop the instances at any time.',
};

const identity: Readonly<Record<string, JsonSchema>> = {
  'service-account': {
    ...text,
    description: 'E-mail address of the service account of instances. Default: none: jobs get no credentials.',
  },
  'provisioning-model': { ...provisioningModel, default: 'standard' },
  preemptible: {
    type: 'boolean',
    default: false,
    description: 'Older form of `spot`: instances also stop after a day.',
  },
};

export const schema: JsonSchema = providerSchema({
  description: 'A provider of the driver "gce": a project of Google Cloud, in one region.',
  compatible: true,
  defaults: DEFAULTS,
  provider: {
    incompatible: [
      'diskimages',
      'credentials-file',
      'api-endpoint',
      'storage-endpoint',
      'storage-bucket',
      'image-name-format',
      'post-upload-hook',
      'image-upload-timeout',
      'image-upload-idle-timeout',
    ],
    required: ['project', 'region', 'zone'],
    properties: {
      project: { ...text, description: 'Id of the project.' },
      region: { ...text, description: 'Region, e.g. `us-central1`.' },
      zone: { ...text, description: 'Zone for pools without `zones`.' },
      'rate-limit': {
        type: ['number', 'string'],
        minimum: 0,
        pattern: '^[0-9]*\\.?[0-9]+([eE][-+]?[0-9]+)?$',
        description: 'Old name of `rate`.',
      },
      'credentials-file': {
        ...text,
        description: 'Credentials file. Default: the application default credentials.',
      },
      'api-endpoint': {
        ...url,
        default: 'https://compute.googleapis.com',
        description: 'URL of Compute Engine, for private endpoints.',
      },
      'storage-endpoint': {
        ...url,
        default: 'https://storage.googleapis.com',
        description: 'URL of Cloud Storage, for private endpoints.',
      },
      'storage-bucket': {
        ...text,
        description: 'Bucket for uploads; required with `diskimages`.',
      },
      ...imageUploadProperties,
    },
  },
  pool: {
    incompatible: [
      'zones',
      'public-ipv4',
      'network',
      'subnetwork',
      'service-account',
      'provisioning-model',
      'preemptible',
      'max-cores',
      'max-ram',
    ],
    properties: {
      zones: {
        ...names,
        description: "Zones of the region; all nodes of a request are in one. Default: the provider's `zone`.",
      },
      'public-ipv4': {
        type: 'boolean',
        default: true,
        description:
          'If true, instances have an external IPv4 address. If false, they need a NAT to reach the internet.',
      },
      ...network,
      ...identity,
      'max-cores': limit('cores of the nodes'),
      'max-ram': limit('memory of the nodes, MiB'),
    },
  },
  label: {
    incompatible: [
      'host-key-checking',
      'diskimage',
      'instance-types',
      'console-log',
      'service-account',
      'provisioning-model',
      'preemptible',
      'accelerators',
      'labels',
    ],
    rules: [{ oneOf: [{ required: ['instance-type'] }, { required: ['instance-types'] }] }],
    properties: {
      'instance-type': { ...text, description: 'Machine type, e.g. `e2-standard-4`.' },
      'instance-types': {
        ...names,
        uniqueItems: true,
        description: 'Alternatives, the preferred type first; the next is used if the zone has no capacity.',
      },
      'volume-type': { ...text, default: DEFAULT_VOLUME_TYPE, description: 'Type of the boot disk.' },
      'volume-size': {
        type: 'integer',
        minimum: 1,
        default: DEFAULT_VOLUME_SIZE_GB,
        description: 'Size of the boot disk, GB.',
      },
      'console-log': {
        type: 'boolean',
        default: false,
        description: 'If true, the end of the serial console is logged when the login never answers.',
      },
      'service-account': { ...text, description: "Default: the pool's." },
      'provisioning-model': { ...provisioningModel, description: "Default: the pool's." },
      preemptible: { type: 'boolean', description: "Default: the pool's." },
      accelerators: {
        type: 'array',
        items: {
          type: 'object',
          required: ['type'],
          additionalProperties: false,
          properties: {
            type: { ...text, description: 'Accelerator type, e.g. `nvidia-tesla-t4`.' },
            count: { type: 'integer', minimum: 1, default: 1, description: 'Number per instance.' },
          },
        },
        description: 'Accelerators. Host maintenance stops such instances.',
      },
      labels: labels('Further labels of the instances.'),
    },
  },
  diskImage: {
    properties: {
      meta: labels('Further labels of the image.'),
      architecture: {
        type: 'string',
        enum: ['x86_64', 'arm64'],
        description: 'Processor architecture. Default: none, i.e. `x86_64`.',
      },
      'guest-os-features': {
        type: 'array',
        items: { type: 'string', pattern: '^[A-Z][A-Z0-9_]*$' },
        default: [...DEFAULT_GUEST_OS_FEATURES],
        description: 'Features of the guest system by their names in Compute Engine, e.g. `UEFI_COMPATIBLE`.',
      },
      username: { ...text, description: "User name for logins. Default: the disk image's." },
      key: { ...text, description: 'Public ssh key of the user.' },
    },
  },
  cloudImage: {
    rules: [
      {
        oneOf: [
          { required: ['image-id'], not: { anyOf: [{ required: ['image-project'] }, { required: ['image-family'] }] } },
          { required: ['image-project', 'image-family'], not: { required: ['image-id'] } },
        ],
      },
    ],
    properties: {
      'image-id': { ...text, description: 'Name (in `project`), path or URL of the image.' },
      'image-project': { ...text, description: 'Project of the image family, e.g. `debian-cloud`.' },
      'image-family': { ...text, description: 'Image family, e.g. `debian-12`; the newest image is used.' },
      key: { ...text, description: 'Public ssh key of the user.' },
    },
  },
});

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
  description: `${what} of all nodes of this pool. Default: unlimited.`,
});

const network: Readonly<Record<string, JsonSchema>> = {
  network: {
    ...text,
    description:
      'Name or path of the network of the instances. Default: that of `subnetwork`, or else the network "default" of the project.',
  },
  subnetwork: { ...text, description: 'Name (in `region`) or path of the subnetwork. Default: that of the network.' },
};

const provisioningModel: JsonSchema = {
  type: 'string',
  enum: ['standard', 'spot'],
  description:
    'Provisioning model of the instances: `spot` ones are cheaper, and Google Cloud can take them away at any time. Replaces `preemptible`.',
};

const identity: Readonly<Record<string, JsonSchema>> = {
  'service-account': {
    ...text,
    description:
      'E-mail address of the service account that instances run as. Default: none, so that jobs get no credentials.',
  },
  'provisioning-model': { ...provisioningModel, default: 'standard' },
  preemptible: {
    type: 'boolean',
    default: false,
    description: 'Whether instances are preemptible: cheaper, and taken away after a day at the latest.',
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
      region: { ...text, description: 'Region whose limits count, e.g. `us-central1`.' },
      zone: { ...text, description: 'Zone of the region; pools can have others, see `zones`.' },
      'rate-limit': {
        type: ['number', 'string'],
        minimum: 0,
        pattern: '^[0-9]*\\.?[0-9]+([eE][-+]?[0-9]+)?$',
        description: 'Old name of `rate`.',
      },
      'credentials-file': {
        ...text,
        description:
          'File with credentials, as Google Cloud hands them out. Default: the application default credentials (`GOOGLE_APPLICATION_CREDENTIALS`, the login of `gcloud`, the service account of the machine).',
      },
      'api-endpoint': {
        ...url,
        default: 'https://compute.googleapis.com',
        description: 'Where Compute Engine is reached, for private endpoints.',
      },
      'storage-endpoint': {
        ...url,
        default: 'https://storage.googleapis.com',
        description: 'Where Cloud Storage is reached, for private endpoints.',
      },
      'storage-bucket': {
        ...text,
        description:
          'Bucket through which disk images are uploaded; needed with `diskimages`. Each file is removed from it once its image is made.',
      },
      ...imageUploadProperties,
    },
  },
  pool: {
    incompatible: [
      'zones',
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
        description:
          "Zones of the region; all nodes of a request are in one. A request for one node goes on to the next zone when one has no room. Default: the provider's `zone`.",
      },
      ...network,
      ...identity,
      'max-cores': limit('Cores'),
      'max-ram': limit('Memory, in MiB,'),
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
        description:
          'Alternatives to `instance-type`, in the order of preference: a node gets the next type if the cloud has no capacity for one.',
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
        description: "Whether the instance's serial console is logged when its login never answers.",
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
            count: { type: 'integer', minimum: 1, default: 1, description: 'Accelerators of an instance.' },
          },
        },
        description:
          'Accelerators (GPUs) that are attached to instances. Such instances are stopped, not migrated, when their host is maintained.',
      },
      labels: labels('Labels that instances get in the cloud, besides those of Nodepool.'),
    },
  },
  diskImage: {
    properties: {
      meta: labels('Labels that the image gets in the cloud, besides those of Nodepool.'),
      architecture: {
        type: 'string',
        enum: ['x86_64', 'arm64'],
        description: 'Processors that the image is built for. Default: not stated, which stands for x86_64.',
      },
      'guest-os-features': {
        type: 'array',
        items: { type: 'string', pattern: '^[A-Z][A-Z0-9_]*$' },
        default: [...DEFAULT_GUEST_OS_FEATURES],
        description:
          'Features of the operating system in the image, as Compute Engine names them, e.g. `UEFI_COMPATIBLE` and `GVNIC`. Replaces the default.',
      },
      username: { ...text, description: 'User to log in as. Default: that of the disk image.' },
      key: { ...text, description: "The user's ssh public key, which instances get as metadata." },
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
      'image-project': { ...text, description: 'Project that has the image family, e.g. `debian-cloud`.' },
      'image-family': { ...text, description: 'Family of which the newest image is used, e.g. `debian-12`.' },
      key: { ...text, description: "The user's ssh public key, which instances get as metadata." },
    },
  },
});

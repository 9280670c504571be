/** The schema of a provider. The reference page is generated from it, so every key is documented here only. */

import { imageUploadProperties, providerSchema, type JsonSchema, type ProviderDefaults } from '@nodepool/core';

export const DEFAULTS: ProviderDefaults = { bootTimeoutSeconds: 180, rate: 2, rateUnit: 'calls-per-second' };
export const DEFAULT_IMAGE_VOLUME_TYPE = 'gp3';
export const DEFAULT_IMAGE_SOURCE_TIMEOUT_S = 1800;

/** Strategies of fleets, by the names of the API. */
export const ALLOCATION_STRATEGIES = [
  'prioritized',
  'price-capacity-optimized',
  'capacity-optimized',
  'diversified',
  'lowest-price',
] as const;

const text: JsonSchema = { type: 'string', minLength: 1 };
const url: JsonSchema = { type: 'string', pattern: '^https?://[^/?#]+/?$' };
const texts: JsonSchema = { type: 'array', items: text, minItems: 1, uniqueItems: true };

const tags = (description: string): JsonSchema => ({
  type: ['object', 'null'],
  additionalProperties: { type: ['string', 'number', 'boolean'] },
  description,
});

const object = (
  description: string,
  required: readonly string[],
  properties: Record<string, JsonSchema>,
): JsonSchema => ({ type: 'object', description, required: [...required], properties, additionalProperties: false });

const exactlyOne = (...keys: string[]): JsonSchema => ({ oneOf: keys.map((key) => ({ required: [key] })) });
const atMostOne = (...keys: string[]): JsonSchema => ({ not: { required: keys } });

const limits = (ofWhat: string, otherwise: string): Record<string, JsonSchema> => ({
  'max-servers': { type: 'integer', description: `Maximum number of nodes of ${ofWhat}. ${otherwise}` },
  'max-cores': { type: 'integer', description: `Maximum number of cores of ${ofWhat}. ${otherwise}` },
  'max-ram': { type: 'integer', description: `Maximum memory of ${ofWhat}, MiB. ${otherwise}` },
  'max-resources': {
    type: ['object', 'null'],
    additionalProperties: { type: 'integer' },
    description: `Limits of ${ofWhat} by the codes of AWS's quotas, e.g. \`{L-1216C47A: 64}\`. ${otherwise}`,
  },
});

const addresses = (defaults: { readonly v4: string; readonly v6: string }): Record<string, JsonSchema> => ({
  'public-ipv4': {
    type: 'boolean',
    description: `If true, instances have a public IPv4 address. Default: ${defaults.v4}.`,
  },
  'public-ipv6': { type: 'boolean', description: `If true, instances have an IPv6 address. Default: ${defaults.v6}.` },
});

const volume: Record<string, JsonSchema> = {
  'volume-type': { ...text, description: "Type of the root volume, e.g. `gp3`. Default: the image's." },
  'volume-size': { type: 'integer', minimum: 1, description: "Size of the root volume, GiB. Default: the image's." },
  iops: { type: 'integer', minimum: 1, description: 'Operations per second of the root volume (`gp3`, `io1`, `io2`).' },
  throughput: { type: 'integer', minimum: 1, description: 'Throughput of the root volume, MiB per second (`gp3`).' },
};

const strategies: JsonSchema = {
  type: 'string',
  enum: [...ALLOCATION_STRATEGIES],
  description:
    'How EC2 chooses among the types and subnets. On-demand fleets know `prioritized` and `lowest-price` only.',
};

const filter: JsonSchema = {
  type: 'object',
  description: 'A filter of DescribeImages.',
  properties: {
    name: { ...text, description: 'Name of the filter, e.g. `name` or `architecture`.' },
    Name: { ...text, description: 'The same as `name`.' },
    values: { ...texts, description: 'Values; one of them must match. `*` and `?` are wildcards.' },
    Values: { ...texts, description: 'The same as `values`.' },
  },
  allOf: [exactlyOne('name', 'Name'), exactlyOne('values', 'Values')],
  additionalProperties: false,
};

export const schema: JsonSchema = providerSchema({
  description: 'A provider of the driver "aws": an AWS account, in one region.',
  compatible: true,
  defaults: DEFAULTS,
  provider: {
    required: ['region-name'],
    incompatible: [
      'endpoint-url',
      'role-arn',
      'web-identity-token-file',
      'interruption-queue',
      'image-source-region',
      'image-source-timeout',
      'subnet-ids',
      'public-ipv4',
      'public-ipv6',
      'use-internal-ip',
      'host-key-checking',
      'image-name-format',
      'image-upload-timeout',
      'image-upload-idle-timeout',
    ],
    rules: [{ dependentRequired: { 'web-identity-token-file': ['role-arn'] } }],
    properties: {
      'region-name': { ...text, description: 'Region, e.g. `us-east-1`.' },
      'profile-name': {
        ...text,
        description: "Profile of AWS's configuration files. Default: the usual credentials of AWS's libraries.",
      },
      'role-arn': { ...text, description: 'ARN of a role that the launcher assumes.' },
      'web-identity-token-file': {
        ...text,
        description: 'File with the token of a web identity, with which `role-arn` is assumed.',
      },
      'endpoint-url': {
        ...url,
        description: 'Address of all services, e.g. of a simulated AWS. Default: those of AWS.',
      },
      'interruption-queue': {
        ...text,
        description:
          'URL of an SQS queue with the events of EventBridge about spot interruptions. Each provider needs a queue of its own. Default: interruptions are noticed in the list of instances.',
      },
      ...limits('each pool', 'Default: unlimited.'),
      ...addresses({ v4: 'true', v6: 'false' }),
      'subnet-ids': { ...texts, description: 'Default of the pools: ids of subnets, in the order of preference.' },
      'use-internal-ip': {
        type: 'boolean',
        default: false,
        description: 'If true, nodes are reached at their private addresses.',
      },
      'host-key-checking': {
        type: 'boolean',
        default: true,
        description: 'If true, a node is ready only when it accepts logins and its host keys are known.',
      },
      'object-storage': object('Where images are stored until they are imported.', ['bucket-name'], {
        'bucket-name': { ...text, description: 'Name of an S3 bucket in the region.' },
      }),
      'image-format': {
        type: 'string',
        enum: ['raw', 'ova', 'vhd', 'vhdx', 'vmdk'],
        default: 'raw',
        description: 'Format in which images are uploaded.',
      },
      'image-import-timeout': {
        type: 'number',
        exclusiveMinimum: 0,
        description: 'Maximum duration of an import, in seconds. Default: that of the upload.',
      },
      'image-source-region': {
        ...text,
        description:
          'Region from which an image is copied if a provider of this installation has uploaded the same build there; it is uploaded otherwise.',
      },
      'image-source-timeout': {
        type: 'number',
        minimum: 0,
        default: DEFAULT_IMAGE_SOURCE_TIMEOUT_S,
        description:
          'Maximum time to wait for the image in `image-source-region`, in seconds, since a builder uploads a new build to all regions at the same time. 0: the image is uploaded at once if it is not there.',
      },
      ...imageUploadProperties,
    },
  },
  pool: {
    incompatible: ['security-group-ids', 'subnet-ids', 'use-internal-ip'],
    rules: [atMostOne('subnet-id', 'subnet-ids'), atMostOne('security-group-id', 'security-group-ids')],
    properties: {
      'availability-zone': { ...text, description: 'Zone of the nodes. Default: those of the subnets, or any.' },
      'security-group-id': { ...text, description: 'Id of the security group. Default: that of the network.' },
      'security-group-ids': { ...texts, description: 'Ids of several security groups.' },
      'subnet-id': { ...text, description: "Id of the subnet. Default: the network's default subnet." },
      'subnet-ids': {
        ...texts,
        description:
          'Ids of several subnets, in the order of preference. If a zone has no capacity, nodes are launched in the next one.',
      },
      'public-ip-address': { type: 'boolean', description: 'Old name of `public-ipv4`; takes precedence.' },
      ...addresses({ v4: "the provider's", v6: "the provider's" }),
      ...limits('this pool', "Default: the provider's."),
    },
  },
  label: {
    incompatible: ['host-key-checking', 'instance-types', 'kms-key-id'],
    required: ['key-name'],
    rules: [exactlyOne('instance-type', 'instance-types', 'fleet')],
    properties: {
      'key-name': { ...text, description: 'Name of the key pair for logins.' },
      'instance-type': { ...text, description: 'Type of the instances, e.g. `m7i.large`.' },
      'instance-types': {
        ...texts,
        description:
          'Alternative types in the order of preference: a node gets the next one if EC2 has no capacity for one.',
      },
      fleet: object(
        'Lets EC2 choose the type: the node is launched by a fleet of one instance.',
        ['instance-types', 'allocation-strategy'],
        {
          'instance-types': { ...texts, description: 'Types, the preferred one first.' },
          'allocation-strategy': strategies,
        },
      ),
      'use-spot': {
        enum: [true, false, 'prefer'],
        default: false,
        description:
          'If true, nodes are spot instances: cheaper, but AWS can take them away with a notice of two minutes. `prefer`: spot instances, or on-demand ones if there is no capacity for spot.',
      },
      'ebs-optimized': { type: 'boolean', default: false, description: 'If true, volumes have dedicated bandwidth.' },
      ...volume,
      'kms-key-id': {
        ...text,
        description: "Id, alias or ARN of the KMS key that encrypts the root volume. Default: the image's.",
      },
      userdata: { type: 'string', description: 'User data, e.g. for cloud-init; at most 16 KiB.' },
      'iam-instance-profile': {
        ...object('Instance profile, whose role programs on the node can use.', [], {
          name: { ...text, description: 'Name of the profile.' },
          arn: { ...text, description: 'ARN of the profile.' },
        }),
        allOf: [exactlyOne('name', 'arn')],
      },
      tags: tags('Tags of the instance, its volumes and its interface.'),
      'dynamic-tags': tags(
        'Tags with data of the request: `{request.id}`, `{request.labels}`, `{request.requestor}`, `{request.requestor_data}`, `{request.relative_priority}`, `{request.event_id}`, `{request.created_time}`, `{request.tenant_name}`. `{request.requestor_data[key]}` selects a value inside of the data. Each can have a format of Python: `{request.created_time:.0f}`. `{{` and `}}` stand for braces.',
      ),
      imdsv2: {
        enum: ['required', 'optional', null],
        description: "`required`: the metadata of the instance can be read with a token only. Default: the image's.",
      },
      'dedicated-host': {
        type: 'boolean',
        default: false,
        description:
          'If true, each node has a host of its own, which is allocated and released with it. Needs `availability-zone`.',
      },
    },
  },
  diskImage: {
    properties: {
      username: { type: 'string', description: 'User name for logins. Default: `username` of the disk image.' },
      'python-path': {
        type: 'string',
        description: 'Python interpreter on the node. Default: that of the disk image.',
      },
      'shell-type': { type: 'string', description: 'Shell on the node, by its name in Ansible.' },
      architecture: { ...text, default: 'x86_64', description: 'Architecture of the image, e.g. `arm64`.' },
      'ena-support': { type: 'boolean', default: true, description: 'If true, the image has the driver of ENA.' },
      ...volume,
      'volume-type': { ...text, default: DEFAULT_IMAGE_VOLUME_TYPE, description: 'Type of the root volume.' },
      'volume-size': {
        type: 'integer',
        minimum: 1,
        description: "Size of the root volume, GiB. Default: the image's.",
      },
      'import-method': {
        type: 'string',
        enum: ['snapshot', 'ebs-direct', 'image'],
        default: 'snapshot',
        description:
          '`snapshot` and `image` import an object of the bucket; `ebs-direct` writes the snapshot itself, and needs neither a bucket nor the role `vmimport`.',
      },
      'imds-support': {
        enum: ['v2.0', null],
        description: '`v2.0`: instances require tokens for their metadata. Not with the import method `image`.',
      },
      tags: tags('Tags of the image and its snapshots.'),
    },
  },
  cloudImage: {
    required: ['username'],
    incompatible: ['owners'],
    rules: [exactlyOne('image-id', 'image-filters')],
    properties: {
      'image-id': { ...text, description: 'Id of the image.' },
      'image-filters': {
        type: 'array',
        items: filter,
        minItems: 1,
        description: 'Filters of DescribeImages; the newest image that passes all of them is used.',
      },
      owners: {
        ...texts,
        description:
          "With `image-filters`: account ids of the owners, `self`, `amazon` or `aws-marketplace`. Without it, an image of any account can match, also a stranger's.",
      },
    },
  },
});

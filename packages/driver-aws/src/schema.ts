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

const limits: Record<string, JsonSchema> = {
  'max-servers': { type: 'integer', description: 'Maximum nodes of each pool. Default: unlimited.' },
  'max-cores': { type: 'integer', description: 'Maximum cores of each pool. Default: unlimited.' },
  'max-ram': { type: 'integer', description: 'Maximum memory of each pool, MiB. Default: unlimited.' },
  'max-resources': {
    type: ['object', 'null'],
    additionalProperties: { type: 'integer' },
    description: "Limits of each pool by the codes of AWS's quotas, e.g. `{L-1216C47A: 64}`. Default: unlimited.",
  },
};

const addresses: Record<string, JsonSchema> = {
  'public-ipv4': { type: 'boolean', description: 'If true, instances have a public IPv4 address. Default: true.' },
  'public-ipv6': { type: 'boolean', description: 'If true, instances have an IPv6 address. Default: false.' },
};

/** Keys of a pool that override those of the provider. */
const inherited = Object.fromEntries(
  Object.entries({ ...addresses, ...limits }).map(([key, property]) => [
    key,
    { ...property, description: "Default: the provider's." },
  ]),
);

const volume: Record<string, JsonSchema> = {
  'volume-type': { ...text, description: "Type of the root volume, e.g. `gp3`. Default: the image's." },
  'volume-size': { type: 'integer', minimum: 1, description: "Size of the root volume, GiB. Default: the image's." },
  iops: { type: 'integer', minimum: 1, description: 'Operations per second (`gp3`, `io1`, `io2`).' },
  throughput: { type: 'integer', minimum: 1, description: 'MiB per second (`gp3`).' },
};

const strategies: JsonSchema = {
  type: 'string',
  enum: [...ALLOCATION_STRATEGIES],
  description: 'How EC2 chooses types and subnets. On-demand fleets know only `prioritized` and `lowest-price`.',
};

const filter: JsonSchema = {
  type: 'object',
  description: 'A filter of DescribeImages.',
  properties: {
    name: { ...text, description: 'Name of the filter, e.g. `name` or `architecture`.' },
    Name: { ...text, description: 'The same as `name`.' },
    values: { ...texts, description: 'Accepted values. `*` and `?` are wildcards.' },
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
        description: "Profile of AWS's configuration files. Default: the usual credentials.",
      },
      'role-arn': { ...text, description: 'ARN of a role that the launcher assumes.' },
      'web-identity-token-file': {
        ...text,
        description: 'Token file of a web identity that assumes `role-arn`.',
      },
      'endpoint-url': {
        ...url,
        description: 'Address of all services, e.g. of a simulated AWS.',
      },
      'interruption-queue': {
        ...text,
        description: 'URL of an SQS queue with the spot interruptions of this provider alone.',
      },
      ...limits,
      ...addresses,
      'subnet-ids': { ...texts, description: 'Value for pools that set none.' },
      'use-internal-ip': {
        type: 'boolean',
        default: false,
        description: 'Value for pools that set none.',
      },
      'host-key-checking': {
        type: 'boolean',
        default: true,
        description: 'Value for pools that set none.',
      },
      'object-storage': object('Storage of images until they are imported.', ['bucket-name'], {
        'bucket-name': { ...text, description: 'Name of an S3 bucket in the region.' },
      }),
      'image-format': {
        type: 'string',
        enum: ['raw', 'ova', 'vhd', 'vhdx', 'vmdk'],
        default: 'raw',
        description: 'Format of uploaded images.',
      },
      'image-import-timeout': {
        type: 'number',
        exclusiveMinimum: 0,
        description: 'Maximum seconds of an import. Default: `image-upload-timeout`.',
      },
      'image-source-region': {
        ...text,
        description: 'Region from which images are copied if another provider uploads them there.',
      },
      'image-source-timeout': {
        type: 'number',
        minimum: 0,
        default: DEFAULT_IMAGE_SOURCE_TIMEOUT_S,
        description:
          'Maximum seconds to wait for the image in `image-source-region`, before it is uploaded. 0: no wait.',
      },
      ...imageUploadProperties,
    },
  },
  pool: {
    incompatible: ['security-group-ids', 'subnet-ids', 'use-internal-ip'],
    rules: [atMostOne('subnet-id', 'subnet-ids'), atMostOne('security-group-id', 'security-group-ids')],
    properties: {
      'availability-zone': { ...text, description: 'Zone of the nodes. Default: those of the subnets, else any.' },
      'security-group-id': { ...text, description: "Id of the security group. Default: the network's." },
      'security-group-ids': { ...texts, description: 'Ids of several security groups.' },
      'subnet-id': { ...text, description: "Id of the subnet. Default: the network's." },
      'subnet-ids': {
        ...texts,
        description: 'Ids of several subnets, the preferred one first. Their zones are tried in turn for capacity.',
      },
      'public-ip-address': { type: 'boolean', description: 'Old name of `public-ipv4`, which it overrides.' },
      ...inherited,
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
        description: 'Alternatives, the preferred type first; the next is used if EC2 has no capacity.',
      },
      fleet: object(
        'Launches each node as a fleet of one instance, whose type EC2 chooses.',
        ['instance-types', 'allocation-strategy'],
        {
          'instance-types': { ...texts, description: 'Types, the preferred first.' },
          'allocation-strategy': strategies,
        },
      ),
      'use-spot': {
        enum: [true, false, 'prefer'],
        default: false,
        description: 'If true, nodes are spot instances. `prefer`: on-demand ones if spot has no capacity.',
      },
      'ebs-optimized': { type: 'boolean', default: false, description: 'If true, volumes have dedicated bandwidth.' },
      ...volume,
      'kms-key-id': {
        ...text,
        description: "Id, alias or ARN of the root volume's KMS key. Default: the image's.",
      },
      userdata: { type: 'string', description: 'User data for cloud-init, at most 16 KiB.' },
      'iam-instance-profile': {
        ...object('Profile whose role programs on the node can use.', [], {
          name: { ...text, description: 'Name of the profile.' },
          arn: { ...text, description: 'ARN of the profile.' },
        }),
        allOf: [exactlyOne('name', 'arn')],
      },
      tags: tags('Tags of the instance, its volumes and its interface.'),
      'dynamic-tags': tags('Tags with data of the request, e.g. `{request.tenant_name}`.'),
      imdsv2: {
        enum: ['required', 'optional', null],
        description: "`required`: instance metadata needs a token. Default: the image's.",
      },
      'dedicated-host': {
        type: 'boolean',
        default: false,
        description: 'If true, each node has a dedicated host. Needs `availability-zone`.',
      },
    },
  },
  diskImage: {
    properties: {
      username: { type: 'string', description: "User name for logins. Default: the disk image's." },
      'python-path': {
        type: 'string',
        description: "Python interpreter. Default: the disk image's.",
      },
      'shell-type': { type: 'string', description: 'Shell, by its name in Ansible.' },
      architecture: { ...text, default: 'x86_64', description: 'Architecture of the image, e.g. `arm64`.' },
      'ena-support': { type: 'boolean', default: true, description: 'If true, the image has the ENA driver.' },
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
        description: '`snapshot`, `image`: import from the bucket. `ebs-direct`: without a bucket.',
      },
      'imds-support': {
        enum: ['v2.0', null],
        description: '`v2.0`: instance metadata needs a token. Not with `import-method: image`.',
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
        description: 'Filters of DescribeImages; the newest image that passes all is used.',
      },
      owners: {
        ...texts,
        description:
          "Owners for `image-filters`: account ids, `self`, `amazon`, `aws-marketplace`. Default: any account, also a stranger's.",
      },
    },
  },
});

/** The schema of a provider. The reference page is generated from it, so every key is documented here only. */

import { imageUploadProperties, providerSchema, type JsonSchema, type ProviderDefaults } from '@nodepool/core';

export const DEFAULTS: ProviderDefaults = { bootTimeoutSeconds: 120, rate: 1, rateUnit: 'calls-per-second' };

const text: JsonSchema = { type: 'string', minLength: 1 };

const texts = (description: string): JsonSchema => ({
  type: ['object', 'null'],
  additionalProperties: { type: ['string', 'number', 'boolean'] },
  description,
});

const object = (
  description: string,
  required: readonly string[],
  properties: Record<string, JsonSchema>,
): JsonSchema => ({
  type: 'object',
  description,
  required: [...required],
  properties,
  additionalProperties: false,
});

const addresses: Record<string, JsonSchema> = {
  ipv4: {
    type: 'boolean',
    description: 'Has no effect: every interface in Azure has a private IPv4 address.',
  },
  ipv6: {
    type: 'boolean',
    description: 'If true, VMs have a private IPv6 address in addition to IPv4. Default: false.',
  },
  'public-ipv4': {
    type: 'boolean',
    description: 'If true, VMs have a public IPv4 address. Default: true.',
  },
  'public-ipv6': {
    type: 'boolean',
    description: 'If true, VMs have a public IPv6 address; implies `ipv6`. Default: false.',
  },
};

const inherited = Object.fromEntries(
  Object.entries(addresses).map(([key, schema]) => [key, { ...schema, description: "Default: the provider's." }]),
);

const login: Record<string, JsonSchema> = {
  key: {
    ...text,
    description:
      'Public ssh key of the user; by default `zuul-public-key` of the provider, unless there is a password.',
  },
  password: { ...text, description: 'Password of the user.' },
  'generate-password': {
    type: 'boolean',
    default: false,
    description: 'If true, each VM gets a random password, which Windows needs. The password is not stored.',
  },
};

const galleryImage = (kind: string): JsonSchema =>
  object(`An image of a ${kind} gallery.`, ['gallery-name', 'name'], {
    'gallery-name': { ...text, description: `Public name of the gallery.` },
    name: { ...text, description: 'Name of the image definition.' },
    version: { ...text, description: 'Version. Default: the latest one.' },
  });

const hardwareProfile = object('Hardware of the VM.', ['vm-size'], {
  'vm-size': { ...text, description: 'Size, e.g. `Standard_B1ls`.' },
});

const SOURCES = ['image-reference', 'image-id', 'image-filter', 'community-gallery-image', 'shared-gallery-image'];

export const schema: JsonSchema = providerSchema({
  description: 'A provider of the driver "azure": a resource group of an Azure subscription, in one location.',
  compatible: true,
  defaults: DEFAULTS,
  provider: {
    incompatible: ['image-name-format', 'image-upload-timeout', 'image-upload-idle-timeout'],
    required: ['location', 'resource-group', 'resource-group-location'],
    rules: [{ oneOf: [{ required: ['subnet-id'] }, { required: ['network'] }] }],
    properties: {
      'auth-path': {
        ...text,
        description:
          'JSON file with the credentials. Default: the value of the environment variable AZURE_AUTH_LOCATION.',
      },
      location: { ...text, description: 'Region of the VMs, e.g. `centralus`.' },
      'resource-group': {
        ...text,
        description: 'Resource group of all resources. The driver creates it if it is missing.',
      },
      'resource-group-location': { ...text, description: 'Region of the resource group.' },
      'subnet-id': { ...text, description: 'Full resource id of the subnet of the VMs.' },
      network: {
        description:
          'Network of the VMs: its name if it is in the resource group of the provider, else an object with both names.',
        anyOf: [
          text,
          object('A network, possibly of another resource group.', ['network'], {
            'resource-group': { ...text, description: "Default: the provider's." },
            network: { ...text, description: 'Name of the network.' },
            subnet: { ...text, default: 'default', description: 'Name of the subnet.' },
          }),
        ],
      },
      ...addresses,
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
      'zuul-public-key': { ...text, description: 'Public ssh key for the user of every image without a `key`.' },
      ...imageUploadProperties,
    },
  },
  pool: {
    incompatible: ['zones'],
    required: ['max-servers'],
    properties: {
      ...inherited,
      zones: {
        type: 'array',
        items: { type: 'string', pattern: '^[1-9][0-9]?$' },
        description:
          'Availability zones of the location, e.g. `["1", "2"]`; all nodes of a request are in one. Default: VMs without a zone.',
      },
    },
  },
  label: {
    incompatible: [
      'host-key-checking',
      'hardware-profiles',
      'volume-type',
      'ephemeral-os-disk',
      'spot',
      'spot-max-price',
      'security-profile',
      'identities',
    ],
    rules: [{ oneOf: [{ required: ['hardware-profile'] }, { required: ['hardware-profiles'] }] }],
    properties: {
      'hardware-profile': hardwareProfile,
      'hardware-profiles': {
        type: 'array',
        items: hardwareProfile,
        minItems: 1,
        description:
          'Alternatives to `hardware-profile`, in the order of preference: a node gets the next size if the cloud has no capacity for one.',
      },
      tags: texts('Tags of the VM and of the resources that are created with it.'),
      'dynamic-tags': texts(
        'Tags with data of the request: `{request.id}`, `{request.labels}`, `{request.requestor}`, `{request.requestor_data}`, `{request.relative_priority}`, `{request.event_id}`, `{request.created_time}`, `{request.tenant_name}`. `{request.requestor_data[key]}` selects a value inside of the data. Each can have a width or a number of digits: `{request.id:>20}`, `{request.created_time:.0f}`. `{{` and `}}` stand for braces.',
      ),
      'user-data': { type: 'string', description: 'User data, which the VM can read at any time.' },
      'custom-data': {
        type: 'string',
        description: 'Custom data, which the VM gets at its first boot, e.g. for cloud-init.',
      },
      'volume-size': { type: 'integer', minimum: 1, description: "Size of the disk, GB. Default: the image's." },
      'volume-type': {
        type: 'string',
        enum: ['Standard_LRS', 'StandardSSD_LRS', 'StandardSSD_ZRS', 'Premium_LRS', 'Premium_ZRS'],
        description: "SKU of the disk. Default: Azure's choice for the VM size.",
      },
      'ephemeral-os-disk': {
        type: 'boolean',
        default: false,
        description: 'If true, the disk is on the host of the VM: faster and free, for VM sizes with enough space.',
      },
      spot: {
        type: 'boolean',
        default: false,
        description: 'If true, the VMs are spot VMs: cheaper, but deleted when Azure needs their capacity.',
      },
      'spot-max-price': {
        type: 'number',
        exclusiveMinimum: 0,
        description: 'Maximum price of a spot VM in US dollars per hour. Default: the price of a regular VM.',
      },
      'security-profile': object(
        'Trusted launch; needs an image of Generation 2 that supports it.',
        ['security-type'],
        {
          'security-type': { type: 'string', enum: ['TrustedLaunch'], description: 'Security type of the VM.' },
          'secure-boot': { type: 'boolean', default: true, description: 'If true, only signed systems boot.' },
          vtpm: { type: 'boolean', default: true, description: 'If true, the VM has a virtual TPM.' },
        },
      ),
      identities: {
        type: 'array',
        items: text,
        description: 'Full resource ids of managed identities that programs on the VM can use.',
      },
    },
  },
  diskImage: {
    incompatible: ['hyper-v-generation', 'zone-resilient'],
    properties: {
      username: { type: 'string', description: 'User name for logins. Default: `username` of the disk image.' },
      'python-path': {
        type: 'string',
        description: 'Python interpreter on the node. Default: that of the disk image.',
      },
      'shell-type': { type: 'string', description: 'Shell on the node, by its name in Ansible.' },
      ...login,
      'hyper-v-generation': {
        type: 'string',
        enum: ['V1', 'V2'],
        default: 'V2',
        description: 'VM generation of the image: `V2` boots with UEFI, `V1` with a BIOS.',
      },
      'zone-resilient': {
        type: 'boolean',
        default: true,
        description:
          'If true, the image is stored in all zones of the location. Use false for a location without zones.',
      },
      tags: texts('Tags of the image in the cloud.'),
    },
  },
  cloudImage: {
    required: ['username'],
    rules: [{ oneOf: SOURCES.map((key) => ({ required: [key] })) }],
    properties: {
      ...login,
      'image-reference': object('An image of the marketplace.', ['sku', 'publisher', 'version', 'offer'], {
        sku: { ...text, description: 'SKU.' },
        publisher: { ...text, description: 'Publisher.' },
        version: { ...text, description: 'Version, or `latest`.' },
        offer: { ...text, description: 'Offer.' },
      }),
      'image-id': { ...text, description: 'Full resource id of an image.' },
      'image-filter': object('Selects the matching image of the resource group that is last by name.', [], {
        name: { ...text, description: 'Name of the image.' },
        location: { ...text, description: 'Region of the image.' },
        tags: texts('Tags that the image must have.'),
      }),
      'community-gallery-image': galleryImage('community'),
      'shared-gallery-image': galleryImage('shared'),
    },
  },
});

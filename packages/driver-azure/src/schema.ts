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
    description: 'No effect: Azure gives every VM a private IPv4 address.',
  },
  ipv6: {
    type: 'boolean',
    description: 'If true, VMs also have a private IPv6 address. Default: false.',
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
    description: 'Public ssh key of the user. Default: `zuul-public-key`, unless there is a password.',
  },
  password: { ...text, description: 'Password of the user.' },
  'generate-password': {
    type: 'boolean',
    default: false,
    description: 'If true, each VM gets a random password, which is not stored. Windows needs one.',
  },
};

const galleryImage = (kind: string): JsonSchema =>
  object(`An image of a ${kind} gallery.`, ['gallery-name', 'name'], {
    'gallery-name': { ...text, description: 'Public name of the gallery.' },
    name: { ...text, description: 'Name of the image definition.' },
    version: { ...text, description: 'Version. Default: latest.' },
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
        description: 'JSON file with the credentials. Default: `$AZURE_AUTH_LOCATION`.',
      },
      location: { ...text, description: 'Region of the VMs, e.g. `centralus`.' },
      'resource-group': {
        ...text,
        description: 'Resource group of all resources, created if missing.',
      },
      'resource-group-location': { ...text, description: 'Region of the resource group.' },
      'subnet-id': { ...text, description: 'Full resource id of the subnet.' },
      network: {
        description: 'Name of a network in the resource group, or a mapping for another group.',
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
        description: 'Value for pools that set none.',
      },
      'host-key-checking': {
        type: 'boolean',
        default: true,
        description: 'Value for pools that set none.',
      },
      'zuul-public-key': { ...text, description: 'Default of `key` of the images.' },
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
        description: 'Availability zones, e.g. `["1", "2"]`; all nodes of a request are in one. Default: none.',
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
        description: 'Alternatives, the preferred size first; the next is used if Azure has no capacity.',
      },
      tags: texts('Tags of the VM and its parts.'),
      'dynamic-tags': texts('Tags with data of the request, e.g. `{request.tenant_name}`.'),
      'user-data': { type: 'string', description: 'User data, readable on the VM at any time.' },
      'custom-data': {
        type: 'string',
        description: 'Custom data for the first boot, e.g. for cloud-init.',
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
        description:
          "If true, the disk is on the VM's host. The size needs a cache or temporary disk as large as the image.",
      },
      spot: {
        type: 'boolean',
        default: false,
        description: 'If true, VMs are spot VMs, with a quota of their own.',
      },
      'spot-max-price': {
        type: 'number',
        exclusiveMinimum: 0,
        description: 'Maximum US dollars per hour. Default: the regular price.',
      },
      'security-profile': object('Trusted launch; uploaded images do not support it.', ['security-type'], {
        'security-type': { type: 'string', enum: ['TrustedLaunch'], description: 'Security type of the VM.' },
        'secure-boot': { type: 'boolean', default: true, description: 'If true, only signed systems boot.' },
        vtpm: { type: 'boolean', default: true, description: 'If true, the VM has a virtual TPM.' },
      }),
      identities: {
        type: 'array',
        items: text,
        description: 'Resource ids of managed identities for programs on the VM.',
      },
    },
  },
  diskImage: {
    incompatible: ['hyper-v-generation', 'zone-resilient'],
    properties: {
      username: { type: 'string', description: "User name for logins. Default: the disk image's." },
      'python-path': {
        type: 'string',
        description: "Python interpreter. Default: the disk image's.",
      },
      'shell-type': { type: 'string', description: 'Shell, by its name in Ansible.' },
      ...login,
      'hyper-v-generation': {
        type: 'string',
        enum: ['V1', 'V2'],
        default: 'V2',
        description: '`V2` boots with UEFI, `V1` with a BIOS.',
      },
      'zone-resilient': {
        type: 'boolean',
        default: true,
        description: 'If true, the image is stored in all zones. False for a location without zones.',
      },
      tags: texts('Tags of the image.'),
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
      'image-filter': object('The matching image of the resource group that is last by name.', [], {
        name: { ...text, description: 'Name of the image.' },
        location: { ...text, description: 'Region of the image.' },
        tags: texts('Tags that the image must have.'),
      }),
      'community-gallery-image': galleryImage('community'),
      'shared-gallery-image': galleryImage('shared'),
    },
  },
});

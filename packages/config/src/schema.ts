/** Schemas of `nodepool.yaml`, without drivers' parts, and of the secure file. The reference page is made from them. */

import {
  type JsonSchema,
  DEFAULT_DRIVER,
  DEFAULT_PRIORITY,
  imageTestProperties,
  type JsonObject,
} from '@nodepool/core';
import { readySchema } from './ready/schema.js';
import { fairSharesSchema } from './fair-shares.js';
import { PATH_NAME_PATTERN } from './schema-words.js';
import { DEFAULT_MAX_IDLE_SECONDS, DEFAULT_MAX_WAIT_MS } from './types.js';

/** Returns the schema of a list that may be empty (`labels:`), as in existing files. */
function listOf(items: JsonObject, description: string): JsonObject {
  return { type: ['array', 'null'], items, description };
}

function mapping(properties: JsonObject, required: readonly string[], description: string): JsonObject {
  return { type: 'object', properties, required, additionalProperties: false, description };
}

const name: JsonObject = { type: 'string', minLength: 1 };
/** Names that are part of ZooKeeper paths and, for images, of file names. */
const pathName: JsonObject = { ...name, pattern: PATH_NAME_PATTERN };
const strings: JsonObject = { type: ['array', 'null'], items: { type: 'string' } };
/** An empty string or null counts as absent, as in the Python Nodepool. */
const optionalString: JsonObject = { type: ['string', 'null'] };
const optionalSeconds: JsonObject = { type: ['number', 'null'], minimum: 0 };
const port: JsonObject = { type: ['integer', 'string', 'null'], minimum: 1, maximum: 65_535, pattern: '^[0-9]+$' };

const zookeeperServers = listOf(
  mapping(
    {
      host: { ...optionalString, default: 'localhost', description: 'Name or address.' },
      port: { ...port, default: 2281, description: 'Port.' },
      chroot: {
        ...optionalString,
        description: 'Root path of all data; the same for all servers that have one.',
      },
    },
    [],
    'One server of the ensemble.',
  ),
  'The ZooKeeper ensemble.',
);

const zookeeperTls: JsonObject = {
  type: ['object', 'null'],
  properties: {
    cert: { ...name, description: 'File with the client certificate (PEM).' },
    key: { ...name, description: 'File with its key (PEM).' },
    ca: { ...name, description: 'File with the authorities that sign servers (PEM).' },
    'verify-hostname': {
      type: 'boolean',
      default: true,
      compatible: false,
      description:
        'If true, the certificate of a server must name its `host`. `false`, for a host that is an address or an alias, accepts any certificate of these authorities, as the Python Nodepool does.',
    },
  },
  required: ['cert', 'key', 'ca'],
  additionalProperties: false,
  description: 'TLS with a client certificate.',
};

const envVars: JsonObject = {
  type: ['object', 'null'],
  additionalProperties: { type: 'string' },
  description: 'Environment variables of the build.',
};

const bootTest: JsonObject = {
  type: ['boolean', 'object', 'null'],
  compatible: false,
  properties: {
    timeout: {
      type: 'number',
      exclusiveMinimum: 0,
      default: 300,
      description: 'Seconds until the login must answer; several times more without KVM.',
    },
    memory: { type: 'integer', minimum: 64, default: 1024, description: 'Memory, MiB.' },
    cpus: { type: 'integer', minimum: 1, default: 1, description: 'Processors.' },
    kvm: {
      type: 'boolean',
      default: true,
      description: '`false`: emulation, even if the host has KVM.',
    },
    command: { ...name, description: 'Command that its shell must run with status 0.' },
    'command-timeout': {
      type: 'number',
      exclusiveMinimum: 0,
      default: 300,
      description: 'Seconds for the command.',
    },
  },
  additionalProperties: false,
  description:
    'The builder boots each build under QEMU, and uploads it only if its login answers. `true`: with the defaults.',
};

const imageSource: JsonObject = {
  type: ['object', 'null'],
  compatible: false,
  properties: {
    url: {
      ...name,
      pattern: '^https?://',
      description: 'Address of the file (http or https); may be compressed (`.gz`, `.xz`, `.zst`, `.bz2`).',
    },
    path: {
      ...name,
      pattern: '^/',
      description: 'Absolute path of the file. A new file renamed to it causes a build within a minute.',
    },
    sha256: {
      ...name,
      pattern: '^(?:[0-9a-fA-F]{64}|https?://.*)$',
      description: 'SHA-256 of the file, or the https address of a file with it, as `sha256sum` writes it.',
    },
    'max-size': {
      type: 'number',
      exclusiveMinimum: 0,
      default: 100,
      description: 'Maximum size of the file, and of its disk, in GiB.',
    },
    format: {
      ...name,
      description: 'Format of the image, e.g. `qcow2`. Default: the extension of the file.',
    },
  },
  oneOf: [{ required: ['url', 'sha256'] }, { required: ['path'] }],
  additionalProperties: false,
  description: 'A file with the image, instead of a build with `dib-cmd`.',
};

const diskImage = mapping(
  {
    name: { ...pathName, description: 'Name of the image.' },
    abstract: {
      type: 'boolean',
      default: false,
      description: 'If true, the image is only a parent, and not built.',
    },
    parent: {
      ...optionalString,
      description: 'Image to inherit from: `elements` are appended, `env-vars` merged, other keys overridden.',
    },
    formats: { ...strings, description: 'Formats in addition to those that the providers need.' },
    'keep-formats': {
      ...strings,
      description: 'Formats that `delete-after-upload` keeps.',
    },
    'delete-after-upload': {
      type: ['boolean', 'null'],
      default: false,
      description: 'If true, files are deleted once every provider has the image.',
    },
    'rebuild-age': {
      ...optionalSeconds,
      default: 86_400,
      description: 'Seconds after which the image is built again.',
    },
    release: {
      type: ['string', 'number', 'null'],
      description: 'Release of the distribution (`DIB_RELEASE`), passed as written.',
    },
    'build-timeout': { ...optionalSeconds, default: 28_800, description: 'Maximum seconds of a build.' },
    elements: { ...strings, description: 'Elements of diskimage-builder.' },
    'env-vars': envVars,
    pause: { type: ['boolean', 'null'], default: false, description: 'If true, the image is not built.' },
    username: { ...optionalString, default: 'zuul', description: 'User name for logins.' },
    'python-path': {
      ...optionalString,
      default: 'auto',
      description: 'Python interpreter on the node; `auto`: Ansible finds it.',
    },
    'shell-type': { ...optionalString, description: 'Shell on the node, as Ansible names it.' },
    'dib-cmd': {
      ...optionalString,
      default: 'disk-image-create',
      description: "Command that builds the image; `%p` is the folder of the builder's package.",
    },
    metadata: {
      type: ['object', 'null'],
      additionalProperties: { type: ['string', 'number', 'boolean', 'null'] },
      description: 'Properties of the image in every cloud.',
    },
    source: imageSource,
    'boot-test': bootTest,
    ...imageTestProperties,
  },
  ['name'],
  'Images that the builder builds.',
);

const label = mapping(
  {
    name: { ...name, description: 'Name in requests.' },
    'min-ready': {
      type: 'integer',
      minimum: -1,
      default: 0,
      description: 'Nodes to keep ready. -1 disables the label.',
    },
    ready: readySchema,
    'max-ready-age': {
      type: ['number', 'null'],
      default: 0,
      description: 'Seconds after which a ready node is replaced. 0: never.',
    },
    'max-age': {
      ...optionalSeconds,
      default: 0,
      compatible: false,
      description:
        'Seconds since its creation after which a ready node is replaced; `min-ready` holds meanwhile. 0: never.',
    },
    'min-retention-time': {
      ...optionalSeconds,
      default: 0,
      compatible: false,
      description: 'Age in seconds before which no ready node is deleted, e.g. what the cloud bills at least.',
    },
    'max-idle-time': {
      ...optionalSeconds,
      default: DEFAULT_MAX_IDLE_SECONDS,
      compatible: false,
      description:
        'Seconds after which a ready node beyond those to keep is deleted. 0: never, as in the Python Nodepool.',
    },
    'max-wait': {
      ...optionalSeconds,
      default: DEFAULT_MAX_WAIT_MS / 1000,
      compatible: false,
      description: 'Seconds that a request waits for capacity before it fails. 0: unlimited.',
    },
  },
  ['name'],
  'Kinds of nodes.',
);

/** The part common to all providers; the driver's schema adds the rest. */
const provider: JsonObject = {
  type: 'object',
  properties: {
    name: { ...pathName, description: 'Name of the provider.' },
    driver: {
      ...name,
      default: DEFAULT_DRIVER,
      description: 'Package or path of the driver, or NAME for `@nodepool/driver-NAME`.',
    },
    'max-concurrency': {
      type: ['integer', 'null'],
      default: -1,
      description: 'Limit of requests in progress. 0: none; negative: unlimited.',
    },
    priority: {
      type: ['integer', 'null'],
      default: DEFAULT_PRIORITY,
      description: 'Lower is used first.',
    },
  },
  required: ['name'],
  description: 'Clouds that provide nodes, with the options of all drivers and of their own.',
};

const limit: JsonObject = { type: ['integer', 'null'] };
const tenantLimits: JsonObject = {
  type: 'object',
  properties: {
    'tenant-name': { ...name, description: 'Name of the tenant in Zuul.' },
    'max-servers': { ...limit, description: 'Nodes.' },
    'max-cores': { ...limit, description: 'CPU cores.' },
    'max-ram': { ...limit, description: 'Memory, MiB.' },
    'max-volumes': { ...limit, description: 'Volumes.' },
    'max-volume-gb': { ...limit, description: 'Size of all volumes, GB.' },
  },
  required: ['tenant-name'],
  additionalProperties: limit,
  description: 'Limits in all providers together. Further keys are resource names of drivers.',
};

const driverAlias = mapping(
  {
    name: { ...name, description: 'Name for `driver`.' },
    package: { ...name, description: 'npm package, or a path relative to this file.' },
  },
  ['name', 'package'],
  'A short name for a driver package.',
);

export const configSchema: JsonSchema = {
  ...mapping(
    {
      webapp: {
        type: ['object', 'null'],
        properties: {
          port: { ...port, default: 8005, description: 'Port.' },
          listen_address: { type: 'string', default: '0.0.0.0', description: 'Address.' },
        },
        additionalProperties: false,
        description: 'Web endpoint of the launcher.',
      },
      'elements-dir': { ...optionalString, description: 'Folder of diskimage-builder elements.' },
      'images-dir': { ...optionalString, description: 'Folder for images, required by the builder.' },
      'build-log-dir': {
        ...optionalString,
        default: '/var/log/nodepool/builds',
        description: 'Folder for build logs.',
      },
      'build-log-retention': {
        type: ['integer', 'null'],
        default: 7,
        description: 'Logs to keep per image. -1: all.',
      },
      'zookeeper-servers': zookeeperServers,
      'zookeeper-tls': zookeeperTls,
      'zookeeper-timeout': {
        type: ['number', 'string'],
        exclusiveMinimum: 0,
        pattern: '^[0-9]+(\\.[0-9]+)?$',
        default: 10,
        description: 'Timeout of the session in seconds.',
      },
      labels: listOf(label, 'Kinds of nodes.'),
      'max-hold-age': {
        type: ['number', 'null'],
        default: 0,
        description: 'Seconds after which a held node is deleted. 0: never.',
      },
      diskimages: listOf(diskImage, 'Images that the builder builds.'),
      providers: listOf(provider, 'Clouds that provide nodes, with the options of all drivers and of their own.'),
      'tenant-resource-limits': listOf(tenantLimits, 'Limits per tenant.'),
      'fair-shares': fairSharesSchema,
      drivers: { ...listOf(driverAlias, 'Short names of driver packages.'), compatible: false },
    },
    [],
    'Configuration of Nodepool.',
  ),
};

export const secureSchema: JsonSchema = {
  type: ['object', 'null'],
  properties: {
    'zookeeper-servers': zookeeperServers,
    'zookeeper-tls': zookeeperTls,
    diskimages: listOf(
      mapping(
        { name: { ...name, description: 'Name of the image.' }, 'env-vars': envVars },
        ['name', 'env-vars'],
        'An image of the main file.',
      ),
      'Secret environment variables of image builds.',
    ),
  },
  additionalProperties: false,
  description: 'Secrets, kept apart from the main file.',
};

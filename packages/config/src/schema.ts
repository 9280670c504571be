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
      host: { ...optionalString, default: 'localhost', description: 'Name or address of the server.' },
      port: { ...port, default: 2281, description: 'Port of the server.' },
      chroot: {
        ...optionalString,
        description: 'Root path of all data in ZooKeeper. Servers with a `chroot` must have the same one.',
      },
    },
    [],
    'One server of the ensemble.',
  ),
  'The ZooKeeper ensemble. May be in the secure file instead.',
);

const zookeeperTls: JsonObject = {
  type: ['object', 'null'],
  properties: {
    cert: { ...name, description: 'File with the client certificate (PEM).' },
    key: { ...name, description: 'File with the key of the client certificate (PEM).' },
    ca: { ...name, description: 'File with the certificates of the authorities that sign servers (PEM).' },
    'verify-hostname': {
      type: 'boolean',
      default: true,
      compatible: false,
      description:
        'Check that the certificate of a server names the host in `zookeeper-servers`. `false` accepts any certificate of these authorities, as the Python Nodepool does: for servers that are configured by address or alias.',
    },
  },
  required: ['cert', 'key', 'ca'],
  additionalProperties: false,
  description: 'TLS connection to ZooKeeper with a client certificate. May be in the secure file instead.',
};

const envVars: JsonObject = {
  type: ['object', 'null'],
  additionalProperties: { type: 'string' },
  description: 'Environment variables of the build, merged with those of the parent key by key.',
};

const bootTest: JsonObject = {
  type: ['boolean', 'object', 'null'],
  compatible: false,
  properties: {
    timeout: {
      type: 'number',
      exclusiveMinimum: 0,
      default: 300,
      description:
        'Maximum time until the login answers, in seconds. Without KVM, an image boots several times slower.',
    },
    memory: { type: 'integer', minimum: 64, default: 1024, description: 'Memory of the machine, MiB.' },
    cpus: { type: 'integer', minimum: 1, default: 1, description: 'Processors of the machine.' },
    kvm: {
      type: 'boolean',
      default: true,
      description: 'If false, the machine is emulated even if the host has KVM.',
    },
    command: { ...name, description: 'Command that the shell of the machine must run with status 0.' },
    'command-timeout': {
      type: 'number',
      exclusiveMinimum: 0,
      default: 300,
      description: 'Limit of the command, in seconds.',
    },
  },
  additionalProperties: false,
  description:
    'If set, the builder boots each build under QEMU and waits for its login before the build is uploaded. `true`: with the defaults.',
};

const imageSource: JsonObject = {
  type: ['object', 'null'],
  compatible: false,
  properties: {
    url: {
      ...name,
      pattern: '^https?://',
      description: 'Address of the file; it may be compressed (`.gz`, `.xz`, `.zst`).',
    },
    path: {
      ...name,
      pattern: '^/',
      description: 'Absolute path of the file. A new file that is renamed to this path causes a build within a minute.',
    },
    sha256: {
      ...name,
      pattern: '^(?:[0-9a-fA-F]{64}|https?://.*)$',
      description:
        'SHA-256 of the file, or the https address of a file with it, as `sha256sum` writes it. Required with `url`.',
    },
    'max-size': {
      type: 'number',
      exclusiveMinimum: 0,
      default: 100,
      description: 'Maximum size of the file, and of the disk in it, in GiB.',
    },
    format: {
      ...name,
      description:
        "Format of the image in the file: `raw`, `qcow2`, `vhd`, … Default: the extension of the file's name.",
    },
  },
  oneOf: [{ required: ['url', 'sha256'] }, { required: ['path'] }],
  additionalProperties: false,
  description: 'A file with the image, which another program makes. The builder runs no `dib-cmd`.',
};

const diskImage = mapping(
  {
    name: { ...pathName, description: 'Name of the image.' },
    abstract: {
      type: 'boolean',
      default: false,
      description: 'If true, the image is only a parent of other images and is not built.',
    },
    parent: { ...optionalString, description: 'Name of the image to inherit from.' },
    formats: { ...strings, description: 'Formats to build in addition to those that the providers need.' },
    'keep-formats': {
      ...strings,
      description: 'Formats whose files `delete-after-upload` does not delete.',
    },
    'delete-after-upload': {
      type: ['boolean', 'null'],
      default: false,
      description: 'If true, the builder deletes the files once every provider has the image.',
    },
    'rebuild-age': {
      ...optionalSeconds,
      default: 86_400,
      description: 'Age at which the image is built again, in seconds.',
    },
    release: {
      type: ['string', 'number', 'null'],
      description: 'Release of the distribution, which the build gets as `DIB_RELEASE`. A number is passed as written.',
    },
    'build-timeout': { ...optionalSeconds, default: 28_800, description: 'Maximum duration of a build, in seconds.' },
    elements: { ...strings, description: 'Elements of diskimage-builder, in addition to those of the parent.' },
    'env-vars': envVars,
    pause: { type: ['boolean', 'null'], default: false, description: 'If true, the image is not built.' },
    username: { ...optionalString, default: 'zuul', description: 'User name for logins.' },
    'python-path': {
      ...optionalString,
      default: 'auto',
      description: 'Python interpreter on the node; `auto` lets Ansible find it.',
    },
    'shell-type': { ...optionalString, description: 'Shell on the node, by its name in Ansible.' },
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
  'An image to build.',
);

const label = mapping(
  {
    name: { ...name, description: 'Name of the label in requests.' },
    'min-ready': {
      type: 'integer',
      minimum: -1,
      default: 0,
      description: 'Number of nodes to keep ready. -1 disables the label.',
    },
    ready: readySchema,
    'max-ready-age': {
      type: ['number', 'null'],
      default: 0,
      description: 'Time after which a ready node is replaced, in seconds since it became ready. 0: never.',
    },
    'max-age': {
      ...optionalSeconds,
      default: 0,
      compatible: false,
      description:
        'Age at which a ready node is replaced, in seconds since its creation. The label keeps `min-ready` nodes meanwhile. 0: never.',
    },
    'min-retention-time': {
      ...optionalSeconds,
      default: 0,
      compatible: false,
      description:
        'Age before which a ready node is not deleted, in seconds since its creation, e.g. the minimum time that the cloud bills. It has priority over `max-age`, `max-ready-age` and `max-idle-time`.',
    },
    'max-idle-time': {
      ...optionalSeconds,
      default: DEFAULT_MAX_IDLE_SECONDS,
      compatible: false,
      description:
        'Time after which a ready node that no request needs is deleted, in seconds, if the label has enough ready nodes without it. 0: never, as in the Python Nodepool.',
    },
    'max-wait': {
      ...optionalSeconds,
      default: DEFAULT_MAX_WAIT_MS / 1000,
      compatible: false,
      description:
        'Maximum time that a request for the label waits for capacity, in seconds. The request then fails with the reason. 0: unlimited.',
    },
  },
  ['name'],
  'A kind of node.',
);

/** The part common to all providers; the driver's schema adds the rest. */
const provider: JsonObject = {
  type: 'object',
  properties: {
    name: { ...pathName, description: 'Name of the provider.' },
    driver: {
      ...name,
      default: DEFAULT_DRIVER,
      description: 'Driver of the cloud: its short name, its package, or a path.',
    },
    'max-concurrency': {
      type: ['integer', 'null'],
      default: -1,
      description: 'Maximum number of requests that are processed at once. 0: none; negative: unlimited.',
    },
    priority: {
      type: ['integer', 'null'],
      default: DEFAULT_PRIORITY,
      description: 'The launcher uses providers with a lower number first.',
    },
  },
  required: ['name'],
  description: 'A cloud that provides nodes. Its driver defines further keys.',
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
  description: 'Maximum resources of a tenant in all providers together. Further keys are resource names of drivers.',
};

const driverAlias = mapping(
  {
    name: { ...name, description: 'Short name, for `driver` of providers.' },
    package: { ...name, description: 'Name of the npm package, or a path relative to this file.' },
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
          port: { ...port, default: 8005, description: 'Port of the web endpoint.' },
          listen_address: { type: 'string', default: '0.0.0.0', description: 'Address to listen on.' },
        },
        additionalProperties: false,
        description: 'Web endpoint of the launcher.',
      },
      'elements-dir': { ...optionalString, description: 'Folder with elements of diskimage-builder.' },
      'images-dir': { ...optionalString, description: 'Folder for built images. Required by the builder.' },
      'build-log-dir': {
        ...optionalString,
        default: '/var/log/nodepool/builds',
        description: 'Folder for build logs.',
      },
      'build-log-retention': {
        type: ['integer', 'null'],
        default: 7,
        description: 'Number of logs to keep per image. -1: all.',
      },
      'zookeeper-servers': zookeeperServers,
      'zookeeper-tls': zookeeperTls,
      'zookeeper-timeout': {
        type: ['number', 'string'],
        exclusiveMinimum: 0,
        pattern: '^[0-9]+(\\.[0-9]+)?$',
        default: 10,
        description: 'Timeout of the ZooKeeper session, in seconds.',
      },
      labels: listOf(label, 'The offered kinds of nodes.'),
      'max-hold-age': {
        type: ['number', 'null'],
        default: 0,
        description: 'Age at which a held node is deleted, in seconds. 0: never.',
      },
      diskimages: listOf(diskImage, 'Disk images that the builder builds.'),
      providers: listOf(provider, 'Clouds that provide nodes.'),
      'tenant-resource-limits': listOf(tenantLimits, 'Limits per tenant.'),
      'fair-shares': fairSharesSchema,
      drivers: { ...listOf(driverAlias, 'Short names for driver packages.'), compatible: false },
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

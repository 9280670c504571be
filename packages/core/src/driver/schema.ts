/**
 * Schema of a provider: the common keys of all drivers combined with the keys of one driver. The reference page of the
 * driver is generated from it, so every property has a `description` and, where applicable, a `default`.
 */

import type { JsonObject } from '../model/json.js';
import { pricesSchema } from '../model/prices.js';
import { imageTestProperties } from './image-tests.js';
import type { JsonSchema } from './json-schema.js';

/** Keys that a driver adds to a kind of section. A key with the name of a common key replaces that key. */
export interface SchemaPart {
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly required?: readonly string[];
  /** Common keys that this driver does not support. */
  readonly without?: readonly string[];
  /** Keys, common ones included, that the Python Nodepool does not know. */
  readonly incompatible?: readonly string[];
  /** Additional constraints, e.g. `{oneOf: [{required: ['a']}, {required: ['b']}]}`. */
  readonly rules?: readonly JsonSchema[];
}

export interface ProviderSchemaParts {
  readonly description?: string;
  /** True if the Python Nodepool has a driver of this name, which knows the keys that are not `incompatible`. */
  readonly compatible?: boolean;
  /** Shown as the defaults of the common keys; must equal those passed to `loadCommonProvider`. */
  readonly defaults: ProviderDefaults;
  readonly provider?: SchemaPart;
  readonly pool?: SchemaPart;
  readonly label?: SchemaPart;
  /** Absent if the driver has no disk images. */
  readonly diskImage?: SchemaPart;
  /** Absent if the driver has no cloud images. */
  readonly cloudImage?: SchemaPart;
}

/** Defaults of the common keys that differ between drivers. */
export interface ProviderDefaults {
  readonly bootTimeoutSeconds: number;
  /** Default 3600. */
  readonly launchTimeoutSeconds?: number;
  /** Default 3. */
  readonly launchRetries?: number;
  /** Default of `rate`, in the unit `rateUnit`; absent for unlimited. */
  readonly rate?: number;
  /** Unit of `rate`. */
  readonly rateUnit: 'calls-per-second' | 'seconds-between-calls';
}

export const DEFAULT_LAUNCH_TIMEOUT_SECONDS = 3600;
export const DEFAULT_LAUNCH_RETRIES = 3;
export const DEFAULT_PRIORITY = 100;
/** Driver of a provider without `driver`: existing files omit the key for OpenStack clouds. */
export const DEFAULT_DRIVER = 'openstack';

const name: JsonObject = { type: 'string', minLength: 1 };

/** Composes the schema of a driver's provider sections. */
export function providerSchema(parts: ProviderSchemaParts): JsonSchema {
  const label = section(
    labelProperties(parts),
    ['name'],
    parts.label,
    imageRules(parts),
    'A label that the pool serves.',
  );
  const pool = section(poolProperties(label), ['name'], parts.pool, [], 'A part of the provider with its own limits.');
  const lists: Record<string, JsonSchema> = {
    pools: { type: 'array', items: pool, description: 'Pools of nodes. A builder needs none.' },
  };
  if (parts.diskImage !== undefined) lists['diskimages'] = listOfDiskImages(parts.diskImage);
  if (parts.cloudImage !== undefined) lists['cloud-images'] = listOfCloudImages(parts.cloudImage);
  const properties = { ...providerProperties(parts.defaults), ...lists };
  const schema = section(properties, ['name'], parts.provider, [], parts.description ?? 'A provider.');
  return parts.compatible === undefined ? schema : { ...schema, compatible: parts.compatible };
}

function section(
  common: Readonly<Record<string, JsonSchema>>,
  required: readonly string[],
  part: SchemaPart = {},
  rules: readonly JsonSchema[],
  description: string,
): JsonSchema {
  const without = new Set(part.without);
  const kept = Object.entries(common).filter(([key]) => !without.has(key));
  const allRules = [...rules, ...(part.rules ?? [])];
  const properties: Record<string, JsonSchema> = { ...Object.fromEntries(kept), ...part.properties };
  for (const key of part.incompatible ?? []) properties[key] = { ...properties[key], compatible: false };
  return {
    type: 'object',
    description,
    properties,
    required: [...new Set([...required, ...(part.required ?? [])])],
    additionalProperties: false,
    ...(allRules.length === 0 ? {} : { allOf: allRules }),
  };
}

function providerProperties(defaults: ProviderDefaults): Record<string, JsonSchema> {
  const rate = {
    type: ['number', 'string'],
    minimum: 0,
    pattern: '^[0-9]*\\.?[0-9]+([eE][-+]?[0-9]+)?$',
    description: rateDescription(defaults.rateUnit),
    ...(defaults.rate === undefined ? {} : { default: defaults.rate }),
  };
  return {
    name: { ...name, description: 'Name of the provider.' },
    driver: {
      ...name,
      default: DEFAULT_DRIVER,
      description: 'Package or path of the driver, or NAME for `@nodepool/driver-NAME`.',
    },
    'max-concurrency': {
      type: ['integer', 'null'],
      default: -1,
      description: 'Maximum requests processed at once. 0: none; negative: unlimited.',
    },
    priority: {
      type: ['integer', 'null'],
      default: DEFAULT_PRIORITY,
      description: 'Providers with a lower number are used first.',
    },
    'launch-retries': {
      type: 'integer',
      minimum: 0,
      default: defaults.launchRetries ?? DEFAULT_LAUNCH_RETRIES,
      description: 'Maximum launch attempts per node before the request fails.',
    },
    'launch-timeout': {
      type: 'number',
      minimum: 0,
      default: defaults.launchTimeoutSeconds ?? DEFAULT_LAUNCH_TIMEOUT_SECONDS,
      description: 'Seconds until the cloud must report that a node runs.',
    },
    'boot-timeout': {
      type: 'number',
      minimum: 0,
      default: defaults.bootTimeoutSeconds,
      description: 'Seconds from then until the node must accept logins.',
    },
    rate,
    prices: pricesSchema,
  };
}

function rateDescription(unit: ProviderDefaults['rateUnit']): string {
  return unit === 'calls-per-second'
    ? 'API calls per second. 0: unlimited.'
    : 'Seconds between two API calls, e.g. `0.01`. 0: unlimited.';
}

function poolProperties(label: JsonSchema): Record<string, JsonSchema> {
  return {
    name: { ...name, description: 'Name of the pool.' },
    'max-servers': {
      type: 'integer',
      description: 'Maximum nodes of the pool. 0 or less disables the pool. Default: unlimited.',
    },
    priority: {
      type: ['integer', 'null'],
      description: "Pools with a lower number are used first. Default: the provider's.",
    },
    'node-attributes': { type: ['object', 'null'], description: 'Attributes of every node in the pool.' },
    'host-key-checking': {
      type: 'boolean',
      default: true,
      description: 'If true, a node becomes ready when it accepts logins and its host keys are known.',
    },
    'use-internal-ip': {
      type: 'boolean',
      default: false,
      description: 'If true, nodes are reached at private addresses.',
    },
    labels: { type: 'array', items: label, description: 'Labels that the pool serves.' },
  };
}

function labelProperties(parts: ProviderSchemaParts): Record<string, JsonSchema> {
  const properties: Record<string, JsonSchema> = {
    name: { ...name, description: 'Name in the top-level `labels`.' },
    'host-key-checking': { type: 'boolean', description: "Default: the pool's." },
  };
  if (parts.diskImage !== undefined) {
    properties['diskimage'] = { ...name, description: 'Name in `diskimages` of the provider.' };
  }
  if (parts.cloudImage !== undefined) {
    properties['cloud-image'] = { ...name, description: 'Name in `cloud-images` of the provider.' };
  }
  return properties;
}

/** Returns rules that require exactly one image per label. */
function imageRules(parts: ProviderSchemaParts): JsonSchema[] {
  const keys = [
    ...(parts.diskImage === undefined ? [] : ['diskimage']),
    ...(parts.cloudImage === undefined ? [] : ['cloud-image']),
  ];
  if (keys.length === 0) return [];
  return keys.length === 1 ? [{ required: keys }] : [{ oneOf: keys.map((key) => ({ required: [key] })) }];
}

const connectionProperties: Record<string, JsonSchema> = {
  'connection-type': {
    type: 'string',
    minLength: 1,
    default: 'ssh',
    description: 'Connection type: `ssh`, `winrm`, `network_cli`, …',
  },
  'connection-port': {
    type: 'integer',
    minimum: 1,
    maximum: 65_535,
    description: 'Login port. Default: 22; for `winrm` 5986.',
  },
};

const imageTests = Object.fromEntries(
  Object.entries(imageTestProperties).map(([key, schema]) => [
    key,
    { ...schema, description: `Replaces \`${key}\` of the top-level disk image; \`false\`: none.` },
  ]),
);

function listOfDiskImages(part: SchemaPart): JsonSchema {
  const properties = {
    name: { ...name, description: 'Name in the top-level `diskimages`.' },
    pause: {
      type: 'boolean',
      default: false,
      description: 'If true, the image is not uploaded to this provider.',
    },
    ...imageTests,
    ...connectionProperties,
  };
  const items = section(properties, ['name'], part, [], 'A disk image uploaded to this provider.');
  return { type: 'array', items, description: 'Disk images uploaded to this provider.' };
}

function listOfCloudImages(part: SchemaPart): JsonSchema {
  const properties = {
    name: { ...name, description: 'Name of the image in this file.' },
    ...connectionProperties,
    username: { type: 'string', description: 'User name for logins.' },
    'python-path': {
      type: 'string',
      default: 'auto',
      description: 'Python interpreter; `auto` lets Ansible find it.',
    },
    'shell-type': { type: 'string', description: 'Shell, by its name in Ansible.' },
  };
  const items = section(properties, ['name'], part, [], 'An existing image of the cloud.');
  return { type: 'array', items, description: 'Existing images of the cloud.' };
}

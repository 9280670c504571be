/**
 * The configuration of a provider of this driver. Every key is documented only in the schema, from which the reference
 * pages are generated.
 *
 * `providerSchema` and `loadCommonProvider` supply the keys of all drivers; this file adds the driver's own keys, and
 * reports errors that a schema cannot detect to `context.problem`, with their position and a remedy.
 */

import {
  imageUploadProperties,
  isJsonObject,
  loadCommonProvider,
  numberAt,
  providerSchema,
  stringAt,
  stringsAt,
  type JsonObject,
  type JsonSchema,
  type LabelConfig,
  type LabelSource,
  type PoolConfig,
  type ProviderConfig,
  type ProviderConfigContext,
  type ProviderDefaults,
} from '@nodepool/core';
import { CloudSettingsError, readCloudSettings } from './cloud/settings-reader.js';
import { CLOUD_SETTINGS_SCHEMA } from './cloud/settings-schema.js';
import { DEFAULT_SETTINGS, type CloudSettings } from './cloud/settings.js';

/** A label with the properties of its instances. */
export interface ExampleLabel extends LabelConfig {
  /** Name of the preferred size of the cloud; undefined if `cores` and `ram` define the size. */
  readonly size: string | undefined;
  readonly cores: number;
  /** MiB. */
  readonly ram: number;
  /** Name of the image in the cloud, for labels without a disk image. */
  readonly cloudImage: string;
  /** True if nodes are reached at their private addresses. */
  readonly useInternalIp: boolean;
}

export interface ExampleProvider extends ProviderConfig<ExampleLabel> {
  /** Endpoint of a cloud in a separate process; undefined if the cloud is inside this process. */
  readonly endpoint: string | undefined;
  readonly cloudSettings: CloudSettings;
}

const DEFAULTS: ProviderDefaults = { bootTimeoutSeconds: 60, rateUnit: 'calls-per-second' };
const DEFAULT_CORES = 1;
const DEFAULT_RAM = 1024;
const DEFAULT_IMAGE_FORMAT = 'raw';

const limit = (what: string): JsonSchema => ({
  type: 'integer',
  description: `${what} of all nodes of this pool. Default: unlimited.`,
});

export const schema: JsonSchema = providerSchema({
  description: 'A provider of the driver "example": a simulated cloud for experiments.',
  defaults: DEFAULTS,
  provider: {
    properties: {
      endpoint: {
        type: 'string',
        pattern: '^https?://',
        description:
          'URL of `nodepool-example-cloud`, e.g. `http://127.0.0.1:8480`. Default: the cloud is inside the launcher and ends with it.',
      },
      cloud: CLOUD_SETTINGS_SCHEMA,
      'image-format': {
        type: 'string',
        default: DEFAULT_IMAGE_FORMAT,
        description: 'Format of uploaded images.',
      },
      ...imageUploadProperties,
    },
  },
  pool: {
    properties: {
      'availability-zones': {
        type: 'array',
        items: { type: 'string' },
        description: 'Zones to use; all nodes of a request are in one. Default: all zones of the cloud.',
      },
      'max-cores': limit('Cores'),
      'max-ram': limit('Memory, in MiB,'),
      'host-key-checking': {
        type: 'boolean',
        description:
          'If true, a node is ready only when it accepts logins and its host keys are known. Default: true, unless the cloud is inside the launcher and its `ssh` is false.',
      },
    },
  },
  label: {
    rules: [{ not: { required: ['size', 'sizes'] } }],
    properties: {
      size: { type: 'string', minLength: 1, description: 'Name of a size of the cloud. Excludes `cores` and `ram`.' },
      sizes: {
        type: 'array',
        items: { type: 'string', minLength: 1 },
        minItems: 1,
        uniqueItems: true,
        description:
          'Alternatives to `size`, in the order of preference: a node gets the next size if the cloud has no capacity for one.',
      },
      cores: { type: 'integer', minimum: 1, default: DEFAULT_CORES, description: 'Cores of a node.' },
      ram: { type: 'integer', minimum: 1, default: DEFAULT_RAM, description: 'Memory of a node, MiB.' },
      'console-log': {
        type: 'boolean',
        default: false,
        description: "If true, the launcher logs the node's console output when the login never answers.",
      },
    },
  },
  diskImage: {
    properties: {
      meta: {
        type: 'object',
        additionalProperties: { type: ['string', 'number', 'boolean'] },
        description: 'Properties of the image in the cloud.',
      },
    },
  },
  cloudImage: {
    properties: {
      image: { type: 'string', minLength: 1, description: 'Name of the image in the cloud. Default: `name`.' },
    },
  },
});

/** Reads a section that has passed the schema. */
export function loadProvider(section: JsonObject, context: ProviderConfigContext): ExampleProvider {
  const endpoint = stringAt(section, 'endpoint');
  const cloudSettings = loadCloudSettings(section, endpoint, context);
  const common = loadCommonProvider<ExampleLabel, PoolConfig<ExampleLabel>>(section, context, {
    defaults: DEFAULTS,
    imageFormat: stringAt(section, 'image-format') ?? DEFAULT_IMAGE_FORMAT,
    loadLabel: (label, source) => loadLabel(label, source, context, endpoint !== undefined || cloudSettings.ssh),
    loadPool: (pool) => pool,
  });
  return { ...common, endpoint, cloudSettings };
}

function loadCloudSettings(
  section: JsonObject,
  endpoint: string | undefined,
  context: ProviderConfigContext,
): CloudSettings {
  const settings = section['cloud'];
  if (!isJsonObject(settings)) return DEFAULT_SETTINGS;
  if (endpoint !== undefined) {
    const hint = 'give the settings to nodepool-example-cloud with --set';
    context.problem(['cloud'], { expected: 'no `cloud` beside `endpoint`', hint });
  }
  try {
    return readCloudSettings(settings);
  } catch (error) {
    if (!(error instanceof CloudSettingsError)) throw error;
    context.problem(['cloud', ...error.key.split('.')], { expected: error.expected });
    return DEFAULT_SETTINGS;
  }
}

function loadLabel(
  label: LabelConfig,
  source: LabelSource,
  context: ProviderConfigContext,
  hasLogin: boolean,
): ExampleLabel {
  const { section, poolSection, imageSection, path } = source;
  const sizes = stringsAt(section, 'sizes');
  const size = sizes?.[0] ?? stringAt(section, 'size');
  if (size !== undefined && ('cores' in section || 'ram' in section)) {
    const key = sizes === undefined ? 'size' : 'sizes';
    context.problem([...path, key], { expected: `either \`${key}\`, or \`cores\` and \`ram\`` });
  }
  const checkingWanted = 'host-key-checking' in section || 'host-key-checking' in poolSection;
  return {
    ...label,
    // Waiting for the login of an instance without a login would make every launch time out.
    hostKeyChecking: checkingWanted ? label.hostKeyChecking : hasLogin,
    machineTypes: sizes,
    size,
    cores: numberAt(section, 'cores') ?? DEFAULT_CORES,
    ram: numberAt(section, 'ram') ?? DEFAULT_RAM,
    cloudImage: stringAt(imageSection, 'image') ?? label.image.name,
    useInternalIp: poolSection['use-internal-ip'] === true,
  };
}

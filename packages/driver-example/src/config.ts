/**
 * The configuration of a provider of this driver. `loadCommonProvider` reads the keys of all drivers; this file reads
 * the driver's own keys, and reports errors that a schema cannot detect to `context.problem`, with their position and a
 * remedy.
 */

import type {
  JsonObject,
  LabelConfig,
  LabelSource,
  PoolConfig,
  ProviderConfig,
  ProviderConfigContext,
} from '@nodepool/core';
import { isJsonObject, loadCommonProvider, numberAt, stringAt, stringsAt } from '@nodepool/core';
import { CloudSettingsError, readCloudSettings } from './cloud/settings-reader.js';
import { DEFAULT_SETTINGS, type CloudSettings } from './cloud/settings.js';
import { DEFAULT_CORES, DEFAULT_IMAGE_FORMAT, DEFAULT_RAM, DEFAULTS } from './schema.js';

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

/** Reads and validates the settings of the example cloud from a provider's section or a command line. */

import { isJsonObject, type JsonObject, type JsonValue } from '@nodepool/core';
import { CLOUD_SETTING_NAMES } from './settings-schema.js';
import { DEFAULT_SETTINGS, FAULTS, type CloudSettings, type Fault, type InstanceSize, type Range } from './settings.js';

/** An error in the settings, with the key and the expected value. */
export class CloudSettingsError extends Error {
  constructor(
    readonly key: string,
    readonly expected: string,
  ) {
    super(`setting ${key}: expected ${expected}`);
    this.name = 'CloudSettingsError';
  }
}

/** Reads settings in their written form, e.g. `{'boot-time': 3}`. Throws `CloudSettingsError`. */
export function readCloudSettings(section: JsonObject): CloudSettings {
  refuseUnknown(section, CLOUD_SETTING_NAMES, '');
  const quota = objectAt(section, 'quota');
  refuseUnknown(quota, ['instances', 'cores', 'ram'], 'quota.');
  return {
    bootTimeMs: secondsAt(section, 'boot-time'),
    deleteTimeMs: secondsAt(section, 'delete-time'),
    apiLatencyMs: secondsAt(section, 'api-latency'),
    listLagMs: secondsAt(section, 'list-lag'),
    callsPerSecond: rateAt(section, 'rate-limit'),
    quota: {
      instances: limitAt(quota, 'instances'),
      cores: limitAt(quota, 'cores'),
      ram: limitAt(quota, 'ram'),
    },
    zones: namesAt(section, 'zones', 1) ?? DEFAULT_SETTINGS.zones,
    sizes: sizesAt(section),
    publicImages: namesAt(section, 'public-images', 0),
    pageSize: pageSizeAt(section),
    reusesIds: booleanAt(section, 'reuse-ids'),
    ssh: booleanAt(section, 'ssh'),
    authorizedKeys: authorizedKeysAt(section),
    faults: faultsAt(section),
  };
}

function refuseUnknown(section: JsonObject, known: readonly string[], prefix: string): void {
  for (const key of Object.keys(section)) {
    if (!known.includes(key))
      throw new CloudSettingsError(prefix + key, `one of ${known.join(', ')} instead of this key`);
  }
}

function objectAt(section: JsonObject, key: string): JsonObject {
  const value = section[key];
  if (value === undefined) return {};
  if (!isJsonObject(value)) throw new CloudSettingsError(key, 'an object');
  return value;
}

function isAmount(value: JsonValue | undefined): value is number {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0;
}

function secondsAt(section: JsonObject, key: string): Range {
  const value = section[key];
  if (value === undefined) return [0, 0];
  if (isAmount(value)) return [value * 1000, value * 1000];
  if (Array.isArray(value)) {
    const [least, greatest] = value as readonly JsonValue[];
    if (isAmount(least) && isAmount(greatest) && least <= greatest && value.length === 2) {
      return [least * 1000, greatest * 1000];
    }
  }
  throw new CloudSettingsError(key, 'seconds, 0 or more, or [least, greatest]');
}

function rateAt(section: JsonObject, key: string): number {
  const value = section[key];
  if (value === undefined) return Infinity;
  if (!isAmount(value) || value === 0) throw new CloudSettingsError(key, 'calls per second, more than 0');
  return value;
}

function limitAt(quota: JsonObject, key: string): number {
  const value = quota[key];
  if (value === undefined || value === -1) return Infinity;
  if (!isAmount(value)) throw new CloudSettingsError(`quota.${key}`, 'a number, or -1 for unlimited');
  return value;
}

function namesAt(section: JsonObject, key: string, least: number): readonly string[] | undefined {
  const value = section[key];
  if (value === undefined) return undefined;
  const names: readonly JsonValue[] = Array.isArray(value) ? value : [];
  const texts = names.filter((name): name is string => typeof name === 'string' && name !== '');
  if (!Array.isArray(value) || texts.length !== names.length || texts.length < least) {
    throw new CloudSettingsError(key, 'a list of names');
  }
  return texts;
}

function sizesAt(section: JsonObject): readonly InstanceSize[] {
  const value = section['sizes'];
  if (value === undefined) return DEFAULT_SETTINGS.sizes;
  const entries: readonly JsonValue[] = Array.isArray(value) ? value : [];
  if (entries.length === 0) throw new CloudSettingsError('sizes', 'a list of {name, cores, ram}');
  return entries.map((entry, index) => {
    if (isJsonObject(entry)) {
      const { name, cores, ram } = entry;
      if (typeof name === 'string' && isAmount(cores) && isAmount(ram)) return { name, cores, ram };
    }
    throw new CloudSettingsError(`sizes[${index}]`, '{name, cores, ram}');
  });
}

function pageSizeAt(section: JsonObject): number {
  const value = section['page-size'] ?? DEFAULT_SETTINGS.pageSize;
  if (!isAmount(value) || !Number.isInteger(value) || value === 0) {
    throw new CloudSettingsError('page-size', 'an integer, 1 or more');
  }
  return value;
}

function booleanAt(section: JsonObject, key: string): boolean {
  const value = section[key] ?? false;
  if (typeof value !== 'boolean') throw new CloudSettingsError(key, 'true or false');
  return value;
}

function authorizedKeysAt(section: JsonObject): string | undefined {
  const value = section['authorized-keys'];
  if (value === undefined) return undefined;
  if (typeof value !== 'string' || !/^\/[^"\n]*$/.test(value)) {
    throw new CloudSettingsError('authorized-keys', 'the absolute path of a file');
  }
  if (section['ssh'] !== true) throw new CloudSettingsError('authorized-keys', '`ssh: true` with this key');
  return value;
}

function faultsAt(section: JsonObject): Readonly<Record<Fault, number>> {
  const written = objectAt(section, 'faults');
  refuseUnknown(written, Object.keys(FAULTS), 'faults.');
  const faults: Record<Fault, number> = { ...DEFAULT_SETTINGS.faults };
  for (const fault of Object.keys(FAULTS) as Fault[]) {
    const rate = written[fault] ?? 0;
    if (!isAmount(rate) || rate > 1) throw new CloudSettingsError(`faults.${fault}`, 'a number from 0 to 1');
    faults[fault] = rate;
  }
  return faults;
}

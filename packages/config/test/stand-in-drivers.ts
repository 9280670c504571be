/** Drivers that read the part of a cloud's configuration that all drivers share, and ignore the rest. */

import {
  loadCommonProvider,
  providerSchema,
  type Driver,
  type JsonSchema,
  type ProviderSchemaParts,
} from '@nodepool/core';
import { type DiscoverDriver, DriverLoadError } from '@nodepool/config';

function anything(...keys: string[]): Record<string, JsonSchema> {
  return Object.fromEntries(keys.map((key) => [key, {}]));
}

function driver(name: string, parts: ProviderSchemaParts, imageFormat?: string, imageMetadataKey?: string): Driver {
  return {
    name,
    schema: providerSchema(parts),
    getProviderConfig: (section, context) =>
      loadCommonProvider(section, context, {
        defaults: parts.defaults,
        imageFormat,
        ...(imageMetadataKey === undefined ? {} : { imageMetadataKey }),
        loadLabel: (label) => label,
        loadPool: (pool) => pool,
      }),
    getProvider: () => {
      throw new Error('a stand-in has no clouds');
    },
  };
}

export const openstack = driver(
  'openstack',
  {
    defaults: { bootTimeoutSeconds: 60, rate: 1, rateUnit: 'seconds-between-calls' },
    provider: {
      properties: anything('cloud', 'region-name', 'image-upload-timeout', 'port-cleanup-interval'),
      required: ['cloud'],
    },
    pool: { properties: anything('availability-zones', 'networks', 'auto-floating-ip', 'max-cores', 'max-ram') },
    label: {
      properties: {
        ...anything('key-name', 'networks', 'boot-from-volume', 'volume-size'),
        'min-ram': { type: 'integer' },
        'flavor-name': { type: 'string' },
        'console-log': { type: 'boolean' },
      },
      rules: [{ anyOf: [{ required: ['min-ram'] }, { required: ['flavor-name'] }] }],
    },
    diskImage: { properties: anything('meta', 'config-drive') },
    cloudImage: { properties: anything('image-id', 'image-name', 'config-drive') },
  },
  'qcow2',
);

export const azure = driver(
  'azure',
  {
    defaults: { bootTimeoutSeconds: 120, rate: 1, rateUnit: 'calls-per-second' },
    provider: {
      properties: anything(
        'zuul-public-key',
        'resource-group-location',
        'location',
        'resource-group',
        'auth-path',
        'subnet-id',
        'host-key-checking',
      ),
    },
    label: { properties: anything('hardware-profile', 'tags', 'dynamic-tags', 'user-data', 'custom-data') },
    diskImage: { properties: anything('tags', 'username', 'python-path', 'shell-type') },
    cloudImage: {
      properties: anything(
        'image-reference',
        'image-id',
        'image-filter',
        'community-gallery-image',
        'shared-gallery-image',
        'key',
        'password',
        'generate-password',
      ),
      required: ['username'],
    },
  },
  'vhd',
  'tags',
);

export const gce = driver('gce', {
  defaults: { bootTimeoutSeconds: 60, rate: 2, rateUnit: 'calls-per-second' },
  provider: {
    properties: anything('project', 'region', 'zone', 'rate-limit'),
    required: ['project', 'region', 'zone'],
  },
  label: { properties: anything('instance-type', 'volume-type', 'volume-size') },
  cloudImage: { properties: anything('image-project', 'image-family', 'image-id', 'key') },
});

/** Discovers these drivers and no others. */
export function only(...drivers: readonly Driver[]): DiscoverDriver {
  return async (name) => {
    const found = drivers.find((each) => each.name === name);
    if (found !== undefined) return found;
    throw new DriverLoadError({
      reason: 'not-installed',
      driver: name,
      problem: `there is no ${name}`,
      remedy: 'install it',
    });
  };
}

export const standIns = only(openstack, azure, gce);

/** The driver: its name, its configuration, and its provider. */

import { ConfigurationError, type Driver, type ProviderConfig } from '@nodepool/core';
import { resolveName, type Resolve } from './addresses.js';
import { loadProvider, type StaticProviderConfig } from './config.js';
import { StaticProvider } from './provider.js';
import { schema } from './schema.js';
import { siteGuide } from './site.js';

export interface StaticDriverOptions {
  /** Resolves host names. Default: the system's resolver. */
  readonly resolve?: Resolve;
}

/** Creates a driver. A launcher loads `driver`, which is created without options. */
export function staticDriver({ resolve = resolveName }: StaticDriverOptions = {}): Driver {
  return {
    name: 'static',
    schema,
    siteGuide,
    getProviderConfig: loadProvider,
    getProvider: (config) => {
      if (isStatic(config)) return new StaticProvider(config, resolve);
      throw new ConfigurationError(`the configuration of provider ${config.name} belongs to another driver`);
    },
  };
}

function isStatic(config: ProviderConfig): config is StaticProviderConfig {
  return [...config.pools.values()].every((pool) => 'machines' in pool);
}

export const driver: Driver = staticDriver();

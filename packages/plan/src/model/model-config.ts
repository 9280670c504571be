/** The configuration of a replay: that of the file, with the model of the clouds in the place of drivers. */

import type { NodepoolConfig } from '@nodepool/config';
import type { Driver, LabelConfig, PoolConfig, ProviderConfig } from '@nodepool/core';
import { withAddresses } from './machines.js';
import type { ModelClouds } from './model-cloud.js';

/** Limits of pools that differ from the file, by `provider/pool`. */
export type PoolLimits = ReadonlyMap<string, number>;

export function modelConfig(
  config: NodepoolConfig,
  clouds: ModelClouds,
  limits: PoolLimits = new Map(),
): NodepoolConfig {
  const providers = [...config.providers].map(([name, provider]) => {
    const driver = config.loadedDrivers.get(provider.driver);
    const isOfMachines = provider.createsNodes === false && driver !== undefined;
    const replayed = isOfMachines ? withAddresses(provider, driver, config) : provider;
    return [name, modelProvider(replayed, limits)] as const;
  });
  const loadedDrivers = new Map([...config.loadedDrivers].map(([name, driver]) => [name, modelDriver(driver, clouds)]));
  return { ...config, providers: new Map(providers), loadedDrivers };
}

/** Returns true if the provider creates instances, for which the model stands; otherwise its own driver runs. */
export function isModelled({ createsNodes, waitsForOthers }: ProviderConfig): boolean {
  return createsNodes !== false && waitsForOthers !== true;
}

function modelDriver(driver: Driver, clouds: ModelClouds): Driver {
  return {
    name: driver.name,
    schema: driver.schema,
    getProviderConfig: (section, context) => driver.getProviderConfig(section, context),
    getProvider: (config) => (isModelled(config) ? clouds.provider(config) : driver.getProvider(config)),
  };
}

function modelProvider(provider: ProviderConfig, limits: PoolLimits): ProviderConfig {
  const pools = [...provider.pools].map(([name, pool]) => {
    const maxServers = limits.get(`${provider.name}/${name}`) ?? pool.maxServers;
    return [name, { ...pool, maxServers, labels: isModelled(provider) ? withImages(pool) : pool.labels }] as const;
  });
  return { ...provider, pools: new Map(pools) };
}

/** Returns labels whose images always exist, because a replay has no builder. */
function withImages({ labels }: PoolConfig): ReadonlyMap<string, LabelConfig> {
  return new Map(
    [...labels].map(([name, label]) => [name, { ...label, image: { kind: 'cloud-image', name: label.image.name } }]),
  );
}

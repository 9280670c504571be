/** Mutations of the configuration that launchers apply. */

import type { Mutation } from '../mutation.js';
import { restarting } from '../mutators.js';

export const SETTINGS_MUTATIONS: readonly Mutation[] = [
  {
    name: 'ignores the shares of tenants',
    rule: 'F1',
    firstSeed: 5,
    fault: 'shares',
    config: ({ shares: _, ...site }) => site,
  },
  {
    name: 'allows pools more than their limits',
    rule: 'S8',
    launchers: 1,
    config: (site) => ({
      ...site,
      providers: site.providers.map((provider) => ({
        ...provider,
        pools: provider.pools.map((pool) => ({ ...pool, maxServers: pool.maxServers + 3 })),
      })),
    }),
  },
  {
    name: 'ignores the limits of tenants',
    rule: 'S8',
    config: (site) => ({ ...site, tenants: {} }),
  },
  {
    name: 'stops all work for every change of its configuration',
    rule: 'S12',
    fault: 'all',
    config: restarting(),
  },
  {
    name: 'uses the faulty driver for every provider',
    rule: 'S12',
    fault: 'driver',
    config: (site) => ({ ...site, providers: site.providers.map((each) => ({ ...each, driver: 'faulty' })) }),
  },
  {
    name: 'keeps more nodes ready than min-ready',
    rule: 'L5',
    config: (site) => ({ ...site, minReady: { small: 5 } }),
  },
  {
    name: 'ignores min-ready',
    rule: 'L5',
    config: (site) => ({ ...site, minReady: {} }),
  },
  {
    name: 'keeps more nodes ready than spare',
    rule: 'L5',
    fault: 'losses',
    config: (site) => ({ ...site, spare: { other: 4 } }),
  },
  {
    name: 'ignores spare',
    rule: 'L5',
    fault: 'losses',
    config: (site) => ({ ...site, spare: {} }),
  },
  {
    name: 'does not use the provider with capacity',
    rule: 'C2',
    fault: 'refusals',
    firstSeed: 3,
    config: (site) => ({
      ...site,
      providers: site.providers.map((provider) => ({
        ...provider,
        pools: provider.pools.map((pool) => (pool.priority === undefined ? pool : { ...pool, labels: ['other'] })),
      })),
    }),
  },
];

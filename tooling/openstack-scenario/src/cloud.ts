/** The cloud that the show runs on. */

import { startSimulatedOpenStack } from '@nodepool/simulated-openstack';
import { sleep, systemClock } from '@nodepool/core';
import { takeRealOpenStack } from './real-openstack.js';

export interface ShowCloud {
  readonly kind: 'real' | 'simulated';
  /** Path of a clouds.yaml with the clouds `real` and `limited`. */
  readonly cloudsYaml: string;
  /** Stops keystone, and starts it again; resolves once it answers. Undefined where it is not ours to stop. */
  readonly restartKeystone: (() => Promise<void>) | undefined;
  /** How long the API of a region is closed (ms). */
  readonly regionAwayMs: number;
  /** Ends what was started for the show. */
  close(): Promise<void>;
}

/** How long the simulated keystone is away. */
const KEYSTONE_AWAY_MS = 3000;

/** How long the API of a region is closed, on the real services and on the simulated ones. */
const REGION_AWAY_MS = { real: 120_000, simulated: 15_000 };

/** As fast as real services on a machine of their own, roughly. */
const SIMULATED_SETTINGS = { bootMs: 1500, deleteMs: 300, latencyMs: 20 };

export async function simulatedCloud(): Promise<ShowCloud> {
  const cloud = await startSimulatedOpenStack({ settings: SIMULATED_SETTINGS });
  return {
    kind: 'simulated',
    cloudsYaml: cloud.cloudsYaml,
    restartKeystone: async () => {
      const away = cloud.faults.add({ on: 'identity', times: Infinity, fault: { kind: 'cut', when: 'before' } });
      cloud.faults.revokeTokens();
      await sleep(systemClock, KEYSTONE_AWAY_MS);
      away.remove();
    },
    regionAwayMs: REGION_AWAY_MS.simulated,
    close: () => cloud.close(),
  };
}

/** The services that run, or those that are started for this. A text says why there are none. */
export async function realCloud(say: (line: string) => void): Promise<ShowCloud | string> {
  const found = await takeRealOpenStack(say);
  if (typeof found === 'string') return found;
  const { cloudsYaml, restartKeystone } = found;
  const regionAwayMs = REGION_AWAY_MS.real;
  return { kind: 'real', cloudsYaml, restartKeystone, regionAwayMs, close: () => found.release() };
}

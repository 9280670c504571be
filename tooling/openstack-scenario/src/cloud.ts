/** The cloud for the scenario. */

import { startSimulatedOpenStack } from '@nodepool/simulated-openstack';
import { sleep, systemClock } from '@nodepool/core';
import { openRealOpenStack } from './real-openstack.js';

export interface ScenarioCloud {
  readonly kind: 'real' | 'simulated';
  /** Path of a clouds.yaml with the clouds `real` and `limited`. */
  readonly cloudsYaml: string;
  /** Restarts keystone and resolves once it answers; undefined if this process may not restart it. */
  readonly restartKeystone: (() => Promise<void>) | undefined;
  /** Time for which the API of a region is unreachable (ms). */
  readonly regionAwayMs: number;
  /** Stops the parts that were started for the scenario. */
  close(): Promise<void>;
}

/** Downtime of the simulated keystone (ms). */
const KEYSTONE_AWAY_MS = 3000;

/** Time for which the API of a region is unreachable, on real and on simulated services (ms). */
const REGION_AWAY_MS = { real: 120_000, simulated: 15_000 };

/** Roughly the speed of real services on a separate machine. */
const SIMULATED_SETTINGS = { bootMs: 1500, deleteMs: 300, latencyMs: 20 };

export async function simulatedCloud(): Promise<ScenarioCloud> {
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

/** Uses running services or starts some. Returns the reason if that is impossible here. */
export async function realCloud(
  say: (line: string) => void,
  interrupted: AbortSignal,
): Promise<ScenarioCloud | string> {
  const found = await openRealOpenStack(say, interrupted);
  if (typeof found === 'string') return found;
  const { cloudsYaml, restartKeystone } = found;
  const regionAwayMs = REGION_AWAY_MS.real;
  return { kind: 'real', cloudsYaml, restartKeystone, regionAwayMs, close: () => found.release() };
}

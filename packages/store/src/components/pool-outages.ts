/** The machines of a pool that its launchers cannot use. */

import type { MachineOutage, PoolComponentData } from './component.js';

/** Limit of the machines in a component, because its size is limited. */
export const MAX_OUTAGES = 200;

export interface PoolOutage extends MachineOutage {
  /** Hostnames of the launchers that cannot use the machine, if any launcher can; otherwise empty. */
  readonly onlyFor: readonly string[];
}

/** Returns the machines that launchers of one pool cannot use, each once. `pools`: its components. */
export function poolOutages(pools: readonly PoolComponentData[]): readonly PoolOutage[] {
  const byMachine = new Map<string, { outage: MachineOutage; readonly pools: Set<PoolComponentData> }>();
  for (const pool of pools) {
    for (const outage of pool.out_of_service ?? []) {
      const known = byMachine.get(outage.machine);
      if (known === undefined) byMachine.set(outage.machine, { outage, pools: new Set([pool]) });
      else known.pools.add(pool);
      // The last launcher that could use the machine tells since when none can.
      if (known !== undefined && outage.since > known.outage.since) known.outage = outage;
    }
  }
  return [...byMachine.values()].map(({ outage, pools: affected }) => {
    const canUse = pools.some((pool) => !affected.has(pool) && tells(pool));
    return { ...outage, onlyFor: canUse ? [...new Set([...affected].map(({ hostname }) => hostname))].sort() : [] };
  });
}

/** Returns true if the launcher would name every machine that it cannot use. */
function tells({ state, out_of_service: { length } = [] }: PoolComponentData): boolean {
  return state === 'running' && length < MAX_OUTAGES;
}

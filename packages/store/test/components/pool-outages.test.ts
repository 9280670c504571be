/** The machines of a pool that all launchers, or only some, cannot use. */

import { describe, expect, it } from '@jest/globals';
import { MAX_OUTAGES, poolOutages, type MachineOutage, type PoolComponentData } from '@nodepool/store';

const outage = (machine: string, since: number): MachineOutage => ({
  ...{ machine, labels: ['small'], slots: 1, reason: 'no route', since },
});

function launcher(hostname: string, out: readonly MachineOutage[], more: Partial<PoolComponentData> = {}) {
  return {
    ...{ hostname, kind: 'pool', state: 'running', version: '1', model_api: 0, id: hostname, name: 'main' },
    ...{ provider_name: 'rack', supported_labels: ['small'], priority: 100, paused: false, out_of_service: out },
    ...more,
  } as const satisfies PoolComponentData;
}

describe('a machine is out of service', () => {
  it('if no launcher of its pool can use it, since the last one could', () => {
    const pools = [launcher('a', [outage('rack1', 10)]), launcher('b', [outage('rack1', 30)])];
    expect(poolOutages(pools)).toEqual([{ ...outage('rack1', 30), onlyFor: [] }]);
  });

  it('only for those that cannot use it, if another one can', () => {
    const pools = [launcher('b', [outage('rack1', 10)]), launcher('a', [outage('rack1', 30)]), launcher('c', [])];
    expect(poolOutages(pools)).toEqual([{ ...outage('rack1', 30), onlyFor: ['a', 'b'] }]);
  });

  it('for all, if the others are starting or have more outages than they can tell', () => {
    const many = Array.from({ length: MAX_OUTAGES }, (_, index) => outage(`other${index}`, 1));
    const pools = [
      launcher('a', [outage('rack1', 10)]),
      launcher('b', [], { state: 'initializing' }),
      launcher('c', many),
    ];
    expect(poolOutages(pools)[0]).toEqual({ ...outage('rack1', 10), onlyFor: [] });
  });
});

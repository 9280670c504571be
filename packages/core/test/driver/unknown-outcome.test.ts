/** Create calls with an unknown outcome. */

import { VirtualClock } from '@nodepool/core/testing';
import { describe, expect, it } from '@jest/globals';
import { CapacityError } from '../../src/index.js';
import { ProviderHarness } from './provider-harness.js';
import { TinyCloud } from './tiny-cloud.js';
import { driverOf, machineAdapter, machineDriver, simpleDriver } from './tiny-drivers.js';

it('a machine waits at most two minutes for the answer to one call, also in a longer launch', async () => {
  const clock = new VirtualClock();
  const cloud = new TinyCloud(clock);
  const adapter = machineAdapter(cloud);
  const times: number[] = [];
  const watched = machineAdapter(cloud, {
    getCreateStateMachine: (request, saved) => {
      const machine = adapter.getCreateStateMachine(request, saved);
      const advance = machine.advance.bind(machine);
      machine.advance = (call) => {
        times.push(call.deadline - clock.monotonic());
        return advance(call);
      };
      return machine;
    },
  });
  const harness = await new ProviderHarness(clock, driverOf(watched)).start();
  await harness.finish(harness.launch({ deadline: clock.monotonic() + 3_600_000 }));
  expect(new Set(times)).toEqual(new Set([120_000]));
  times.length = 0;
  await harness.finish(harness.launch({ deadline: clock.monotonic() + 60_000 }));
  expect(times[0]).toBe(60_000);
});

describe.each([
  ['state machines', machineDriver],
  ['the simple framework', simpleDriver],
])('a launch on %s whose create call has an unknown outcome', (_name, driver) => {
  it('continues with the instance that the call created', async () => {
    const clock = new VirtualClock();
    const cloud = new TinyCloud(clock);
    cloud.failNext('create', { kind: 'lose-answer' });
    const harness = await new ProviderHarness(clock, driver(cloud)).start();
    expect(await harness.finish(harness.launch())).toMatchObject({ externalId: 'i-1' });
    expect(cloud.existing).toEqual(['i-1']);
    expect(cloud.calls.create).toBe(1);
  });

  it('finds the instance although the list lags and the call took effect late', async () => {
    const clock = new VirtualClock();
    const cloud = new TinyCloud(clock, { lagMs: 3000 });
    cloud.failNext('create', { kind: 'late-effect', ms: 3000 });
    const harness = await new ProviderHarness(clock, driver(cloud)).start();
    expect(await harness.finish(harness.launch())).toMatchObject({ externalId: 'i-1' });
    expect(cloud.calls.create).toBe(1);
  });

  it('fails with outcome not-applied when the cloud does not list the instance for some time', async () => {
    const clock = new VirtualClock();
    const cloud = new TinyCloud(clock);
    cloud.failNext('create', { kind: 'late-effect', ms: 120_000 });
    const harness = await new ProviderHarness(clock, driver(cloud)).start();
    await expect(harness.finish(harness.launch())).rejects.toMatchObject({ outcome: 'not-applied' });
    expect(cloud.calls).toMatchObject({ create: 1 });
    expect(cloud.calls.list).toBeGreaterThanOrEqual(3);
  });

  it('does not search when the cloud has rejected the call', async () => {
    const clock = new VirtualClock();
    const cloud = new TinyCloud(clock);
    cloud.failNext('create', { kind: 'refuse', error: new CapacityError('no host is free') });
    const harness = await new ProviderHarness(clock, driver(cloud)).start();
    await expect(harness.finish(harness.launch())).rejects.toMatchObject({ code: 'capacity' });
    expect(cloud.calls.list).toBe(0);
  });
});

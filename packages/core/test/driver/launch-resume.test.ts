/** A launch that another process resumes from the state saved at any of its steps. */

import { VirtualClock } from '@nodepool/core/testing';
import { describe, expect, it } from '@jest/globals';
import { InstanceFailedError, type Driver, type JsonValue, type StateMachine } from '../../src/index.js';
import { INSTALLATION, ProviderHarness } from './provider-harness.js';
import { TinyCloud } from './tiny-cloud.js';
import { driverOf, machineAdapter, machineDriver, simpleDriver } from './tiny-drivers.js';

/** Returns a driver that passes its create machines to `onStep` after every step. */
function recording(cloud: TinyCloud, onStep: (machine: StateMachine) => void): Driver {
  const adapter = machineAdapter(cloud);
  return driverOf({
    ...adapter,
    getCreateStateMachine: (request, saved) => {
      const machine = adapter.getCreateStateMachine(request, saved);
      const advance = machine.advance.bind(machine);
      machine.advance = (call) => {
        const next = advance(call);
        onStep(machine);
        return next;
      };
      return machine;
    },
  });
}

const STEPS = ['creating', 'booting', 'attaching', 'checking'];

describe('a launch on state machines', () => {
  it('reaches every state that the tests below use', async () => {
    const clock = new VirtualClock();
    const states = new Set<string>();
    const harness = await new ProviderHarness(
      clock,
      recording(new TinyCloud(clock), (machine) => states.add(machine.state)),
    ).start();
    await harness.finish(harness.launch());
    expect([...states]).toEqual([...STEPS, 'complete']);
  });

  it.each(STEPS)('resumes in another process from saved state %s without a second instance', async (state) => {
    const clock = new VirtualClock();
    const cloud = new TinyCloud(clock);
    let saved: { text: string; externalId: StateMachine['externalId'] } | undefined;
    const killed = new AbortController();
    const first = await new ProviderHarness(
      clock,
      recording(cloud, (machine) => {
        if (machine.state !== state || saved !== undefined) return;
        saved = { text: JSON.stringify(machine.save()), externalId: machine.externalId };
        // The call in progress reaches the cloud, but its response is lost.
        clock.schedule(8, () => killed.abort(new Error('killed')));
      }),
    ).start();
    await expect(first.finish(first.launch({ signal: killed.signal }))).rejects.toMatchObject({ code: 'aborted' });

    const second = await new ProviderHarness(clock, machineDriver(cloud)).start();
    const instance = await second.finish(
      second.launch({
        saved: JSON.parse(saved!.text) as JsonValue,
        externalId: saved!.externalId ?? null,
      }),
    );
    expect(instance).toMatchObject({ externalId: 'i-1', interfaceIp: '192.0.2.1' });
    expect(cloud.calls.create).toBe(1);
    expect(cloud.existing).toEqual(['i-1']);
  });

  it('saves its state when the external id is known, then on each further state in which it waits', async () => {
    const clock = new VirtualClock();
    const harness = await new ProviderHarness(clock, machineDriver(new TinyCloud(clock))).start();
    await harness.finish(harness.launch());
    expect(harness.saves).toEqual(
      ['booting', 'attaching', 'checking'].map((state) => ({ externalId: 'i-1', machine: { state } })),
    );
  });

  it('saves the external id of an instance that a failing step finds', async () => {
    const clock = new VirtualClock();
    const adapter = machineAdapter(new TinyCloud(clock));
    const failing = driverOf({
      ...adapter,
      getCreateStateMachine: (request, saved) => {
        const machine = adapter.getCreateStateMachine(request, saved);
        const advance = machine.advance.bind(machine);
        machine.advance = (call) => {
          const next = advance(call);
          if (machine.externalId !== undefined) throw new InstanceFailedError('the instance failed while it booted');
          return next;
        };
        return machine;
      },
    });
    const harness = await new ProviderHarness(clock, failing).start();
    await expect(harness.finish(harness.launch())).rejects.toMatchObject({ code: 'instance-failed' });
    expect(harness.saves).toEqual([{ externalId: 'i-1', machine: { state: 'booting' } }]);
  });

  it('writes one state at a time, and skips states that a later one replaces', async () => {
    const clock = new VirtualClock();
    const harness = await new ProviderHarness(clock, machineDriver(new TinyCloud(clock))).start();
    const written: unknown[] = [];
    let underway = 0;
    const launch = harness.launch({
      save: ({ machine }) =>
        new Promise((resolve) => {
          expect(++underway).toBe(1);
          clock.schedule(6000, () => {
            underway -= 1;
            written.push(machine);
            resolve();
          });
        }),
    });
    await harness.finish(launch);
    // The state `attaching` began and ended during the first write.
    expect(written).toEqual([{ state: 'booting' }, { state: 'checking' }]);
    expect(underway).toBe(0);
  });

  it('saves nothing for an instance that is ready at once', async () => {
    const clock = new VirtualClock();
    const cloud = new TinyCloud(clock);
    const tags = {
      nodepool_node_id: '0000000001',
      nodepool_provider_name: 'tiny',
      nodepool_installation: INSTALLATION,
      nodepool_launch_attempt: 'attempt-0000000001',
    };
    const instance = { externalId: 'i-1', ready: true, deleted: false, tags };
    const adapter = machineAdapter(cloud, {
      getCreateStateMachine: () => {
        let steps = 0;
        return {
          state: 'start',
          externalId: 'i-1',
          complete: false,
          save: () => ({}),
          advance: () => (++steps < 3 ? { next: 'call', settled: Promise.resolve() } : { next: 'complete', instance }),
        };
      },
    });
    const harness = await new ProviderHarness(clock, driverOf(adapter)).start();
    await harness.finish(harness.launch());
    expect(harness.saves).toEqual([]);
  });

  it('fails with the error of the save, because another launcher may own the node', async () => {
    const clock = new VirtualClock();
    const cloud = new TinyCloud(clock);
    const harness = await new ProviderHarness(clock, machineDriver(cloud)).start();
    const lost = new Error('the lock is lost');
    const launch = harness.launch({ save: () => Promise.reject(lost) });
    await expect(harness.finish(launch)).rejects.toBe(lost);
    await clock.advance(60_000);
    expect(cloud.calls.attach).toBe(0);
  });
});

describe('a launch on the simple framework', () => {
  it.each([
    ['the create call was pending', { state: 'creating' }, null],
    ['the instance was known', { state: 'waiting' }, 'i-1'],
    ['only the external id was saved', null, 'i-1'],
  ])('resumes in another process when %s', async (_when, saved, externalId) => {
    const clock = new VirtualClock();
    const cloud = new TinyCloud(clock);
    const killed = new AbortController();
    const first = await new ProviderHarness(clock, simpleDriver(cloud)).start();
    const launch = first.launch({ signal: killed.signal });
    await clock.advance(100);
    killed.abort();
    await expect(first.finish(launch)).rejects.toMatchObject({ code: 'aborted' });
    const second = await new ProviderHarness(clock, simpleDriver(cloud)).start();
    expect(await second.finish(second.launch({ saved, externalId }))).toMatchObject({ externalId: 'i-1' });
    expect(cloud.existing).toEqual(['i-1']);
  });

  it('creates no second instance for an attempt whose instance is not found', async () => {
    const clock = new VirtualClock();
    const cloud = new TinyCloud(clock);
    const harness = await new ProviderHarness(clock, simpleDriver(cloud)).start();
    const launch = harness.launch({ saved: { state: 'creating' } });
    await expect(harness.finish(launch)).rejects.toMatchObject({ code: 'transient', outcome: 'not-applied' });
    expect(cloud.calls.create).toBe(0);
  });
});

/** Launches that fail, and drivers that violate the API. */

import { VirtualClock } from '@nodepool/core/testing';
import { describe, expect, it } from '@jest/globals';
import {
  driverCall,
  ThrottledError,
  TransientError,
  type Adapter,
  type Advance,
  type DriverError,
  type MachineCall,
  type StateMachine,
} from '../../src/index.js';
import { ProviderHarness, watch } from './provider-harness.js';
import { TinyCloud } from './tiny-cloud.js';
import { driverOf, machineAdapter, machineDriver, simpleDriver } from './tiny-drivers.js';

function machine(advance: (call: MachineCall) => Advance): StateMachine {
  return { state: 'odd', externalId: undefined, save: () => null, advance };
}

async function harnessWith(overrides: Partial<Adapter>): Promise<ProviderHarness> {
  const clock = new VirtualClock();
  return new ProviderHarness(clock, driverOf(machineAdapter(new TinyCloud(clock), overrides))).start();
}

describe('a launch', () => {
  it.each([
    ['state machines', machineDriver],
    ['the simple framework', simpleDriver],
  ])('on %s fails when its instance fails', async (_name, driver) => {
    const clock = new VirtualClock();
    const cloud = new TinyCloud(clock);
    const harness = await new ProviderHarness(clock, driver(cloud)).start();
    const launch = harness.launch();
    await clock.advance(100);
    cloud.breakInstance('i-1', 'the disk is broken');
    await expect(harness.finish(launch)).rejects.toMatchObject({
      code: 'instance-failed',
      message: expect.stringContaining('the disk is broken'),
    });
  });

  it('on the simple framework fails when its instance disappears', async () => {
    const clock = new VirtualClock();
    const cloud = new TinyCloud(clock, { bootMs: 300_000 });
    const harness = await new ProviderHarness(clock, simpleDriver(cloud)).start();
    const launch = harness.launch();
    await clock.advance(5000);
    cloud.preempt('i-1');
    await expect(harness.finish(launch)).rejects.toMatchObject({ code: 'instance-failed' });
  });

  it('times out at its deadline and names its state', async () => {
    const clock = new VirtualClock();
    const harness = await new ProviderHarness(clock, machineDriver(new TinyCloud(clock, { bootMs: 1e9 }))).start();
    const launch = harness.launch({ deadline: 30_000 });
    await expect(harness.finish(launch)).rejects.toMatchObject({
      code: 'timeout',
      message: 'launch of node 0000000001 did not end within 30000 ms, in state "booting", waiting for a listing',
    });
    expect(clock.monotonic()).toBe(30_000);
    expect(clock.pending).toBe(0);
  });

  it('reports the failed listing that it awaited when it times out', async () => {
    const clock = new VirtualClock();
    const cloud = new TinyCloud(clock);
    const refuse = { kind: 'refuse', error: new Error('the cloud is closed') } as const;
    cloud.failNext('list', ...Array.from({ length: 20 }, () => refuse));
    const harness = await new ProviderHarness(clock, machineDriver(cloud)).start();
    await expect(harness.finish(harness.launch({ deadline: 30_000 }))).rejects.toMatchObject({
      code: 'timeout',
      message: expect.stringContaining('the cloud is closed'),
    });
  });

  it.each<[string, DriverError | undefined, number]>([
    ['repeats a failed step', new TransientError('503'), 2],
    ['does not repeat a step that was throttled', new ThrottledError('slow down'), 1],
    ['does not end a wait without a failure', undefined, 1],
  ])('%s at once when a listing succeeds after an outage', async (_what, failure, expected) => {
    const clock = new VirtualClock();
    const cloud = new TinyCloud(clock);
    let steps = 0;
    const advance = ({ onRetry }: MachineCall): Advance => {
      steps += 1;
      if (failure !== undefined) onRetry?.(failure);
      return { next: 'delay', ms: 60_000 };
    };
    const adapter = machineAdapter(cloud, { getCreateStateMachine: () => machine(advance) });
    const harness = await new ProviderHarness(clock, driverOf(adapter)).start();
    const controller = new AbortController();
    const launch = harness.launch({ signal: controller.signal });
    const list = (): Promise<unknown> =>
      harness.finish(watch(harness.provider.listNodes(harness.call()))).catch(() => undefined);
    cloud.failNext('list', { kind: 'refuse', error: new TransientError('503') });
    await list();
    expect(steps).toBe(1);
    await list();
    await clock.advance(1000);
    expect(steps).toBe(expected);
    controller.abort();
    await expect(harness.finish(launch)).rejects.toMatchObject({ code: 'aborted' });
  });

  it('times out at its deadline if the driver never settles', async () => {
    const clock = new VirtualClock();
    const cloud = new TinyCloud(clock);
    cloud.failNext('create', { kind: 'hang' });
    const harness = await new ProviderHarness(clock, machineDriver(cloud)).start();
    await expect(harness.finish(harness.launch({ deadline: 30_000 }))).rejects.toMatchObject({ code: 'timeout' });
  });

  it('does not start if it is already aborted or past its deadline', async () => {
    const clock = new VirtualClock();
    const cloud = new TinyCloud(clock);
    const harness = await new ProviderHarness(clock, machineDriver(cloud)).start();
    await expect(harness.finish(harness.launch({ signal: AbortSignal.abort() }))).rejects.toMatchObject({
      code: 'aborted',
    });
    await expect(harness.finish(harness.launch({ deadline: 0 }))).rejects.toMatchObject({ code: 'timeout' });
    expect(cloud.calls.create).toBe(0);
  });

  it('does not call its machine after an abort', async () => {
    const controller = new AbortController();
    let steps = 0;
    const harness = await harnessWith({
      getCreateStateMachine: () =>
        machine(() => {
          steps += 1;
          return { next: 'delay', ms: 100 };
        }),
    });
    const launch = harness.launch({ signal: controller.signal });
    await harness.clock.advance(1050);
    controller.abort();
    await expect(harness.finish(launch)).rejects.toMatchObject({ code: 'aborted' });
    await harness.clock.advance(10_000);
    expect(steps).toBe(11);
  });

  it('aborts the calls of a machine that has failed', async () => {
    let signal: AbortSignal | undefined;
    const harness = await harnessWith({
      getCreateStateMachine: () => ({
        ...machine(() => ({ next: 'listing' })),
        advance: (call) => {
          signal = call.signal;
          return { next: 'call', settled: new Promise(() => undefined) };
        },
      }),
    });
    await expect(harness.finish(harness.launch({ deadline: 1000 }))).rejects.toMatchObject({ code: 'timeout' });
    expect(signal?.aborted).toBe(true);
  });

  it('fails for a label that the pool does not have', async () => {
    const harness = await harnessWith({});
    await expect(harness.finish(harness.launch({ label: 'huge' }))).rejects.toMatchObject({ code: 'configuration' });
  });
});

describe('a defective driver', () => {
  it.each<[string, () => StateMachine]>([
    [
      'throws while it creates a machine',
      () => {
        throw new TypeError('no such thing');
      },
    ],
    [
      'throws in a step',
      () =>
        machine(() => {
          throw new TypeError('no such thing');
        }),
    ],
    ['throws a non-Error value', () => machine(() => { throw 'no such thing' as unknown; })], // prettier-ignore
    ['returns nothing', () => machine(() => undefined as never)],
    ['returns an unknown action', () => machine(() => ({ next: 'coffee' }) as never)],
    ['returns a call that is not a promise', () => machine(() => ({ next: 'call' }) as never)],
    ['returns a delay that is not a number', () => machine(() => ({ next: 'delay', ms: NaN }))],
    ['completes without an instance', () => machine(() => ({ next: 'complete' }))],
    [
      'completes with an instance that is not ready',
      () =>
        machine(() => ({ next: 'complete', instance: { externalId: 'x', ready: false, deleted: false, tags: {} } })),
    ],
    [
      'cannot be saved',
      () => ({
        ...machine(() => ({ next: 'listing' })),
        externalId: 'x',
        save: () => {
          throw new TypeError('no such thing');
        },
      }),
    ],
  ])('that %s fails the launch with a typed error', async (_what, getCreateStateMachine) => {
    const harness = await harnessWith({ getCreateStateMachine });
    await expect(harness.finish(harness.launch())).rejects.toMatchObject({ code: 'unexpected' });
    expect(harness.clock.pending).toBe(0);
  });

  it('does not block the process if its calls settle synchronously', async () => {
    const harness = await harnessWith({
      getCreateStateMachine: () => machine(() => ({ next: 'call', settled: Promise.resolve() })),
    });
    await expect(harness.finish(harness.launch({ deadline: 500 }))).rejects.toMatchObject({ code: 'timeout' });
  });

  it('that throws from labelReady makes the label not ready', async () => {
    const harness = await harnessWith({
      labelReady: () => {
        throw new Error('the flavors are not known');
      },
    });
    expect(harness.provider.labelReady('main', 'small')).toEqual({ ready: false, reason: 'the flavors are not known' });
  });

  it('that never answers delays only its caller, until the deadline', async () => {
    const harness = await harnessWith({ listInstances: () => new Promise(() => undefined) });
    const { provider, clock } = harness;
    const listed = driverCall(clock, 'the list', harness.call(), (bounded) => provider.listNodes(bounded));
    await expect(harness.finish(watch(listed))).rejects.toMatchObject({ code: 'timeout' });
    expect(clock.pending).toBe(0);
  });

  it('that never answers ends for its caller when the provider is stopped', async () => {
    const harness = await harnessWith({ listInstances: () => new Promise(() => undefined) });
    const listed = watch(harness.provider.listNodes(harness.call()));
    harness.provider.stop();
    await expect(harness.finish(listed)).rejects.toMatchObject({ code: 'aborted' });
    expect(harness.clock.monotonic()).toBe(0);
  });

  it('whose calls do not stop is abandoned', async () => {
    const harness = await harnessWith({ stop: () => new Promise(() => undefined) });
    harness.provider.stop();
    await harness.finish(watch(harness.provider.join()));
    expect(harness.clock.pending).toBe(0);
  });
});

describe('a provider', () => {
  it('shows each machine in progress with its pending call', async () => {
    const clock = new VirtualClock();
    const harness = await new ProviderHarness(clock, machineDriver(new TinyCloud(clock))).start();
    const launch = harness.launch();
    await clock.advance(3);
    expect(harness.provider.inspect?.()).toEqual([
      {
        kind: 'create',
        nodeId: '0000000001',
        externalId: undefined,
        state: 'creating',
        ageMs: 3,
        waitingFor: 'call',
        waitingMs: 3,
      },
    ]);
    await clock.advance(97);
    expect(harness.provider.inspect?.()).toMatchObject([
      { state: 'booting', externalId: 'i-1', waitingFor: 'listing' },
    ]);
    await harness.finish(launch);
    expect(harness.provider.inspect?.()).toEqual([]);
  });

  it('has only the optional methods that its adapter has', async () => {
    const harness = await harnessWith({});
    const { provider } = harness;
    expect(await provider.getAvailabilityZones?.('main', harness.call())).toEqual(['a', 'b']);
    expect(provider.getQuotaLimits).toBeDefined();
    expect(provider.getConsoleLog).toBeUndefined();
    expect(provider.images).toBeUndefined();
  });

  it('makes no calls after it was stopped', async () => {
    const harness = await harnessWith({});
    harness.provider.stop();
    await expect(harness.provider.listNodes(harness.call())).rejects.toMatchObject({ code: 'aborted' });
    await expect(harness.finish(harness.launch())).rejects.toMatchObject({ code: 'aborted' });
  });
});

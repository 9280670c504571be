/** Launches that fail, and drivers that violate the API. */

import { VirtualClock } from '@nodepool/core/testing';
import { describe, expect, it } from '@jest/globals';
import type { Adapter, Advance, StateMachine } from '../../src/index.js';
import { Bench, watch } from './bench.js';
import { TinyCloud } from './tiny-cloud.js';
import { driverOf, machineAdapter, machineDriver, simpleDriver } from './tiny-drivers.js';

function machine(advance: () => Advance): StateMachine {
  return { state: 'odd', externalId: undefined, save: () => null, advance };
}

async function benchWith(overrides: Partial<Adapter>): Promise<Bench> {
  const clock = new VirtualClock();
  return new Bench(clock, driverOf(machineAdapter(new TinyCloud(clock), overrides))).start();
}

describe('a launch', () => {
  it.each([
    ['state machines', machineDriver],
    ['the simple framework', simpleDriver],
  ])('on %s fails when its instance fails', async (_name, driver) => {
    const clock = new VirtualClock();
    const cloud = new TinyCloud(clock);
    const bench = await new Bench(clock, driver(cloud)).start();
    const launch = bench.launch();
    await clock.advance(100);
    cloud.breakInstance('i-1', 'the disk is broken');
    await expect(bench.finish(launch)).rejects.toMatchObject({
      code: 'instance-failed',
      message: expect.stringContaining('the disk is broken'),
    });
  });

  it('on the simple framework fails when its instance disappears', async () => {
    const clock = new VirtualClock();
    const cloud = new TinyCloud(clock, { bootMs: 300_000 });
    const bench = await new Bench(clock, simpleDriver(cloud)).start();
    const launch = bench.launch();
    await clock.advance(5000);
    cloud.preempt('i-1');
    await expect(bench.finish(launch)).rejects.toMatchObject({ code: 'instance-failed' });
  });

  it('times out at its deadline and names its state', async () => {
    const clock = new VirtualClock();
    const bench = await new Bench(clock, machineDriver(new TinyCloud(clock, { bootMs: 1e9 }))).start();
    const launch = bench.launch({ deadline: 30_000 });
    await expect(bench.finish(launch)).rejects.toMatchObject({
      code: 'timeout',
      message: 'launch of node 0000000001 did not end within 30000 ms, in state "booting", waiting for a listing',
    });
    expect(clock.monotonic()).toBe(30_000);
    expect(clock.pending).toBe(0);
  });

  it('names the failure of the list that it has waited for until its deadline', async () => {
    const clock = new VirtualClock();
    const cloud = new TinyCloud(clock);
    const refuse = { kind: 'refuse', error: new Error('the cloud is closed') } as const;
    cloud.failNext('list', ...Array.from({ length: 20 }, () => refuse));
    const bench = await new Bench(clock, machineDriver(cloud)).start();
    await expect(bench.finish(bench.launch({ deadline: 30_000 }))).rejects.toMatchObject({
      code: 'timeout',
      message: expect.stringContaining('the cloud is closed'),
    });
  });

  it('times out at its deadline if the driver never settles', async () => {
    const clock = new VirtualClock();
    const cloud = new TinyCloud(clock);
    cloud.failNext('create', { kind: 'hang' });
    const bench = await new Bench(clock, machineDriver(cloud)).start();
    await expect(bench.finish(bench.launch({ deadline: 30_000 }))).rejects.toMatchObject({ code: 'timeout' });
  });

  it('does not start if it is already aborted or past its deadline', async () => {
    const clock = new VirtualClock();
    const cloud = new TinyCloud(clock);
    const bench = await new Bench(clock, machineDriver(cloud)).start();
    await expect(bench.finish(bench.launch({ signal: AbortSignal.abort() }))).rejects.toMatchObject({
      code: 'aborted',
    });
    await expect(bench.finish(bench.launch({ deadline: 0 }))).rejects.toMatchObject({ code: 'timeout' });
    expect(cloud.calls.create).toBe(0);
  });

  it('does not use its machine after it is aborted', async () => {
    const controller = new AbortController();
    let steps = 0;
    const bench = await benchWith({
      getCreateStateMachine: () =>
        machine(() => {
          steps += 1;
          return { next: 'delay', ms: 100 };
        }),
    });
    const launch = bench.launch({ signal: controller.signal });
    await bench.clock.advance(1050);
    controller.abort();
    await expect(bench.finish(launch)).rejects.toMatchObject({ code: 'aborted' });
    await bench.clock.advance(10_000);
    expect(steps).toBe(11);
  });

  it('aborts the calls of a machine that has failed', async () => {
    let signal: AbortSignal | undefined;
    const bench = await benchWith({
      getCreateStateMachine: () => ({
        ...machine(() => ({ next: 'listing' })),
        advance: (call) => {
          signal = call.signal;
          return { next: 'call', settled: new Promise(() => undefined) };
        },
      }),
    });
    await expect(bench.finish(bench.launch({ deadline: 1000 }))).rejects.toMatchObject({ code: 'timeout' });
    expect(signal?.aborted).toBe(true);
  });

  it('fails for a label that the pool does not have', async () => {
    const bench = await benchWith({});
    await expect(bench.finish(bench.launch({ label: 'huge' }))).rejects.toMatchObject({ code: 'configuration' });
  });
});

describe('a driver that misbehaves', () => {
  it.each<[string, () => StateMachine]>([
    [
      'throws while it makes a machine',
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
    ['throws something that is no error', () => machine(() => { throw 'no such thing' as unknown; })], // prettier-ignore
    ['gives nothing', () => machine(() => undefined as never)],
    ['asks for something unknown', () => machine(() => ({ next: 'coffee' }) as never)],
    ['gives a call that is no promise', () => machine(() => ({ next: 'call' }) as never)],
    ['asks for a delay that is not a number', () => machine(() => ({ next: 'delay', ms: NaN }))],
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
  ])('and %s fails the launch with a typed error', async (_what, getCreateStateMachine) => {
    const bench = await benchWith({ getCreateStateMachine });
    await expect(bench.finish(bench.launch())).rejects.toMatchObject({ code: 'unexpected' });
    expect(bench.clock.pending).toBe(0);
  });

  it('and whose calls always settle at once does not block the process', async () => {
    const bench = await benchWith({
      getCreateStateMachine: () => machine(() => ({ next: 'call', settled: Promise.resolve() })),
    });
    await expect(bench.finish(bench.launch({ deadline: 500 }))).rejects.toMatchObject({ code: 'timeout' });
  });

  it('and throws from the question whether a label is ready makes it not ready', async () => {
    const bench = await benchWith({
      labelReady: () => {
        throw new Error('the flavors are not known');
      },
    });
    expect(bench.provider.labelReady('main', 'small')).toEqual({ ready: false, reason: 'the flavors are not known' });
  });

  it('and never answers delays only the caller, until the deadline', async () => {
    const bench = await benchWith({ listInstances: () => new Promise(() => undefined) });
    await expect(bench.finish(watch(bench.provider.listNodes(bench.call())))).rejects.toMatchObject({
      code: 'timeout',
    });
  });

  it('and does not stop is abandoned', async () => {
    const bench = await benchWith({ stop: () => new Promise(() => undefined) });
    bench.provider.stop();
    await bench.finish(watch(bench.provider.join()));
    expect(bench.clock.pending).toBe(0);
  });
});

describe('a provider', () => {
  it('shows each machine in progress with what it waits for', async () => {
    const clock = new VirtualClock();
    const bench = await new Bench(clock, machineDriver(new TinyCloud(clock))).start();
    const launch = bench.launch();
    await clock.advance(3);
    expect(bench.provider.inspect?.()).toEqual([
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
    expect(bench.provider.inspect?.()).toMatchObject([{ state: 'booting', externalId: 'i-1', waitingFor: 'listing' }]);
    await bench.finish(launch);
    expect(bench.provider.inspect?.()).toEqual([]);
  });

  it('has the optional abilities that its adapter has, and no others', async () => {
    const bench = await benchWith({});
    const { provider } = bench;
    expect(await provider.getAvailabilityZones?.('main', bench.call())).toEqual(['a', 'b']);
    expect(provider.getQuotaLimits).toBeDefined();
    expect(provider.getConsoleLog).toBeUndefined();
    expect(provider.images).toBeUndefined();
  });

  it('calls nothing after it was stopped', async () => {
    const bench = await benchWith({});
    bench.provider.stop();
    await expect(bench.provider.listNodes(bench.call())).rejects.toMatchObject({ code: 'aborted' });
    await expect(bench.finish(bench.launch())).rejects.toMatchObject({ code: 'aborted' });
  });
});

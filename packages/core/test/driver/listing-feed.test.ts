/** The listing feed: waiting machines share one listing, and no listing is requested without them. */

import { VirtualClock } from '@nodepool/core/testing';
import { describe, expect, it } from '@jest/globals';
import { AuthError, RateLimiter, ThrottledError, TransientError, externalIdKey } from '../../src/index.js';
import { ProviderHarness, watch } from './provider-harness.js';
import { TinyCloud } from './tiny-cloud.js';
import { driverOf, machineAdapter, machineDriver, simpleDriver } from './tiny-drivers.js';

function listings(cloud: TinyCloud): number[] {
  return cloud.log.filter(({ operation }) => operation === 'list').map(({ at }) => at);
}

describe('the shared list of instances', () => {
  it.each([
    ['state machines', machineDriver],
    ['the simple framework', simpleDriver],
  ])('is requested once per round for 200 launches on %s', async (_name, driver) => {
    const clock = new VirtualClock();
    const cloud = new TinyCloud(clock);
    const harness = await new ProviderHarness(clock, driver(cloud)).start();
    const launches = Array.from({ length: 200 }, () => harness.launch());
    const instances = [];
    for (const launch of launches) instances.push(await harness.finish(launch));
    expect(new Set(instances.map(({ externalId }) => externalId)).size).toBe(200);
    const times = listings(cloud);
    expect(times.length).toBeLessThanOrEqual(Math.ceil(clock.monotonic() / 1000) + 1);
    const gaps = times.slice(1).map((at, index) => at - times[index]!);
    expect(Math.min(...gaps)).toBeGreaterThanOrEqual(1000);
  });

  it('is not requested, without a timer, while no launch or deletion is in progress', async () => {
    const clock = new VirtualClock();
    const cloud = new TinyCloud(clock);
    const harness = await new ProviderHarness(clock, machineDriver(cloud)).start();
    expect(clock.pending).toBe(0);
    await harness.finish(harness.launch());
    const count = cloud.calls.list;
    expect(clock.pending).toBe(0);
    await clock.advance(60_000);
    expect(cloud.calls.list).toBe(count);
  });

  it('is no longer requested when the last machine that waits for it is aborted', async () => {
    const clock = new VirtualClock();
    const cloud = new TinyCloud(clock, { latencyMs: 100 });
    const harness = await new ProviderHarness(clock, machineDriver(cloud)).start();
    const controller = new AbortController();
    const launch = harness.launch({ signal: controller.signal });
    await clock.runUntil(() => cloud.calls.list === 1);
    controller.abort();
    await expect(harness.finish(launch)).rejects.toMatchObject({ code: 'aborted' });
    await clock.settle();
    expect(clock.pending).toBe(0);
  });

  it('respects the interval of the adapter', async () => {
    const clock = new VirtualClock();
    const cloud = new TinyCloud(clock, { bootMs: 60_000 });
    const harness = await new ProviderHarness(
      clock,
      driverOf(machineAdapter(cloud, { listIntervalMs: 15_000 })),
    ).start();
    await harness.finish(harness.launch());
    const times = listings(cloud);
    expect(Math.min(...times.slice(1).map((at, index) => at - times[index]!))).toBeGreaterThanOrEqual(15_000);
  });

  it.each([
    ['throttling', new ThrottledError('slow down')],
    ['refused credentials', new AuthError('the token has expired')],
    ['a failure of the cloud', new TransientError('503')],
    ['a failure of the driver', new TypeError('undefined is not iterable')],
  ])('is requested again with growing delays after %s, and no launch fails', async (_what, error) => {
    const clock = new VirtualClock();
    const cloud = new TinyCloud(clock);
    cloud.failNext('list', ...Array.from({ length: 5 }, () => ({ kind: 'refuse', error }) as const));
    const harness = await new ProviderHarness(clock, machineDriver(cloud)).start();
    await harness.finish(harness.launch());
    const times = listings(cloud);
    const gaps = times.slice(1, 6).map((at, index) => at - times[index]!);
    expect(gaps[4]).toBeGreaterThan(4 * gaps[0]!);
  });

  it('is requested again soon once another listing has succeeded after failures', async () => {
    const clock = new VirtualClock();
    const cloud = new TinyCloud(clock);
    const error = new TransientError('503');
    cloud.failNext('list', ...Array.from({ length: 7 }, () => ({ kind: 'refuse', error }) as const));
    const harness = await new ProviderHarness(clock, machineDriver(cloud)).start();
    const launch = harness.launch();
    await clock.runUntil(() => cloud.calls.list === 7);
    await clock.advance(2000);
    await harness.finish(watch(harness.provider.listNodes(harness.call())));
    await harness.finish(launch);
    const [other = NaN, next = NaN] = listings(cloud).slice(7);
    expect(next - other).toBeLessThan(1100);
  });

  it('waits as long as a throttling cloud demands', async () => {
    const clock = new VirtualClock();
    const cloud = new TinyCloud(clock);
    cloud.failNext('list', { kind: 'refuse', error: new ThrottledError('slow down', { retryAfterMs: 90_000 }) });
    const harness = await new ProviderHarness(clock, machineDriver(cloud)).start();
    await harness.finish(harness.launch());
    const [first, second] = listings(cloud);
    expect(second! - first!).toBeGreaterThanOrEqual(90_000);
  });

  it('is requested again if it never arrives', async () => {
    const clock = new VirtualClock();
    const cloud = new TinyCloud(clock);
    cloud.failNext('list', { kind: 'hang' });
    const harness = await new ProviderHarness(clock, machineDriver(cloud)).start();
    expect(await harness.finish(harness.launch())).toMatchObject({ externalId: 'i-1' });
  });

  it('arrives although all pages of a large account take minutes at a low rate of calls', async () => {
    const clock = new VirtualClock();
    const cloud = new TinyCloud(clock);
    const limiter = new RateLimiter(clock, 0.1);
    const ended: number[] = [];
    const adapter = machineAdapter(cloud, {
      listInstances: async ({ signal }) => {
        for (let page = 0; page < 30; page += 1) await limiter.acquire(signal);
        ended.push(clock.monotonic());
        return cloud.list(signal);
      },
    });
    const harness = await new ProviderHarness(clock, driverOf(adapter)).start();
    const launch = harness.launch({ deadline: Infinity });
    expect(await harness.finish(launch)).toMatchObject({ externalId: 'i-1' });
    // The first two end at their limits of two and four minutes; later ones have enough time at once.
    expect(ended[0]).toBeGreaterThan(600_000);
    expect(ended[1]! - ended[0]!).toBeLessThan(320_000);
  });

  it.each([
    ['undefined', undefined],
    ['an object instead of an array', { instances: [] }],
    ['an instance without an id', [{ tags: {} }]],
    ['null', [null]],
  ])('is rejected if it is %s', async (_what, driverDefect) => {
    const clock = new VirtualClock();
    const cloud = new TinyCloud(clock);
    let calls = 0;
    const adapter = machineAdapter(cloud, {
      listInstances: async (call) => {
        calls += 1;
        return calls === 1 ? (driverDefect as never) : cloud.list(call.signal);
      },
    });
    const harness = await new ProviderHarness(clock, driverOf(adapter)).start();
    expect(await harness.finish(harness.launch())).toMatchObject({ externalId: 'i-1' });
  });
});

describe('the key of an external id', () => {
  it('is equal for equal objects with any order of fields', () => {
    expect(externalIdKey({ zone: 'a', name: 'x', deep: { b: [1, null], a: 2 } })).toBe(
      externalIdKey({ deep: { a: 2, b: [1, null] }, name: 'x', zone: 'a' }),
    );
    expect(externalIdKey({ name: 'x' })).not.toBe(externalIdKey({ name: 'y' }));
    expect(externalIdKey('x')).toBe('x');
  });
});

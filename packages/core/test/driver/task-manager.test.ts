/** Remote calls as tasks, and their rate. */

import { VirtualClock } from '@nodepool/core/testing';
import { describe, expect, it } from '@jest/globals';
import {
  BaseTaskManagerProvider,
  QuotaError,
  RateLimiter,
  ThrottledError,
  TransientError,
  createTaskManager,
  silentLogger,
  sleep,
  type ApiCall,
  type Call,
  type Task,
  type TaskManager,
} from '../../src/index.js';
import { watch } from './provider-harness.js';
import { tinyConfig } from './tiny-drivers.js';

class Harness {
  readonly clock = new VirtualClock();
  readonly calls: ApiCall[] = [];
  readonly events: string[] = [];
  readonly manager: TaskManager;

  constructor(callsPerSecond = Infinity, concurrency = 1) {
    this.manager = createTaskManager({
      clock: this.clock,
      callsPerSecond,
      concurrency,
      onApiCall: (call) => this.calls.push(call),
      log: silentLogger,
    });
  }

  call(changes: Partial<Call> = {}): Call {
    return { signal: new AbortController().signal, deadline: Infinity, log: silentLogger, ...changes };
  }

  task(name: string, ms = 10): Task<string> {
    return {
      service: 'compute',
      method: 'GET',
      operation: name,
      main: async (signal) => {
        this.events.push(`${name} starts at ${this.clock.monotonic()}`);
        await sleep(this.clock, ms, signal);
        return name;
      },
    };
  }
}

describe('a task manager', () => {
  it('runs tasks sequentially in order, and gives each caller its result', async () => {
    const harness = new Harness();
    const results = ['a', 'b', 'c'].map((name) => watch(harness.manager.submit(harness.task(name), harness.call())));
    expect(harness.manager.queueLength).toBe(2);
    await harness.clock.advance(100);
    expect(await Promise.all(results.map(({ promise }) => promise))).toEqual(['a', 'b', 'c']);
    expect(harness.events).toEqual(['a starts at 0', 'b starts at 10', 'c starts at 20']);
  });

  it('aborts a call after two minutes, or after the task’s own timeout', async () => {
    const harness = new Harness(Infinity, 2);
    const usual = watch(harness.manager.submit(harness.task('usual', 140_000), harness.call()));
    const longer = watch(
      harness.manager.submit({ ...harness.task('longer', 140_000), timeoutMs: 150_000 }, harness.call()),
    );
    await harness.clock.advance(145_000);
    await expect(usual.promise).rejects.toMatchObject({ code: 'timeout' });
    await expect(longer.promise).resolves.toBe('longer');
  });

  it('starts tasks at the configured rate', async () => {
    const harness = new Harness(4);
    for (const name of ['a', 'b', 'c']) watch(harness.manager.submit(harness.task(name), harness.call()));
    await harness.clock.advance(2000);
    expect(harness.events).toEqual(['a starts at 0', 'b starts at 250', 'c starts at 500']);
  });

  it('runs as many tasks concurrently as allowed', async () => {
    const harness = new Harness(Infinity, 2);
    for (const name of ['a', 'b', 'c']) watch(harness.manager.submit(harness.task(name), harness.call()));
    await harness.clock.advance(100);
    expect(harness.events).toEqual(['a starts at 0', 'b starts at 0', 'c starts at 10']);
  });

  it('passes an unchanged error to the caller, and continues', async () => {
    const harness = new Harness();
    const error = new QuotaError('full');
    const failing = watch(
      harness.manager.submit({ ...harness.task('a'), main: () => Promise.reject(error) }, harness.call()),
    );
    const throwing = watch(
      harness.manager.submit(
        {
          ...harness.task('b'),
          main: () => {
            throw error;
          },
        },
        harness.call(),
      ),
    );
    const next = watch(harness.manager.submit(harness.task('c'), harness.call()));
    await harness.clock.advance(100);
    await expect(failing.promise).rejects.toBe(error);
    await expect(throwing.promise).rejects.toBe(error);
    expect(await next.promise).toBe('c');
  });

  it('skips a task that is aborted while it waits, with outcome not-applied', async () => {
    const harness = new Harness();
    const controller = new AbortController();
    watch(harness.manager.submit(harness.task('a'), harness.call()));
    const waiting = watch(harness.manager.submit(harness.task('b'), harness.call({ signal: controller.signal })));
    controller.abort();
    await expect(waiting.promise).rejects.toMatchObject({ code: 'aborted', outcome: 'not-applied' });
    await harness.clock.advance(100);
    expect(harness.events).toEqual(['a starts at 0']);
    expect(harness.manager.queueLength).toBe(0);
  });

  it('aborts a running task at its deadline, and rejects one whose deadline has passed', async () => {
    const harness = new Harness();
    const running = watch(harness.manager.submit(harness.task('a', 1000), harness.call({ deadline: 50 })));
    const late = watch(harness.manager.submit(harness.task('b'), harness.call({ deadline: 0 })));
    await harness.clock.advance(2000);
    await expect(running.promise).rejects.toMatchObject({ code: 'timeout', outcome: 'not-applied' });
    await expect(late.promise).rejects.toMatchObject({ code: 'timeout', outcome: 'not-applied' });
    expect(harness.events).toEqual(['a starts at 0']);
  });

  it('does not count the wait in the queue against the deadline', async () => {
    const harness = new Harness();
    const first = watch(harness.manager.submit(harness.task('a', 100), harness.call()));
    const second = watch(harness.manager.submit(harness.task('b', 30), harness.call({ deadline: 40 })));
    const slow = watch(harness.manager.submit(harness.task('c', 1000), harness.call({ deadline: 40 })));
    await harness.clock.advance(5000);
    expect([await first.promise, await second.promise]).toEqual(['a', 'b']);
    await expect(slow.promise).rejects.toMatchObject({
      code: 'timeout',
      message: expect.stringContaining('no answer in time (40 ms)'),
    });
  });

  it('is not blocked by a call that never ends, even without a deadline of the caller', async () => {
    const harness = new Harness();
    const slow = watch(harness.manager.submit(harness.task('a', 1e9), harness.call()));
    const next = watch(harness.manager.submit(harness.task('b'), harness.call()));
    await harness.clock.advance(200_000);
    await expect(slow.promise).rejects.toMatchObject({ code: 'timeout', outcome: 'not-applied' });
    expect(await next.promise).toBe('b');
  });

  it('is not blocked by a task that ignores its signal', async () => {
    const harness = new Harness();
    const stuck = { ...harness.task('a'), main: () => new Promise<string>(() => undefined) };
    const given = watch(harness.manager.submit(stuck, harness.call({ deadline: 50 })));
    const next = watch(harness.manager.submit(harness.task('b'), harness.call()));
    await harness.clock.advance(60_000);
    await expect(given.promise).rejects.toMatchObject({ code: 'timeout' });
    expect(await next.promise).toBe('b');
  });

  it('reports every remote call', async () => {
    const harness = new Harness();
    watch(harness.manager.submit(harness.task('list'), harness.call()));
    watch(
      harness.manager.submit(
        { ...harness.task('create'), main: () => Promise.reject(new QuotaError('full')) },
        harness.call(),
      ),
    );
    watch(harness.manager.submit(harness.task('wait', 1e6), harness.call({ deadline: 100 })));
    await harness.clock.advance(1000);
    const more = { host: undefined, log: expect.anything() };
    expect(harness.calls).toEqual([
      { ...more, service: 'compute', method: 'GET', operation: 'list', durationMs: 10, status: 'ok' },
      { ...more, service: 'compute', method: 'GET', operation: 'create', durationMs: 0, status: 'quota' },
      { ...more, service: 'compute', method: 'GET', operation: 'wait', durationMs: 100, status: undefined },
    ]);
  });

  it('drains on stop: rejects new tasks, runs the waiting ones, ends', async () => {
    const harness = new Harness(1);
    const accepted = ['a', 'b'].map((name) => watch(harness.manager.submit(harness.task(name), harness.call())));
    harness.manager.stop();
    const joined = watch(harness.manager.join());
    await expect(harness.manager.submit(harness.task('c'), harness.call())).rejects.toMatchObject({ code: 'aborted' });
    await harness.clock.advance(500);
    expect(joined.settled).toBe(false);
    await harness.clock.advance(2000);
    expect(await Promise.all(accepted.map(({ promise }) => promise))).toEqual(['a', 'b']);
    await joined.promise;
    expect(harness.clock.pending).toBe(0);
  });

  it('ends at once when no task waits', async () => {
    const harness = new Harness(1);
    harness.manager.stop();
    await harness.manager.join();
    expect(harness.clock.pending).toBe(0);
  });
});

describe('a rate limiter', () => {
  it('spaces calls evenly, also at fractional rates, and does not accumulate unused calls', async () => {
    const clock = new VirtualClock();
    const limiter = new RateLimiter(clock, 0.5);
    await clock.advance(60_000);
    const times: number[] = [];
    for (let index = 0; index < 3; index += 1) watch(limiter.acquire().then(() => times.push(clock.monotonic())));
    expect(limiter.queueLength).toBe(2);
    await clock.advance(10_000);
    expect(times).toEqual([60_000, 62_000, 64_000]);
    expect(clock.pending).toBe(0);
  });

  it('does not wait without a limit', async () => {
    const clock = new VirtualClock();
    const limiter = new RateLimiter(clock, Infinity);
    for (let index = 0; index < 100; index += 1) await limiter.acquire();
    expect(limiter.delayMs()).toBe(0);
    expect(clock.pending).toBe(0);
  });

  it('passes the turn of an aborted caller to the next one', async () => {
    const clock = new VirtualClock();
    const limiter = new RateLimiter(clock, 1);
    const controller = new AbortController();
    await limiter.acquire();
    const aborted = Array.from({ length: 9 }, () => watch(limiter.acquire(controller.signal)));
    const second = watch(limiter.acquire());
    controller.abort();
    for (const { promise } of aborted) await expect(promise).rejects.toMatchObject({ code: 'aborted' });
    await clock.advance(1000);
    expect(second.settled).toBe(true);
    await expect(limiter.acquire(controller.signal)).rejects.toMatchObject({ code: 'aborted' });
  });

  const throttled = new ThrottledError('slow down', { retryAfterMs: 5000 });

  it('halves its rate when calls are throttled together, and pauses as long as the cloud demands', async () => {
    const clock = new VirtualClock();
    const limiter = new RateLimiter(clock, 8);
    for (let index = 0; index < 10; index += 1) limiter.settled(throttled);
    expect(limiter.currentRate).toBe(4);
    expect(limiter.delayMs()).toBe(5000);
    for (let seconds = 0; seconds < 60; seconds += 1) {
      await clock.advance(1000);
      limiter.settled(throttled);
    }
    expect(limiter.currentRate).toBe(1);
  });

  it('increases its rate step by step while calls succeed, up to the configured rate', async () => {
    const clock = new VirtualClock();
    const limiter = new RateLimiter(clock, 8);
    limiter.settled(throttled);
    const rates: number[] = [];
    for (let call = 0; call < 200; call += 1) {
      const { promise } = watch(limiter.acquire());
      await clock.advance(10_000);
      await promise;
      limiter.settled();
      rates.push(limiter.currentRate);
    }
    expect(rates).toEqual(rates.toSorted((a, b) => a - b));
    expect(rates[0]).toBeGreaterThan(4);
    expect(rates[0]).toBeLessThan(4.5);
    expect(rates.at(-1)).toBe(8);
  });

  it('limits a cloud without a configured rate to half of its rate, until a minute without throttling', async () => {
    const clock = new VirtualClock();
    const limiter = new RateLimiter(clock, Infinity);
    for (let index = 0; index < 20; index += 1) await limiter.acquire();
    limiter.settled(throttled);
    expect(limiter.currentRate).toBe(10);
    await clock.advance(30_000);
    limiter.settled();
    expect(limiter.currentRate).toBeLessThan(11);
    await clock.advance(30_000);
    limiter.settled();
    expect(limiter.currentRate).toBe(Infinity);
  });

  it('does not slow down for other errors', () => {
    const limiter = new RateLimiter(new VirtualClock(), 8);
    limiter.settled(new TransientError('503', { retryAfterMs: 5000 }));
    expect(limiter.currentRate).toBe(8);
    expect(limiter.delayMs()).toBe(0);
  });

  it.each([0, -1, NaN])('rejects a rate of %p', (rate) => {
    expect(() => new RateLimiter(new VirtualClock(), rate)).toThrow(RangeError);
  });
});

describe('a provider with a task manager', () => {
  it('does not exist before it starts', () => {
    expect(() => new BaseTaskManagerProvider(tinyConfig()).tasks).toThrow('provider tiny was not started');
  });
});

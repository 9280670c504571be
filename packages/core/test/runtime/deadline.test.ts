/** Deadlines, back-off, latch and emitter. */

import { getEventListeners } from 'node:events';
import { VirtualClock } from '@nodepool/core/testing';
import { describe, expect, it } from '@jest/globals';
import { backOffMs, Emitter, Latch, ThrottledError, TimerQueue, untilAborted, withDeadline } from '../../src/index.js';
import { seededRandom } from '../../src/testing/index.js';

const never = (): Promise<never> => new Promise(() => undefined);

describe('work with a deadline', () => {
  const harness = () => {
    const clock = new VirtualClock();
    const stop = new AbortController();
    const limits = {
      timers: new TimerQueue(clock),
      signal: stop.signal,
      deadline: 100,
      onDeadline: () => new Error('too late'),
    };
    return { clock, stop, limits };
  };

  it('settles as the work does, and removes its timer and listener', async () => {
    const { clock, limits } = harness();
    await expect(withDeadline(limits, () => Promise.resolve(7))).resolves.toBe(7);
    await expect(withDeadline(limits, () => Promise.reject(new Error('refused')))).rejects.toThrow('refused');
    await expect(
      withDeadline(limits, () => {
        throw new Error('thrown');
      }),
    ).rejects.toThrow('thrown');
    expect(clock.pending).toBe(0);
  });

  it('rejects at the deadline while the work continues, whose signal aborts with the same error', async () => {
    const { clock, limits } = harness();
    let signal: AbortSignal | undefined;
    const outcome = withDeadline(limits, (given) => {
      signal = given;
      return never();
    });
    const check = expect(outcome).rejects.toThrow('too late');
    await clock.advance(99);
    expect(signal?.aborted).toBe(false);
    await clock.advance(1);
    await check;
    expect(signal?.reason).toEqual(new Error('too late'));
  });

  it('adds one listener to a signal for any number of works, all of which end when it aborts', async () => {
    const { stop, limits } = harness();
    const outcomes = Array.from({ length: 100 }, () => withDeadline(limits, never));
    expect(getEventListeners(stop.signal, 'abort')).toHaveLength(1);
    stop.abort(new Error('stopped'));
    const results = await Promise.allSettled(outcomes);
    expect(results.every(({ status }) => status === 'rejected')).toBe(true);
  });

  it('rejects with the reason of any of the signals, also of one that has aborted before', async () => {
    const { clock, limits } = harness();
    const other = new AbortController();
    let signal: AbortSignal | undefined;
    const work = (given: AbortSignal): Promise<never> => {
      signal = given;
      return never();
    };
    const check = expect(withDeadline({ ...limits, others: [other.signal] }, work)).rejects.toThrow('the lock is lost');
    other.abort(new Error('the lock is lost'));
    await check;
    expect(signal?.reason).toEqual(new Error('the lock is lost'));
    signal = undefined;
    await expect(withDeadline({ ...limits, others: [other.signal] }, work)).rejects.toThrow('the lock is lost');
    expect(signal).toBeUndefined();
    expect(clock.pending).toBe(0);
  });

  it('rejects with the reason of the aborted signal, or with an error created from it', async () => {
    const { clock, stop, limits } = harness();
    const outcomes = [
      expect(withDeadline(limits, never)).rejects.toThrow('the program stops'),
      expect(
        withDeadline({ ...limits, onAbort: (cause) => new Error('aborted', { cause }) }, never),
      ).rejects.toMatchObject({ message: 'aborted', cause: new Error('the program stops') }),
    ];
    stop.abort(new Error('the program stops'));
    await Promise.all(outcomes);
    expect(clock.pending).toBe(0);
  });

  it('does not start after the signal has aborted', async () => {
    const { stop, limits } = harness();
    stop.abort(new Error('the program stops'));
    let started = false;
    const outcome = withDeadline(limits, () => {
      started = true;
      return never();
    });
    await expect(outcome).rejects.toThrow('the program stops');
    expect(started).toBe(false);
  });
});

describe('a promise with an abort signal', () => {
  it('settles as the promise does, or rejects with the reason', async () => {
    const stop = new AbortController();
    await expect(untilAborted(Promise.resolve(7), stop.signal)).resolves.toBe(7);
    const outcome = expect(untilAborted(never(), stop.signal)).rejects.toThrow('the program stops');
    stop.abort(new Error('the program stops'));
    await outcome;
    await expect(untilAborted(never(), stop.signal)).rejects.toThrow('the program stops');
  });
});

describe('a backoff', () => {
  const longest = { ...seededRandom(1), next: () => 1 };
  const shortest = { ...seededRandom(1), next: () => 0 };
  const error = new Error('refused');

  it('doubles up to its maximum, with jitter between half and all of it', () => {
    const limits = { firstMs: 10, longestMs: 50 };
    expect([1, 2, 3, 4, 5].map((n) => backOffMs(n, error, longest, limits))).toEqual([10, 20, 40, 50, 50]);
    expect([1, 2, 3, 4, 5].map((n) => backOffMs(n, error, shortest, limits))).toEqual([5, 10, 20, 25, 25]);
  });

  it('is extended by the delay that an error requests, and never shortened', () => {
    expect(backOffMs(1, new ThrottledError('slower', { retryAfterMs: 90_000 }), longest)).toBe(90_000);
    expect(backOffMs(1, new ThrottledError('slower', { retryAfterMs: 1 }), longest)).toBe(1000);
  });
});

describe('a latch', () => {
  it('resolves its waiters when it opens, and later ones at once until it closes', async () => {
    const latch = new Latch(false);
    const resolved: string[] = [];
    void latch.wait().then(() => resolved.push('first'));
    await Promise.resolve();
    expect(resolved).toEqual([]);
    latch.open();
    await latch.wait();
    await Promise.resolve();
    expect(resolved).toEqual(['first']);
    latch.close();
    expect(latch.isOpen).toBe(false);
    void latch.wait().then(() => resolved.push('second'));
    await Promise.resolve();
    latch.open();
    await latch.wait();
    await Promise.resolve();
    expect(resolved).toEqual(['first', 'second']);
  });
});

describe('an emitter', () => {
  it('calls every listener in order, also after one throws, and reports the error', () => {
    const errors: unknown[] = [];
    const emitter = new Emitter<number>((error) => errors.push(error));
    const received: string[] = [];
    emitter.on((event) => received.push(`a${event}`));
    const off = emitter.on(() => {
      throw new Error('no');
    });
    emitter.on((event) => received.push(`b${event}`));
    emitter.emit(1);
    off();
    emitter.emit(2);
    expect(received).toEqual(['a1', 'b1', 'a2', 'b2']);
    expect(errors).toEqual([new Error('no')]);
  });
});

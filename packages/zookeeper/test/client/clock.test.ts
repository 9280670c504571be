/** Timers of the real time. */

import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { systemClock } from '../../src/clock.js';

const LONGEST_MS = 2 ** 31 - 1;

beforeEach(() => void jest.useFakeTimers());
afterEach(() => void jest.useRealTimers());

describe('a timer longer than Node.js allows', () => {
  it('fires at its time', () => {
    const callback = jest.fn();
    systemClock.schedule(LONGEST_MS + 1000, callback);
    jest.advanceTimersByTime(LONGEST_MS + 999);
    expect(callback).not.toHaveBeenCalled();
    jest.advanceTimersByTime(1);
    expect(callback).toHaveBeenCalledTimes(1);
  });

  it('never fires if it is infinite, and can be cancelled', () => {
    const callback = jest.fn();
    const timer = systemClock.schedule(Infinity, callback);
    jest.advanceTimersByTime(3 * LONGEST_MS);
    timer.cancel();
    expect([callback.mock.calls.length, jest.getTimerCount()]).toEqual([0, 0]);
  });
});

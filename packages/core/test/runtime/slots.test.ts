/** Slots of a semaphore. */

import { getEventListeners } from 'node:events';
import { describe, expect, it } from '@jest/globals';
import { Slots } from '../../src/index.js';

/** Starts a caller that holds its slot until `end`. */
function caller(slots: Slots, signal: AbortSignal, log: string[], name: string): { end(): void; done: Promise<void> } {
  let end = (): void => undefined;
  const held = new Promise<void>((resolve) => {
    end = resolve;
  });
  const done = slots
    .run(signal, () => {
      log.push(name);
      return held;
    })
    .catch((error: unknown) => void log.push(`${name}: ${String(error)}`));
  return { end: () => end(), done };
}

describe('slots', () => {
  it('pass to the waiting callers in order', async () => {
    const slots = new Slots(1);
    const log: string[] = [];
    const { signal } = new AbortController();
    const callers = ['first', 'second', 'third'].map((name) => caller(slots, signal, log, name));
    expect([slots.inUse, slots.queueLength]).toEqual([1, 2]);
    for (const { end, done } of callers) {
      end();
      await done;
    }
    expect(log).toEqual(['first', 'second', 'third']);
    expect([slots.inUse, slots.queueLength]).toEqual([0, 0]);
  });

  it('are not passed to callers whose signal has aborted', async () => {
    const slots = new Slots(1);
    const log: string[] = [];
    const [stop, own] = [new AbortController(), new AbortController()];
    const first = caller(slots, own.signal, log, 'first');
    const aborted = ['second', 'third'].map((name) => caller(slots, stop.signal, log, name));
    const last = caller(slots, own.signal, log, 'last');
    stop.abort(new Error('stopped'));
    for (const { done } of aborted) await done;
    first.end();
    last.end();
    await last.done;
    expect(log).toEqual(['first', 'second: Error: stopped', 'third: Error: stopped', 'last']);
    expect(slots.inUse).toBe(0);
  });

  it('add one listener to a signal for any number of waiting callers', async () => {
    const slots = new Slots(1);
    const { signal } = new AbortController();
    const callers = Array.from({ length: 100 }, (_, index) => caller(slots, signal, [], String(index)));
    expect(getEventListeners(signal, 'abort')).toHaveLength(1);
    for (const { end } of callers) end();
    await Promise.all(callers.map(({ done }) => done));
  });
});

/** The selection of the next upload. */

import { describe, expect, it } from '@jest/globals';
import { nextUpload, UPLOAD_START_DELAY_MS, type NextUpload, type Waiting } from '../src/upload-queue.js';

const one = { provider: 'one', since: 0 };
const two = { provider: 'two', since: 1000 };

const next = (
  waiting: readonly Waiting[],
  running: Readonly<Record<string, number>>,
  places: number,
  now = 1000,
): NextUpload<Waiting> => nextUpload(waiting, new Map(Object.entries(running)), places, now);

describe('the next upload', () => {
  it('is the one that has waited longest', () => {
    expect(next([two, one], {}, 4).next).toBe(one);
  });

  it('is of the provider with the fewest running ones', () => {
    expect(next([one, two], { one: 1 }, 4).next).toBe(two);
  });

  it('waits for a worker', () => {
    expect(next([one, two], { one: 2, two: 2 }, 4)).toEqual({ next: undefined, againMs: undefined });
  });

  it('is of a provider without a running one after a limited wait', () => {
    expect(next([two], { one: 4 }, 4)).toEqual({ next: undefined, againMs: UPLOAD_START_DELAY_MS });
    expect(next([two], { one: 4 }, 4, 1000 + UPLOAD_START_DELAY_MS).next).toBe(two);
    expect(next([two], { one: 4, two: 1 }, 4, 1000 + UPLOAD_START_DELAY_MS).next).toBeUndefined();
  });

  it('does not exist without pending uploads', () => {
    expect(next([one], {}, 0, 2 * UPLOAD_START_DELAY_MS)).toEqual({ next: undefined, againMs: undefined });
    expect(next([], {}, 4)).toEqual({ next: undefined, againMs: undefined });
  });
});

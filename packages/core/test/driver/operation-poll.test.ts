/** Operations that a cloud has accepted, until they end. */

import { VirtualClock } from '@nodepool/core/testing';
import { beforeEach, describe, expect, it } from '@jest/globals';
import {
  AuthError,
  endOfOperation,
  InstanceFailedError,
  NotFoundError,
  silentLogger,
  ThrottledError,
  TransientError,
  type DriverError,
  type OperationState,
} from '../../src/index.js';
import { watch } from './provider-harness.js';

const RUNNING = { state: 'running' } as const;
const DONE = { state: 'succeeded', result: 'server-1' } as const;

let clock: VirtualClock;
let reads: number[];

beforeEach(() => {
  clock = new VirtualClock();
  reads = [];
});

/** Follows an operation whose reads have these results. The last one repeats. */
function follow(results: readonly (OperationState<string> | Error)[], deadline = Infinity) {
  const read = async (): Promise<OperationState<string>> => {
    const result = results[Math.min(reads.length, results.length - 1)] ?? RUNNING;
    reads.push(clock.monotonic());
    if (result instanceof Error) throw result;
    return result;
  };
  const call = { signal: new AbortController().signal, deadline, log: silentLogger };
  return watch(endOfOperation({ what: 'the creation of np1', clock, intervalMs: 2000, read }, call));
}

describe('an operation', () => {
  it('is read at its interval, or when the cloud says, and its result is returned', async () => {
    const followed = follow([RUNNING, { ...RUNNING, retryAfterMs: 7000 }, DONE]);
    await clock.advance(60_000);
    expect(await followed.promise).toBe('server-1');
    expect(reads).toEqual([0, 2000, 9000]);
  });

  it('that fails rejects with its own error', async () => {
    const error = new InstanceFailedError('no disk');
    const followed = follow([RUNNING, { state: 'failed', error }]);
    await clock.advance(60_000);
    await expect(followed.promise).rejects.toBe(error);
  });

  it('is followed despite temporary failures of reads', async () => {
    const followed = follow([new TransientError('503'), new ThrottledError('429', { retryAfterMs: 9000 }), DONE]);
    await clock.advance(60_000);
    expect(await followed.promise).toBe('server-1');
    expect(reads).toEqual([0, 2000, 11_000]);
  });

  it.each<[string, DriverError, string]>([
    ['that is missing', new NotFoundError('no such operation'), 'transient'],
    ['that must not be read', new AuthError('forbidden'), 'auth'],
  ])('%s has an unknown outcome', async (_what, error, code) => {
    const followed = follow([RUNNING, error]);
    await clock.advance(60_000);
    await expect(followed.promise).rejects.toMatchObject({
      code,
      outcome: 'unknown',
      message: `the creation of np1: ${error.message}`,
    });
  });

  it.each([
    ['runs', RUNNING],
    ['cannot be read', new TransientError('503', { outcome: 'not-applied' })],
  ])('that still %s at the deadline has an unknown outcome', async (_what, result) => {
    const followed = follow([result], 5000);
    await clock.advance(60_000);
    await expect(followed.promise).rejects.toMatchObject({ outcome: 'unknown' });
    expect(reads.at(-1)).toBeLessThanOrEqual(5000);
  });
});

/** Retries of calls after temporary failures. */

import { VirtualClock } from '@nodepool/core/testing';
import { describe, expect, it } from '@jest/globals';
import {
  ConfigurationError,
  ERROR_POLICIES,
  networkCauseOf,
  DriverError,
  retryPassing,
  ThrottledError,
  TransientError,
  type DriverErrorCode,
} from '../../src/index.js';
import { seededRandom } from '../../src/testing/index.js';

describe('a retried call', () => {
  const harness = () => {
    const clock = new VirtualClock();
    const stop = new AbortController();
    const calls: number[] = [];
    const options = { clock, random: { ...seededRandom(1), next: () => 1 }, signal: stop.signal };
    const failing = (errors: Error[]) => () => {
      calls.push(clock.monotonic());
      const error = errors.shift();
      return error === undefined ? Promise.resolve('answer') : Promise.reject(error);
    };
    return { clock, stop, calls, options, failing };
  };

  it('waits twice as long after each failure, or as long as the cloud demands', async () => {
    const { clock, calls, options, failing } = harness();
    const errors = [
      new TransientError('a'),
      new TransientError('b'),
      new ThrottledError('c', { retryAfterMs: 30_000 }),
    ];
    const result = retryPassing(options, failing(errors));
    await clock.advance(60_000);
    await expect(result).resolves.toBe('answer');
    expect(calls).toEqual([0, 2000, 6000, 36_000]);
  });

  it('fails with the last error when no attempts remain', async () => {
    const { clock, calls, options, failing } = harness();
    const errors = [1, 2, 3].map((n) => new TransientError(`failure ${n}`));
    const result = expect(retryPassing({ ...options, attempts: 3 }, failing(errors))).rejects.toThrow('failure 3');
    await clock.advance(60_000);
    await result;
    expect(calls.length).toBe(3);
  });

  it('is retried for exactly the transient errors', async () => {
    for (const code of Object.keys(ERROR_POLICIES) as DriverErrorCode[]) {
      const { clock, calls, options, failing } = harness();
      const result = retryPassing(options, failing([new DriverError(code, 'no')])).catch(() => undefined);
      await clock.advance(60_000);
      await result;
      expect([code, calls.length]).toEqual([code, ERROR_POLICIES[code].mayPass ? 2 : 1]);
    }
  });

  it('is not retried after the signal has aborted', async () => {
    const { clock, stop, calls, options, failing } = harness();
    const result = expect(retryPassing(options, failing([new TransientError('a')]))).rejects.toThrow('stopped');
    await clock.advance(1);
    stop.abort(new Error('stopped'));
    await result;
    expect(calls).toEqual([0]);
  });

  it('fails at once with a permanent error', async () => {
    const { options, failing } = harness();
    await expect(retryPassing(options, failing([new ConfigurationError('no such image')]))).rejects.toThrow('no such image'); // prettier-ignore
  });
});

describe('an error that a library wrapped', () => {
  const refused = Object.assign(new Error('connect ECONNREFUSED 192.0.2.1:443'), { code: 'ECONNREFUSED' });

  it('is classified by its innermost cause', () => {
    const wrapped = new Error('request failed', { cause: new TypeError('fetch failed', { cause: refused }) });
    expect(networkCauseOf(wrapped)).toMatchObject({ systemCode: 'ECONNREFUSED', outcome: 'not-applied' });
  });

  it('is classified by the errors of several addresses', () => {
    expect(networkCauseOf(new AggregateError([refused, refused]))).toMatchObject({
      systemCode: 'ECONNREFUSED',
      outcome: 'not-applied',
    });
  });

  it('without a cause from the network is not a network error', () => {
    expect(networkCauseOf(new Error('no', { cause: new Error('such image') }))).toBeUndefined();
  });
});

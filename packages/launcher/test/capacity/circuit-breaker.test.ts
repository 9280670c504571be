/** Tests of the circuit breaker alone, on the virtual clock. */

import { beforeEach, describe, expect, it } from '@jest/globals';
import { seededRandom, VirtualClock } from '@nodepool/core/testing';
import { CircuitBreaker, type BreakerFailure } from '../../src/capacity/circuit-breaker.js';
import type { BreakerCause } from '@nodepool/status';

let clock: VirtualClock;
let breaker: CircuitBreaker;
let transitions: string[];

beforeEach(() => {
  clock = new VirtualClock();
  transitions = [];
  const onChange = (): void => void transitions.push(breaker.state);
  breaker = new CircuitBreaker({ clock, random: seededRandom(1), onChange });
});

function fails(cause: BreakerCause, more: Partial<BreakerFailure> = {}): void {
  breaker.failed({ cause, reason: 'no', startedAt: clock.monotonic(), ...more });
}

/** Advances the clock to the next probe. Returns the milliseconds until then. */
async function untilHalfOpen(): Promise<number> {
  const since = clock.monotonic();
  while (breaker.state === 'open') await clock.runNext();
  return clock.monotonic() - since;
}

describe('a closed breaker', () => {
  it.each<[BreakerCause, number]>([
    ['capacity', 1],
    ['quota', 1],
    ['configuration', 1],
    ['unreachable', 3],
    ['throttled', 3],
    ['auth', 3],
    ['node', 3],
    ['slow', 2],
  ])('opens for %s after %d consecutive failures', (cause, count) => {
    for (let failures = 1; failures < count; failures += 1) fails(cause);
    expect(breaker.state).toBe('closed');
    fails(cause);
    expect(breaker.obstacle).toMatchObject({ state: 'open', cause, reason: 'no', since: clock.now() });
    expect(breaker.admits).toBe(false);
  });

  it('stays closed while launches succeed in between', () => {
    for (let index = 0; index < 20; index += 1) {
      fails('node');
      fails('node');
      breaker.succeeded('ready', clock.monotonic());
    }
    expect(breaker.state).toBe('closed');
  });
});

describe('an open breaker', () => {
  it('doubles its delay each time up to a limit, with jitter', async () => {
    const waits: number[] = [];
    for (let index = 0; index < 8; index += 1) {
      fails('capacity');
      waits.push(await untilHalfOpen());
    }
    for (const [index, wait] of waits.entries()) {
      const longest = Math.min(20_000 * 2 ** index, 120_000);
      expect(wait).toBeGreaterThanOrEqual(longest / 2);
      expect(wait).toBeLessThanOrEqual(longest);
    }
    expect(new Set(waits).size).toBe(waits.length);
  });

  it('waits at least as long as the cloud demands, but not longer than a minute', async () => {
    for (let index = 0; index < 3; index += 1) fails('throttled', { retryAfterMs: 9_999 });
    expect(await untilHalfOpen()).toBeGreaterThanOrEqual(9_999);
    breaker.close();
    fails('throttled', { retryAfterMs: 300_000 });
    expect(breaker.state).toBe('open');
    expect(await untilHalfOpen()).toBe(60_000);
  });

  it('ignores the results of launches that started before it opened', async () => {
    const before = clock.monotonic();
    await clock.advance(1000);
    fails('capacity');
    const { obstacle } = breaker;
    fails('capacity', { startedAt: before });
    breaker.succeeded('ready', before);
    expect(breaker.obstacle).toEqual(obstacle);
    await untilHalfOpen();
    fails('capacity', { startedAt: before });
    expect(breaker.state).toBe('half-open');
  });

  it('ignores a call that began while it was open and fails later, also once it is closed', async () => {
    fails('unreachable', { isCertain: true, isOfCall: true });
    await clock.advance(1000);
    const hanging = { startedAt: clock.monotonic(), isCertain: true, isOfCall: true };
    await clock.advance(1000);
    breaker.probeNow();
    await clock.advance(10_000);
    fails('unreachable', hanging);
    expect(breaker.state).toBe('half-open');
    breaker.close();
    fails('unreachable', hanging);
    expect(breaker.state).toBe('closed');
    fails('unreachable', { isCertain: true });
    expect(breaker.state).toBe('open');
  });

  it('is probed at once when the fault may have ended', () => {
    fails('quota');
    breaker.probeNow();
    expect(breaker.admits).toBe(true);
  });
});

describe('a half-open breaker', () => {
  it('admits exactly one probe, and another one if that had no result', async () => {
    fails('capacity');
    await untilHalfOpen();
    expect(breaker.admits).toBe(true);
    const reported = transitions.length;
    const end = breaker.begin();
    expect(breaker.admits).toBe(false);
    // Other pools serve the next requests only if they know.
    expect(transitions.length).toBe(reported + 1);
    breaker.begin()();
    expect(breaker.admits).toBe(false);
    end();
    expect(breaker.admits).toBe(true);
  });

  it.each<[BreakerCause, readonly string[]]>([
    ['quota', ['accepted', 'created', 'ready']],
    ['unreachable', ['accepted', 'created', 'ready']],
    ['capacity', ['created', 'ready']],
    ['node', ['ready']],
    ['slow', ['ready']],
  ])('after %s is closed by a probe that is %s', async (cause, evidence) => {
    for (const each of ['accepted', 'created', 'ready'] as const) {
      for (let index = 0; index < 3; index += 1) fails(cause);
      await untilHalfOpen();
      breaker.begin();
      breaker.succeeded(each, clock.monotonic());
      expect(breaker.state).toBe(evidence.includes(each) ? 'closed' : 'half-open');
      breaker.close();
    }
  });

  it('opens again when the probe fails, and keeps the time of the first failure', async () => {
    fails('capacity');
    const since = breaker.obstacle?.since;
    await untilHalfOpen();
    breaker.begin();
    fails('capacity');
    expect(breaker.obstacle).toMatchObject({ state: 'open', since });
    expect(transitions).toEqual(['open', 'half-open', 'half-open', 'open']);
  });
});

describe('a breaker whose cloud can be asked', () => {
  beforeEach(() => {
    const onChange = (): void => void transitions.push(breaker.state);
    const check = (): Promise<undefined> => Promise.resolve(undefined);
    breaker = new CircuitBreaker({ clock, random: seededRandom(1), onChange, check });
  });

  it('closes a while after an answer if no launch probes it', async () => {
    fails('capacity');
    await untilHalfOpen();
    await clock.advance(14_000);
    expect(breaker.state).toBe('half-open');
    await clock.advance(2000);
    expect(breaker.state).toBe('closed');
  });

  it('stays half-open while a launch probes it', async () => {
    fails('capacity');
    await untilHalfOpen();
    const end = breaker.begin();
    await clock.advance(180_000);
    expect(breaker.state).toBe('half-open');
    end();
    await clock.advance(61_000);
    expect(breaker.state).toBe('closed');
  });

  it('closes with an answer only if no launch has failed', async () => {
    for (let count = 0; count < 3; count += 1) fails('unreachable', { isOfCall: true });
    breaker.answered();
    expect(breaker.state).toBe('closed');
    for (let count = 0; count < 3; count += 1) fails('unreachable');
    await untilHalfOpen();
    await clock.advance(1);
    fails('unreachable', { isOfCall: true });
    breaker.answered();
    expect(breaker.state).toBe('half-open');
  });
});

describe('a stopped breaker', () => {
  it('neither waits nor changes because of launches that end later', () => {
    breaker.stop();
    fails('capacity');
    expect({ pending: clock.pending, transitions }).toEqual({ pending: 0, transitions: [] });
  });

  it('is not probed', () => {
    fails('capacity');
    breaker.stop();
    breaker.probeNow();
    breaker.close();
    expect({ pending: clock.pending, transitions }).toEqual({ pending: 0, transitions: ['open'] });
  });
});

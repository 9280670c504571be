/** Tests of the choice among the offers of a pool. */

import { beforeEach, describe, expect, it } from '@jest/globals';
import { silentLogger, silentMetrics, type PoolConfig } from '@nodepool/core';
import { seededRandom, VirtualClock } from '@nodepool/core/testing';
import { PoolOffers } from '../../src/capacity/pool-offers.js';
import { type BreakerCause, type Offer, silentDecisions } from '@nodepool/status';

let clock: VirtualClock;
let offers: PoolOffers;

beforeEach(() => {
  clock = new VirtualClock();
  const context = {
    clock,
    random: seededRandom(1),
    log: silentLogger,
    metrics: silentMetrics,
    decisions: silentDecisions,
  };
  const labels = new Map([
    ['small', { name: 'small', machineTypes: ['m1', 'm2'] }],
    ['other', { name: 'other', machineTypes: [] }],
  ]);
  const pool = { name: 'main', labels } as unknown as PoolConfig;
  const { signal } = new AbortController();
  offers = new PoolOffers(
    context,
    'demo',
    pool,
    () => true,
    signal,
    () => undefined,
  );
});

const offer = (machineType: string | undefined, zone?: string, label = 'small'): Offer => ({
  label,
  zone,
  machineType,
});

function fail(cause: BreakerCause, failed: Offer): void {
  for (let times = 0; times < 3; times += 1) offers.failed(failed, { cause, reason: 'it failed', startedAt: 0 });
}

const chosen = (labels = ['small']) => {
  const { offers: planned, blocked } = offers.plan(labels);
  return { types: planned.map(({ machineType }) => machineType), cause: blocked?.cause };
};

describe('a slow offer', () => {
  it('is selected after every other admitted one', () => {
    fail('slow', offer('m1'));
    expect(chosen()).toEqual({ types: ['m2'], cause: undefined });
  });

  it.each<BreakerCause>(['capacity', 'quota', 'configuration', 'node'])(
    'is preferred to one that is out of service because of %s and is probed earlier',
    async (cause) => {
      fail('slow', offer('m2'));
      await clock.advance(30_000);
      fail(cause, offer('m1'));
      expect(chosen()).toEqual({ types: ['m2'], cause: 'slow' });
    },
  );

  it('is selected together with an admitted offer of another label', () => {
    fail('slow', offer('m1'));
    fail('slow', offer('m2'));
    expect(chosen(['other', 'small'])).toEqual({ types: [undefined, 'm1'], cause: 'slow' });
  });

  it('is not selected if another label has no offer', () => {
    fail('slow', offer('m1'));
    fail('slow', offer('m2'));
    fail('capacity', offer(undefined, undefined, 'other'));
    expect(chosen(['other', 'small']).cause).not.toBeUndefined();
    expect(chosen(['other']).cause).toBe('capacity');
  });

  it('is selected from all zones', () => {
    offers.setZones(['zone-1', 'zone-2']);
    for (const type of ['m1', 'm2']) fail('capacity', offer(type, 'zone-1'));
    fail('slow', offer('m2', 'zone-2'));
    fail('capacity', offer('m1', 'zone-2'));
    const { zone, blocked } = offers.plan(['small']);
    expect([zone, blocked?.cause]).toEqual(['zone-2', 'slow']);
  });

  it('is probed in one zone at a time, and only a launch in usual time closes it', async () => {
    offers.setZones(['zone-1', 'zone-2']);
    const [first, second] = [offer('m1', 'zone-1'), offer('m1', 'zone-2')];
    fail('slow', first);
    while (offers.health().some(({ state }) => state === 'open')) await clock.runNext();
    const ready = (isLate: boolean): void => {
      const end = offers.begin([first]);
      expect(offers.admits(second)).toBe(false);
      offers.succeeded(first, 'ready', clock.monotonic(), isLate);
      end();
    };
    ready(true);
    expect(offers.obstacleOf(first)).toMatchObject({ cause: 'slow', state: 'open', times: 2 });
    while (offers.obstacleOf(first)?.state === 'open') await clock.runNext();
    ready(false);
    expect(offers.admits(first)).toBe(true);
  });
});

/** The silence of a cloud is noticed, and not confused with a launcher that was blocked itself. */

import { beforeEach, describe, expect, it } from '@jest/globals';
import { silentLogger, silentMetrics, type Clock } from '@nodepool/core';
import { seededRandom, VirtualClock } from '@nodepool/core/testing';
import { ProviderHealth } from '../../src/capacity/provider-health.js';

describe('a listing without an answer', () => {
  let time: VirtualClock;
  /** Time for which the process was blocked: its clock goes on, and its timers are late by as much. */
  let blockedMs: number;
  let health: ProviderHealth;

  beforeEach(() => {
    time = new VirtualClock();
    blockedMs = 0;
    const clock: Clock = {
      now: () => time.now() + blockedMs,
      monotonic: () => time.monotonic() + blockedMs,
      schedule: (delayMs, callback) => time.schedule(delayMs, callback),
    };
    const parts = { clock, random: seededRandom(1), log: silentLogger, metrics: silentMetrics };
    health = new ProviderHealth({ ...parts, check: () => new Promise(() => undefined) }, 'cloud', () => undefined);
    health.started();
    health.called({ status: 200, host: undefined });
  });

  it('shows that the cloud is unreachable', async () => {
    health.watch();
    await time.advance(11_000);
    expect(health.state).toMatchObject({ state: 'unreachable', trouble: { cause: 'unreachable' } });
    health.stop();
  });

  it('does not if the launcher was blocked meanwhile, until the cloud is silent for as long again', async () => {
    health.watch();
    await time.advance(5000);
    blockedMs = 30_000;
    await time.advance(6000);
    expect(health.state).toMatchObject({ state: 'serving' });
    await time.advance(10_000);
    expect(health.state).toMatchObject({ state: 'unreachable' });
    health.stop();
  });
});

/** The silence of a cloud is noticed, and not confused with a launcher that was blocked itself. */

import { beforeEach, describe, expect, it } from '@jest/globals';
import { silentLogger, silentMetrics, TimeoutError, type ApiCall, type Clock, type OpenCall } from '@nodepool/core';
import { seededRandom, VirtualClock } from '@nodepool/core/testing';
import { ProviderHealth } from '../../src/capacity/provider-health.js';

function ended(service: string, host: string | undefined, durationMs: number, status: ApiCall['status']): ApiCall {
  return { service, method: 'GET', operation: 'list', host, durationMs, status };
}

describe('a call without an answer', () => {
  let time: VirtualClock;
  /** Time for which the process was blocked: its clock goes on, and its timers are late by as much. */
  let blockedMs: number;
  let health: ProviderHealth;
  let open: OpenCall | undefined;
  let check: () => Promise<void>;

  beforeEach(() => {
    time = new VirtualClock();
    blockedMs = 0;
    open = { name: 'compute: GET servers', host: undefined, startedAt: 0, isAnswered: false };
    check = () => new Promise(() => undefined);
    const clock: Clock = {
      now: () => time.now() + blockedMs,
      monotonic: () => time.monotonic() + blockedMs,
      schedule: (delayMs, callback) => time.schedule(delayMs, callback),
    };
    const parts = { clock, random: seededRandom(1), log: silentLogger, metrics: silentMetrics };
    health = new ProviderHealth({ ...parts, check: () => check(), oldestCall: () => open }, 'cloud', () => undefined);
    health.started();
    health.called(ended('network', 'network.example', 50, 200));
  });

  it('shows that the cloud is unreachable', async () => {
    health.calling();
    await time.advance(11_000);
    expect(health.state).toMatchObject({ state: 'unreachable', trouble: { cause: 'unreachable' } });
    health.stop();
  });

  it('shows it again after an answer, although a call of the first silence is still in progress', async () => {
    health.calling();
    await time.advance(11_000);
    expect(health.state).toMatchObject({ state: 'unreachable' });
    health.called(ended('network', 'network.example', 50, 200));
    health.listed();
    expect(health.state).toMatchObject({ state: 'serving' });
    health.calling();
    await time.advance(16_000);
    expect(health.state).toMatchObject({ state: 'unreachable' });
    health.stop();
  });

  it('names the call that waits, and no host that has answered', async () => {
    open = { name: 'compute: GET servers', host: 'compute.example', startedAt: -2000, isAnswered: false };
    health.calling();
    await time.advance(11_000);
    const text =
      /no call has been answered for 10 s; compute: GET servers had no answer of compute.example within 12 s/;
    expect(health.state.reason).toMatch(text);
    health.stop();
  });

  it('names a call that has ended without an answer, if it waited longer than the one in progress', async () => {
    health.called(ended('compute', undefined, 9000, undefined));
    health.called(ended('volume', 'volume.example', 10, 'transient'));
    open = { name: 'network: GET ports', host: 'network.example', startedAt: 9000, isAnswered: false };
    health.calling();
    await time.advance(11_000);
    expect(health.state.reason).toMatch(/answered for 10 s; compute: GET list had no answer within 9 s\)/);
    health.stop();
  });

  it('names no call if the driver tells of none, while a launch waits', async () => {
    open = undefined;
    for (let seconds = 0; seconds < 11; seconds += 1) {
      await time.advance(1000);
      health.unanswered(0, 0);
    }
    expect(health.state.reason).toMatch(/no call has been answered for 10 s\)/);
    health.stop();
  });

  it('does not show it if the cloud answers a question', async () => {
    let asked = 0;
    check = () => {
      asked += 1;
      return Promise.resolve();
    };
    health.calling();
    await time.advance(60_000);
    expect(health.state).toMatchObject({ state: 'serving' });
    expect(asked).toBeGreaterThan(5);
    health.stop();
  });

  it('adds the call that waits to a timeout that names no host', async () => {
    open = { name: 'compute: GET servers', host: 'compute.example', startedAt: -2000, isAnswered: false };
    for (let times = 0; times < 3; times += 1) health.callFailed(new TimeoutError('the launch did not end in time'));
    expect(health.state.reason).toContain('in time; compute: GET servers had no answer of compute.example within 2 s');
    health.stop();
  });

  it('does not if the launcher was blocked meanwhile, until the cloud is silent for as long again', async () => {
    health.calling();
    await time.advance(5000);
    blockedMs = 30_000;
    await time.advance(6000);
    expect(health.state).toMatchObject({ state: 'serving' });
    await time.advance(10_000);
    expect(health.state).toMatchObject({ state: 'unreachable' });
    health.stop();
  });
});

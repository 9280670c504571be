/** Failed steps of a machine are repeated while the failures may be temporary. */

import { expect, it } from '@jest/globals';
import {
  ConfigurationError,
  ConflictError,
  RefusedError,
  StepRetries,
  ThrottledError,
  TransientError,
} from '@nodepool/core';
import { seededRandom, silentLogger, VirtualClock } from '@nodepool/core/testing';

const BOOTING = { state: 'booting', mayExist: true };
const AWAY = new TransientError('the cloud is away');

it('a temporary failure is retried with growing delays for five minutes', async () => {
  const clock = new VirtualClock();
  const retries = new StepRetries(clock, seededRandom(1));
  const began = clock.monotonic();
  const delays: number[] = [];
  for (;;) {
    const retry = retries.after(AWAY, BOOTING, { log: silentLogger });
    if (retry?.next !== 'delay') break;
    delays.push(retry.ms);
    await clock.advance(retry.ms);
  }
  expect(delays[4]).toBeGreaterThan(delays[0]!);
  expect(clock.monotonic() - began).toBeGreaterThan(300_000);
});

it('a failure that is not temporary is not retried', () => {
  const retries = new StepRetries(new VirtualClock(), seededRandom(1));
  expect(retries.after(new ConfigurationError('no such flavor'), BOOTING, { log: silentLogger })).toBeUndefined();
});

it('a step that succeeds begins a new series of failures, one that only starts a call does not', async () => {
  const clock = new VirtualClock();
  const retries = new StepRetries(clock, seededRandom(1));
  retries.after(AWAY, BOOTING, { log: silentLogger });
  await clock.advance(400_000);
  retries.stepped({ next: 'call', settled: Promise.resolve() });
  expect(retries.after(AWAY, BOOTING, { log: silentLogger })).toBeUndefined();
  retries.stepped({ next: 'listing' });
  expect(retries.after(AWAY, BOOTING, { log: silentLogger })).toMatchObject({ next: 'delay' });
});

it('a failure is reported when it happens', () => {
  const retries = new StepRetries(new VirtualClock(), seededRandom(1));
  const reported: unknown[] = [];
  retries.after(AWAY, BOOTING, { log: silentLogger, onRetry: (error) => void reported.push(error) });
  expect(reported).toEqual([AWAY]);
});

it('without an instance, a failure of the cloud or of the label ends the launch, and a conflict is retried', () => {
  const retries = new StepRetries(new VirtualClock(), seededRandom(1));
  const place = { state: 'creating', mayExist: false };
  for (const error of [AWAY, new ThrottledError('slow down'), new RefusedError('not replicated yet')]) {
    expect(retries.after(error, place, { log: silentLogger })).toBeUndefined();
  }
  expect(retries.after(new ConflictError('busy'), place, { log: silentLogger })).toMatchObject({ next: 'delay' });
});

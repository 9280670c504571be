/** Tests of how long requests may wait. */

import { beforeEach, describe, expect, it } from '@jest/globals';
import type { JsonValue, NodeRequest } from '@nodepool/core';
import { requestWith, VirtualClock } from '@nodepool/core/testing';
import { WaitLimits } from '../../src/capacity/wait-limits.js';

const HOUR_MS = 3_600_000;

let clock: VirtualClock;
let limits: WaitLimits;

beforeEach(() => {
  clock = new VirtualClock();
  limits = new WaitLimits({ onChange: () => () => undefined }, clock);
  const label = { minReady: 0, maxReadyAgeMs: Infinity };
  limits.apply({
    labels: new Map([
      ['small', { ...label, name: 'small', maxWaitMs: HOUR_MS }],
      ['large', { ...label, name: 'large', maxWaitMs: 2 * HOUR_MS }],
    ]),
  });
});

const request = (change: Partial<NodeRequest> = {}): NodeRequest =>
  requestWith({ node_types: ['large', 'small'], created_time: clock.now() / 1000, ...change });

const leftMs = (change?: Partial<NodeRequest>): number => limits.limitOf(request(change)).at - clock.now();

it('the wait limit is the smallest max-wait of the labels, from the creation of the request', () => {
  expect(leftMs()).toBe(HOUR_MS);
  expect(leftMs({ node_types: ['large'], created_time: clock.now() / 1000 - 60 })).toBe(2 * HOUR_MS - 60_000);
  expect(limits.limitOf(request()).reason).toBe('it has waited for 60 min (max-wait of small)');
});

it('the wait limit is six hours for a label without a setting', () => {
  expect(leftMs({ node_types: ['other'] })).toBe(6 * HOUR_MS);
});

it('the wait limit counts from the first sight of a request without a creation time', async () => {
  const unknown = request({ created_time: null });
  const { at } = limits.limitOf(unknown);
  await clock.advance(60_000);
  expect(limits.limitOf(unknown).at).toBe(at);
});

describe('start-by', () => {
  const startBy = (value: JsonValue): number => leftMs({ requestor_data: { 'start-by': value, other: 1 } });
  const in10Minutes = (): number => clock.now() + 600_000;

  it('of the requestor shortens the wait, as Unix time or in ISO 8601', () => {
    expect(startBy(in10Minutes() / 1000)).toBe(600_000);
    expect(startBy(new Date(in10Minutes()).toISOString())).toBe(600_000);
  });

  it('does not lengthen it', () => {
    expect(startBy(clock.now() / 1000 + 86_400)).toBe(HOUR_MS);
  });

  it.each<JsonValue>(['in another format, %p, is ignored', null, true, {}, 1e300])(
    'of another form, %p, is ignored',
    (value) => {
      expect(startBy(value)).toBe(HOUR_MS);
    },
  );
});

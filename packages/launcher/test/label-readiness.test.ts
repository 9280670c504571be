/** Tests of the warnings about labels that a pool cannot serve, on the virtual clock. */

import { beforeEach, describe, expect, it } from '@jest/globals';
import { silentLogger, silentMetrics } from '@nodepool/core';
import { VirtualClock } from '@nodepool/core/testing';
import type { LabelActivity } from '@nodepool/status';
import { LabelReadiness } from '../src/pool/label-readiness.js';

let clock: VirtualClock;
let activity: LabelActivity;
let logged: string[];
let reported: (number | undefined)[];
let readiness: LabelReadiness;

beforeEach(() => {
  clock = new VirtualClock();
  activity = { label: 'small', obstacle: undefined, cause: undefined };
  logged = [];
  reported = [];
  readiness = new LabelReadiness({
    clock,
    metrics: { ...silentMetrics, set: (_gauge, _labels, value) => void reported.push(value) },
    log: { ...silentLogger, warn: (message) => void logged.push(message) },
    provider: 'demo',
    pool: 'main',
    labels: () => [activity],
    onChange: () => undefined,
  });
  readiness.start();
});

/** Changes the obstacle of the label, and lets three checks pass. */
async function change(cause: LabelActivity['cause']): Promise<void> {
  activity = { label: 'small', obstacle: cause === undefined ? undefined : 'it is missing', cause };
  reported = [];
  logged = [];
  await clock.advance(90_000);
}

describe('the obstacle of a label', () => {
  it.each(['configuration', 'limit'] as const)('of the kind %s is logged once, and so is its end', async (cause) => {
    for (let time = 0; time < 2; time += 1) {
      await change(cause);
      expect(logged).toEqual(['The pool cannot serve a label; requests for it would fail']);
      expect(reported.at(-1)).toBe(1);
      await change(undefined);
      expect(logged).toEqual(['The pool can serve the label again']);
      expect(reported).toEqual([0, undefined]);
    }
    readiness.stop();
  });

  it('is reported and not logged if it is a disk image, about which builders report', async () => {
    await change('image');
    expect([logged, reported.at(-1)]).toEqual([[], 1]);
    readiness.stop();
  });

  it('is neither logged nor reported if it is the provider, whose trouble is reported once', async () => {
    await change('provider');
    expect([logged, reported]).toEqual([[], []]);
    readiness.stop();
  });
});

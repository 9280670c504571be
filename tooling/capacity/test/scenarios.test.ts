/** Short forms of the scenarios, at a quarter of the number of instances and requests. */

import { describe, expect, it } from '@jest/globals';
import { DISTURBANCES } from '../src/disturbances.js';
import { boundOf, misses, summarize, type Summary } from '../src/report.js';
import { run, type RunOptions } from '../src/run.js';

const MINUTE_MS = 60_000;
/** The calm period is longer than a job and a launch, so that all instances of the load exist at its end. */
const PERIODS = { calmMs: 12 * MINUTE_MS, disturbedMs: 15 * MINUTE_MS, afterMs: 2 * MINUTE_MS };

async function measure(options: Partial<RunOptions>): Promise<Summary> {
  const result = await run({ seed: 1, regions: 4, scale: 0.25, ...PERIODS, ...options });
  return summarize(result, PERIODS.calmMs, PERIODS.calmMs + PERIODS.disturbedMs);
}

describe('while one of four regions fails, all requests succeed and wait no longer than with three regions', () => {
  const baseline = measure({ regions: 3 });

  it.each(['down', 'stuck'])('%s', async (name) => {
    const disturbance = DISTURBANCES.find((each) => each.name === name);
    expect(disturbance).toBeDefined();
    const now = await measure({ disturbance });
    expect(now.requests).toBeGreaterThan(300);
    expect(misses({ title: name, now, brief: undefined, without: undefined }, boundOf(await baseline))).toEqual([]);
  });
});

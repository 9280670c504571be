/** Tests of the search for the smallest limit. */

import { describe, expect, it } from '@jest/globals';
import { fit, type FitOptions } from '../src/fit.js';
import { FitError, fitText, readDay, trialText } from '../src/index.js';
import type { RunMeasures } from '../src/result/measures.js';
import { siteConfig } from './support/site.js';

const PROVIDERS = {
  alpha: { labels: ['small'], maxServers: 30 },
  beta: { labels: ['small', 'large'], maxServers: 10 },
};

const NODES = { limit: null, atLimit: 0, idleHours: 0, usedHours: 0, nodeHours: 0 };

/** Measures in which every wait is as long as the limit is too small; 23 nodes are enough. */
function measures(limits: ReadonlyMap<string, number>, seed: number): RunMeasures {
  const total = [...limits.values()].reduce((sum, each) => sum + each, 0);
  const waitsMs = [Math.max(0, 23 - total) * 1000 + seed];
  const most = (pool: string): number => Math.min(limits.get(pool) ?? 0, 20);
  return {
    labels: { small: { requests: 1, waitsMs, failed: 0, cancelled: 0, unanswered: 0, mostNodes: 0, ...NODES } },
    pools: Object.fromEntries([...limits.keys()].map((pool) => [pool, { mostNodes: most(pool), ...NODES }])),
    ...{ providers: {}, tenants: {}, failures: {}, assumptions: ['No launch was observed.'] },
  };
}

async function options(target: Partial<FitOptions['target']> = {}): Promise<FitOptions> {
  return {
    day: await readDay([{ name: 'day', lines: ['{"created": 1790000000, "label": "small", "held": 1}'] }]),
    config: await siteConfig({ providers: PROVIDERS }),
    target: { label: 'small', part: 0.95, waitMs: 500, ...target },
    runs: 3,
    replays: {
      size: 1,
      replay: ({ limits = new Map<string, number>(), seed }) => Promise.resolve(measures(limits, seed)),
    },
  };
}

describe('the search for a limit', () => {
  it('finds the smallest limit of all pools of the label, in the proportion of their limits', async () => {
    const found = await fit(await options());
    expect(found).toMatchObject({ limit: 23, limits: { 'alpha/main': 17, 'beta/main': 6 } });
    // Two of three runs decide.
    expect(found.trials.map(({ limit, waits, holds }) => [limit, waits.length, holds])).toEqual([
      [null, 2, true],
      [20, 2, false],
      [30, 2, true],
      [25, 2, true],
      [22, 2, false],
      [23, 2, true],
    ]);
    expect(fitText(found, { label: 'small', part: 0.95, waitMs: 500 })).toContain(
      'The smallest limit that holds p95 of the waits of small within 0.5 s in most runs is 23 ' +
        '(alpha/main 17, beta/main 6).\n' +
        'The configuration has alpha/main 30, beta/main 10. 6 limits were tried.\n\n' +
        'What this rests on:\n- No launch was observed.\n',
    );
  });

  it('says that no limit holds a target which launches alone exceed', async () => {
    const target = { label: 'small', part: 0.5, waitMs: 0 };
    const found = await fit(await options(target));
    expect(found).toMatchObject({ limit: null, trials: [{ limit: null, holds: false }] });
    expect(fitText(found, target)).toMatch(/^No limit holds p50 of the waits of small within 0 s: even without/);
    expect(found.trials.map((trial) => trialText(trial, target))).toEqual(['limit none: p50 0 s, 0 s: does not hold']);
  });

  it('refuses labels and pools that do not exist', async () => {
    await expect(fit(await options({ label: 'huge' }))).rejects.toThrow(
      new FitError('no pool of the configuration serves label huge'),
    );
    await expect(fit(await options({ pool: 'alpha/spare' }))).rejects.toThrow(
      new FitError('the configuration has no pool alpha/spare that serves label small'),
    );
    await expect(fit(await options({ label: 'large' }))).rejects.toThrow(
      new FitError('no request of the day has label large'),
    );
  });
});

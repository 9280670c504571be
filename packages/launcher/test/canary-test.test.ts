/**
 * Tests of the sequential test of images, with its false alarms and its detections in many trials. The measured table
 * is in `docs/images.md`; `NODEPOOL_CANARY_TRIALS=1000` prints it.
 */

import { describe, expect, it } from '@jest/globals';
import type { NodeTrial } from '@nodepool/core';
import { seededRandom } from '@nodepool/core/testing';
import { evidenceOf, newTrial, observe, verdictOf } from '../src/images/canary-test.js';

const TRIALS = Number(process.env['NODEPOOL_CANARY_TRIALS'] ?? 40);
const DEFAULTS = { share: 0.1, nodes: 30, falseAlarms: 0.05 };

interface Rates {
  readonly launch: number;
  readonly job: number;
  /** Seconds that each launch takes longer. */
  readonly delay: number;
}

const GOOD: Rates = { launch: 0.02, job: 0.05, delay: 0 };

interface Outcome {
  readonly verdict: 'worse' | 'no worse' | undefined;
  /** Nodes of the candidate until the verdict. */
  readonly nodes: number;
}

/** Runs one trial to its verdict. */
function runTrial(seed: number, current: Rates, candidate: Rates, settings = DEFAULTS): Outcome {
  const random = seededRandom(seed);
  let trial = newTrial(0);
  let nodes = 0;
  for (let node = 0; node < 100_000; node += 1) {
    const isCandidate = random.next() < settings.share;
    const rates = isCandidate ? candidate : current;
    if (isCandidate) nodes += 1;
    const isLaunched = random.next() >= rates.launch;
    const seconds = isLaunched ? 30 + 20 * random.next() ** 2 + rates.delay : null;
    const part: NodeTrial = {
      ...{ upload: 'u', candidate: isCandidate, share: settings.share },
      ...{ launch: isLaunched ? 'ready' : 'failed', seconds },
    };
    const id = String(node);
    trial = observe(trial, { kind: 'launch', node: id, trial: part }, 0);
    const failed = random.next() < rates.job;
    if (isLaunched) trial = observe(trial, { kind: 'job', node: id, trial: part, failed }, 0);
    trial = observe(trial, { kind: 'end', node: id, trial: part }, 0);
    trial = { ...trial, counted: {} };
    const verdict = verdictOf(trial, settings);
    if (verdict !== undefined) return { verdict, nodes };
  }
  return { verdict: undefined, nodes };
}

interface Row {
  readonly what: string;
  readonly rejected: number;
  /** Median of the candidate's nodes until the rejection. */
  readonly nodes: number;
}

function measure(what: string, candidate: Rates, current = GOOD, settings = DEFAULTS): Row {
  const outcomes = Array.from({ length: TRIALS }, (_, seed) => runTrial(seed + 1, current, candidate, settings));
  const rejected = outcomes.filter(({ verdict }) => verdict === 'worse').map(({ nodes }) => nodes);
  const median = rejected.sort((a, b) => a - b)[Math.floor(rejected.length / 2)] ?? NaN;
  return { what, rejected: rejected.length / TRIALS, nodes: median };
}

describe('the test of a candidate', () => {
  it('rejects candidates that are no worse at most as often as configured, also with many failures', () => {
    const cases: readonly [string, Rates, Rates][] = [
      ['equal images', GOOD, GOOD],
      ['equal images, 20 % of jobs fail', { ...GOOD, job: 0.2 }, { ...GOOD, job: 0.2 }],
      ['equal images, half of the launches fail', { ...GOOD, launch: 0.5 }, { ...GOOD, launch: 0.5 }],
      ['a better candidate', { ...GOOD, job: 0.3 }, GOOD],
    ];
    for (const [what, current, candidate] of cases) {
      const { rejected } = measure(what, candidate, current);
      expect({ what, rejected: rejected <= DEFAULTS.falseAlarms }).toEqual({ what, rejected: true });
    }
  });

  it('also rejects as rarely if it looks at a thousand nodes', () => {
    const settings = { ...DEFAULTS, nodes: 100 };
    expect(measure('long', GOOD, GOOD, settings).rejected).toBeLessThanOrEqual(DEFAULTS.falseAlarms);
  });

  it('rejects most candidates that are much worse', () => {
    expect(measure('no launch succeeds', { ...GOOD, launch: 1 }).rejected).toBe(1);
    expect(measure('every job fails', { ...GOOD, job: 1 }).rejected).toBe(1);
    expect(measure('a minute late', { ...GOOD, delay: 60 }).rejected).toBe(1);
    expect(measure('half of the jobs fail', { ...GOOD, job: 0.5 }).rejected).toBeGreaterThan(0.9);
  });

  it('counts each observation of a node once', () => {
    const part: NodeTrial = { upload: 'u', candidate: true, share: 0.1, launch: 'failed', seconds: null };
    const once = observe(newTrial(0), { kind: 'launch', node: '1', trial: part }, 5);
    expect(observe(once, { kind: 'launch', node: '1', trial: part }, 6)).toBe(once);
    expect(evidenceOf(once)).toBeGreaterThan(1);
  });
});

if (process.env['NODEPOOL_CANARY_TRIALS'] !== undefined) {
  it('prints the table', () => {
    const worse = (job: number): Rates => ({ ...GOOD, job });
    const twenty: Rates = { ...GOOD, job: 0.2 };
    const rows = [
      measure('as good as the current one', GOOD),
      measure('as good, 20 % of all jobs fail', twenty, twenty),
      measure('as good, half of all launches fail', { ...GOOD, launch: 0.5 }, { ...GOOD, launch: 0.5 }),
      measure('as good, 300 nodes', GOOD, GOOD, { ...DEFAULTS, nodes: 300 }),
      measure('no launch succeeds', { ...GOOD, launch: 1 }),
      measure('half of the launches fail', { ...GOOD, launch: 0.5 }),
      measure('its login is a minute late', { ...GOOD, delay: 60 }),
      measure('every job fails', worse(1)),
      measure('half of the jobs fail', worse(0.5)),
      measure('20 % more jobs fail', worse(0.25)),
      measure('20 % more jobs fail, 100 nodes', worse(0.25), GOOD, { ...DEFAULTS, nodes: 100 }),
      measure('20 % more jobs fail, otherwise none', worse(0.2), worse(0)),
      measure('20 % more jobs fail, share 30 %', worse(0.25), GOOD, { ...DEFAULTS, share: 0.3 }),
      measure('10 % more jobs fail', worse(0.15)),
      measure('10 % more jobs fail, 100 nodes', worse(0.15), GOOD, { ...DEFAULTS, nodes: 100 }),
    ];
    const text = rows.map(({ what, rejected, nodes }) => `| ${what} | ${(100 * rejected).toFixed(1)} % | ${nodes} |`);
    process.stdout.write(`${text.join('\n')}\n`);
  });
}

/**
 * Tests of the sequential test of images, with its false alarms and its detections in many trials.
 * `NODEPOOL_CANARY_TRIALS=1000` prints the measured table; `docs/images.md` has a part of it.
 */

import { describe, expect, it } from '@jest/globals';
import type { NodeTrial, RandomSource } from '@nodepool/core';
import { seededRandom } from '@nodepool/core/testing';
import { evidenceOf, newTrial, observe, verdictOf } from '../src/images/canary-test.js';

const TRIALS = Number(process.env['NODEPOOL_CANARY_TRIALS'] ?? 40);
const DEFAULTS = { share: 0.1, nodes: 30, falseAlarms: 0.05 };

interface Rates {
  readonly launch: number;
  readonly job: number;
  /** Seconds that each launch takes longer. */
  readonly delay: number;
  /** Number of hypervisors; the first launch on each takes a minute longer. */
  readonly coldHosts?: number;
}

const GOOD: Rates = { launch: 0.02, job: 0.05, delay: 0 };
const COLD_SECONDS = 60;
/** Nodes of the candidate after which a trial without a verdict is held. */
const MAX_NODES = 150;
/** The most false alarms in a sample of 40 trials whose chance is 5 % each, in all but one of a hundred samples. */
const MOST_FALSE_ALARMS = 0.15;

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
  const warm = new Set<number>();
  for (let node = 0; nodes < Math.max(MAX_NODES, 2 * settings.nodes); node += 1) {
    const isCandidate = random.next() < settings.share;
    const rates = isCandidate ? candidate : current;
    if (isCandidate) nodes += 1;
    const isLaunched = random.next() >= rates.launch;
    const seconds = isLaunched ? 30 + 20 * random.next() ** 2 + rates.delay + coldDelay(rates, warm, random) : null;
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

/** Returns the seconds for which a hypervisor fetches the image, which it has from then on. */
function coldDelay({ coldHosts = 0 }: Rates, warm: Set<number>, random: RandomSource): number {
  if (coldHosts === 0) return 0;
  const host = Math.floor(random.next() * coldHosts);
  if (warm.has(host)) return 0;
  warm.add(host);
  return COLD_SECONDS;
}

interface Row {
  readonly what: string;
  readonly rejected: number;
  /** Share of the trials without a verdict. */
  readonly held: number;
  /** Median of the candidate's nodes until the rejection. */
  readonly nodes: number;
}

function measure(what: string, candidate: Rates, current = GOOD, settings = DEFAULTS): Row {
  const outcomes = Array.from({ length: TRIALS }, (_, seed) => runTrial(seed + 1, current, candidate, settings));
  const rejected = outcomes.filter(({ verdict }) => verdict === 'worse').map(({ nodes }) => nodes);
  const median = rejected.sort((a, b) => a - b)[Math.floor(rejected.length / 2)] ?? NaN;
  const held = outcomes.filter(({ verdict }) => verdict === undefined).length / TRIALS;
  return { what, rejected: rejected.length / TRIALS, held, nodes: median };
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
    expect(measure('half of the jobs fail', { ...GOOD, job: 0.5 }).rejected).toBeGreaterThan(0.9);
  });

  it('never rejects a candidate that is only slow, and promotes it once its launches are as fast as usual', () => {
    const late = measure('a minute late', { ...GOOD, delay: 60 });
    expect({ isHeld: late.held > 0.8, isRejected: late.rejected > MOST_FALSE_ALARMS }).toEqual({
      ...{ isHeld: true, isRejected: false },
    });
    for (const coldHosts of [5, 60]) {
      const cold = measure('cold', { ...GOOD, coldHosts });
      expect({ coldHosts, held: cold.held, isRejected: cold.rejected > MOST_FALSE_ALARMS }).toEqual({
        ...{ coldHosts, held: 0, isRejected: false },
      });
    }
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
      measure('20 hosts fetch it for a minute', { ...GOOD, coldHosts: 20 }),
      measure('60 hosts fetch it for a minute', { ...GOOD, coldHosts: 60 }),
      measure('every job fails', worse(1)),
      measure('half of the jobs fail', worse(0.5)),
      measure('20 % more jobs fail', worse(0.25)),
      measure('20 % more jobs fail, 100 nodes', worse(0.25), GOOD, { ...DEFAULTS, nodes: 100 }),
      measure('20 % more jobs fail, otherwise none', worse(0.2), worse(0)),
      measure('20 % more jobs fail, share 30 %', worse(0.25), GOOD, { ...DEFAULTS, share: 0.3 }),
      measure('10 % more jobs fail', worse(0.15)),
      measure('10 % more jobs fail, 100 nodes', worse(0.15), GOOD, { ...DEFAULTS, nodes: 100 }),
    ];
    const text = rows.map(({ what, rejected, held, nodes }) => {
      const share = (part: number): string => `${(100 * part).toFixed(1)} %`;
      return `| ${what} | ${share(rejected)} | ${share(held)} | ${nodes} |`;
    });
    process.stdout.write(`${text.join('\n')}\n`);
  });
}

describe('a candidate without a failure', () => {
  const part = (candidate: boolean, launch: 'ready' | 'failed'): NodeTrial => ({
    ...{ upload: 'u', candidate, share: 0.5, launch },
    seconds: launch === 'ready' ? 30 : null,
  });

  it('is not rejected because its launches are few or slow, until one of them fails', () => {
    let trial = newTrial(0);
    const launched = (node: number, candidate: boolean, launch: 'ready' | 'failed'): void => {
      trial = observe(trial, { kind: 'launch', node: String(node), trial: part(candidate, launch) }, 0);
    };
    for (let node = 0; node < 12; node += 1) launched(node, false, 'ready');
    expect(evidenceOf(trial)).toBeGreaterThan(20);
    expect(verdictOf(trial, DEFAULTS)).toBeUndefined();
    launched(12, true, 'failed');
    expect(verdictOf(trial, DEFAULTS)).toBe('worse');
  });
});

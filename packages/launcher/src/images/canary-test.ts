/**
 * The sequential test that compares an upload in its trial with the current one. The image of a node is drawn at
 * random, with a known share. Therefore, if both images fail equally often, an outcome belongs to the candidate with
 * the probability `share`, whatever the outcome and however often nodes fail. The product of the likelihood ratios of
 * the outcomes, against a pair of failure rates, is a supermartingale unless the candidate is worse, and so is the mean
 * over all pairs and kinds of failures. By Ville's inequality, it ever exceeds `1 / falseAlarms` with at most the
 * probability `falseAlarms`: the test may look after every node, without an end.
 *
 * Slow launches never reject an image: the first launch of every new image on a hypervisor is slow, because the host
 * has to fetch it. They only postpone the promotion, until launches are no slower than those of the current image.
 */

import type { CanaryTrial, NodeTrial, TrialArm } from '@nodepool/core';

/** Failure rates of the current image and of a worse candidate that the test looks for. */
const RATES = [
  { current: 0.01, candidate: 0.05 },
  { current: 0.02, candidate: 0.2 },
  { current: 0.02, candidate: 0.6 },
  { current: 0.05, candidate: 0.95 },
  { current: 0.1, candidate: 0.3 },
  { current: 0.1, candidate: 0.7 },
  { current: 0.3, candidate: 0.6 },
] as const;
/** The kinds of failures that reject an image; each has its own products. */
const FAILURES = ['launch', 'job'] as const;
type Kind = (typeof FAILURES)[number] | 'slow';
/** Share of slow launches from which an image is usually slow. */
const USUALLY = 0.6;
/** Limit of the logarithms of slow launches, so that a few dozen usual launches outweigh any number of slow ones. */
const MAX_SLOW_LOG = 6;

/** A launch is slow if it takes this many times the median of the current image. */
const SLOW_FACTOR = 1.5;
/** Number of launches of the current image from which their median counts. */
const MIN_TIMES = 5;
/** Ratio of neighbouring classes of durations. */
const TIME_CLASS = 1.05;

/** A fact that one node has shown. */
export type Observation =
  | { readonly kind: 'launch'; readonly node: string; readonly trial: NodeTrial }
  | { readonly kind: 'job'; readonly node: string; readonly trial: NodeTrial; readonly failed: boolean }
  /** The node of the candidate is done, with or without an outcome of its job. */
  | { readonly kind: 'end'; readonly node: string; readonly trial: NodeTrial };

const EMPTY_ARM: TrialArm = { launches: 0, failed_launches: 0, slow_launches: 0, jobs: 0, failed_jobs: 0 };

export function newTrial(began: number): CanaryTrial {
  return { began, candidate: EMPTY_ARM, current: EMPTY_ARM, judged: 0, evidence: {}, times: {}, counted: {} };
}

/** Returns the key of an observation in `counted`. */
export function keyOf({ node, kind }: Pick<Observation, 'node' | 'kind'>): string {
  return `${node}/${kind}`;
}

/** Returns the trial with the observation, or the same one if it is counted already. `now` in unix seconds. */
export function observe(trial: CanaryTrial, observation: Observation, now: number): CanaryTrial {
  const key = keyOf(observation);
  if (trial.counted[key] !== undefined) return trial;
  const counted = { ...trial, counted: { ...trial.counted, [key]: Math.round(now) } };
  switch (observation.kind) {
    case 'launch':
      return observeLaunch(counted, observation.trial);
    case 'job': {
      const { failed } = observation;
      const next = count(counted, observation.trial, { jobs: 1, failed_jobs: failed ? 1 : 0 });
      return weigh(next, 'job', observation.trial, failed);
    }
    case 'end':
      return observation.trial.candidate ? { ...counted, judged: counted.judged + 1 } : counted;
  }
}

function observeLaunch(trial: CanaryTrial, part: NodeTrial): CanaryTrial {
  if (part.launch !== 'ready') {
    return weigh(count(trial, part, { launches: 1, failed_launches: 1 }), 'launch', part, true);
  }
  const seconds = part.seconds ?? 0;
  // The limit depends on earlier launches only, as the test demands.
  const median = medianOf(trial.times);
  const isSlow = median !== undefined && seconds > SLOW_FACTOR * median;
  const next = count(trial, part, { launches: 1, slow_launches: isSlow ? 1 : 0 });
  const timed = part.candidate ? next : { ...next, times: withTime(next.times, seconds) };
  const launched = weigh(timed, 'launch', part, false);
  return median === undefined ? launched : weigh(launched, 'slow', part, isSlow);
}

/** Returns the trial with the likelihood ratios of one outcome. */
function weigh(trial: CanaryTrial, kind: Kind, { candidate, share }: NodeTrial, failed: boolean): CanaryTrial {
  if (share <= 0 || share >= 1) return trial;
  const before = trial.evidence[kind];
  const weights = RATES.map((rates, index) => {
    const [ofCandidate, ofCurrent] = failed
      ? [rates.candidate, rates.current]
      : [1 - rates.candidate, 1 - rates.current];
    const expected = (share * ofCandidate) / (share * ofCandidate + (1 - share) * ofCurrent);
    const ratio = candidate ? expected / share : (1 - expected) / (1 - share);
    const sum = (before?.[index] ?? 0) + Math.log(ratio);
    return round(kind === 'slow' ? Math.min(sum, MAX_SLOW_LOG) : sum);
  });
  return { ...trial, evidence: { ...trial.evidence, [kind]: weights } };
}

/** Returns the mean of the products: how many times better the failures fit to a worse candidate. */
export function evidenceOf(trial: Pick<CanaryTrial, 'evidence'>): number {
  return meanOf(trial, FAILURES);
}

function meanOf({ evidence }: Pick<CanaryTrial, 'evidence'>, kinds: readonly Kind[]): number {
  const ratios = kinds.flatMap((kind) =>
    RATES.flatMap(({ candidate }, index) =>
      kind === 'slow' && candidate < USUALLY ? [] : [Math.exp(evidence[kind]?.[index] ?? 0)],
    ),
  );
  return ratios.reduce((sum, ratio) => sum + ratio, 0) / ratios.length;
}

export type Verdict = 'worse' | 'no worse' | undefined;

/** Returns the verdict; undefined while more nodes are needed. */
export function verdictOf(
  trial: CanaryTrial,
  { nodes, falseAlarms }: { readonly nodes: number; readonly falseAlarms: number },
): Verdict {
  // Without a failure, the candidate has only few outcomes, by chance or because its launches are slow.
  const hasFailed = trial.candidate.failed_launches + trial.candidate.failed_jobs > 0;
  if (hasFailed && evidenceOf(trial) >= 1 / falseAlarms) return 'worse';
  const isSlow = meanOf(trial, ['slow']) >= 1 / falseAlarms;
  return trial.judged >= nodes && !isSlow ? 'no worse' : undefined;
}

/** Returns the counts of both arms in words. */
export function describeTrial({ candidate, current }: Pick<CanaryTrial, 'candidate' | 'current'>): string {
  const part = (failed: keyof TrialArm, all: keyof TrialArm, what: string): string =>
    `${candidate[failed]} of ${candidate[all]} ${what} (current image: ${current[failed]} of ${current[all]})`;
  return [
    part('failed_launches', 'launches', 'launches failed'),
    part('slow_launches', 'launches', 'were slow'),
    part('failed_jobs', 'jobs', 'jobs failed'),
  ].join(', ');
}

function count(trial: CanaryTrial, { candidate }: NodeTrial, amounts: Partial<TrialArm>): CanaryTrial {
  const arm = candidate ? 'candidate' : 'current';
  const before = trial[arm];
  const after = Object.fromEntries(
    Object.entries({ ...before, ...amounts }).map(([name, value]) => {
      const field = name as keyof TrialArm;
      return [field, amounts[field] === undefined ? value : before[field] + amounts[field]];
    }),
  ) as unknown as TrialArm;
  return { ...trial, [arm]: after };
}

function withTime(times: CanaryTrial['times'], seconds: number): CanaryTrial['times'] {
  const timeClass = String(Math.round(Math.log(Math.max(seconds, 0.001)) / Math.log(TIME_CLASS)));
  return { ...times, [timeClass]: (times[timeClass] ?? 0) + 1 };
}

/** Returns the median; undefined while too few times are known. */
function medianOf(times: CanaryTrial['times']): number | undefined {
  const classes = Object.entries(times)
    .map(([timeClass, number]) => ({ timeClass: Number(timeClass), number }))
    .sort((a, b) => a.timeClass - b.timeClass);
  const total = classes.reduce((sum, { number }) => sum + number, 0);
  if (total < MIN_TIMES) return undefined;
  let left = total / 2;
  for (const { timeClass, number } of classes) {
    left -= number;
    if (left <= 0) return TIME_CLASS ** timeClass;
  }
  return undefined;
}

/** Limits the length of the record. */
function round(value: number): number {
  return Math.round(value * 1e4) / 1e4;
}

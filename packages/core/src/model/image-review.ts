/**
 * The review of an upload: how far an image has been tested, and whether requests may use it. It is the field `review`
 * of the upload's record. An upload without it is trusted, as every upload of other Nodepool implementations is.
 */

export const IMAGE_STAGES = ['uploaded', 'launch-tested', 'canary', 'promoted', 'rejected', 'revoked'] as const;
export type ImageStage = (typeof IMAGE_STAGES)[number];

export type ReviewEvent =
  /** A node launched from the upload has passed the launch test. */
  | 'tested'
  /** A share of the launches begins to use the upload. */
  | 'trial'
  | 'promote'
  | 'reject'
  | 'revoke'
  /** An operator trusts an upload that was rejected or revoked, or returns to an earlier one. */
  | 'reinstate';

/** The stage that follows a stage with each event; absent events are refused. */
const STAGE_TRANSITIONS: Readonly<Record<ImageStage, Readonly<Partial<Record<ReviewEvent, ImageStage>>>>> = {
  uploaded: {
    tested: 'launch-tested',
    trial: 'canary',
    promote: 'promoted',
    reject: 'rejected',
    revoke: 'revoked',
  },
  'launch-tested': { trial: 'canary', promote: 'promoted', reject: 'rejected', revoke: 'revoked' },
  canary: { promote: 'promoted', reject: 'rejected', revoke: 'revoked' },
  promoted: { reinstate: 'promoted', reject: 'rejected', revoke: 'revoked' },
  rejected: { reinstate: 'promoted', revoke: 'revoked' },
  revoked: { reinstate: 'promoted' },
};

export interface StageChange {
  readonly stage: string;
  /** Unix seconds. */
  readonly since: number;
  /** The program or the operator that made the change. */
  readonly by: string;
  readonly reason: string;
}

export interface ImageReview extends StageChange {
  readonly stage: ImageStage;
  /** Unix seconds of the promotion; the newest promoted upload is the current one. */
  readonly promoted?: number | undefined;
  /** The operator who pinned the upload, and when. A pinned upload is the current one, whatever is promoted. */
  readonly pinned?: { readonly by: string; readonly since: number } | undefined;
  readonly trial?: CanaryTrial | undefined;
  /** The last changes, oldest first. */
  readonly history: readonly StageChange[];
}

/** Counts of one arm of a trial. Each node counts once. */
export interface TrialArm {
  readonly launches: number;
  readonly failed_launches: number;
  /** Launches that took much longer than those of the current image usually do. */
  readonly slow_launches: number;
  readonly jobs: number;
  readonly failed_jobs: number;
}

/** The comparison of an upload with the current one. */
export interface CanaryTrial {
  /** Unix seconds. */
  readonly began: number;
  readonly candidate: TrialArm;
  readonly current: TrialArm;
  /** Number of nodes of the candidate whose job has ended or whose launch has failed. */
  readonly judged: number;
  /** Logarithms of the likelihood ratios of the launcher's `canary-test.ts`, by observation and relative risk. */
  readonly evidence: Readonly<Record<string, readonly number[]>>;
  /** Numbers of launches of the current image by class of duration. */
  readonly times: Readonly<Record<string, number>>;
  /** Observations that are counted, as `<node id>/<kind>`, with the unix seconds at which each was counted. */
  readonly counted: Readonly<Record<string, number>>;
}

const MAX_HISTORY = 20;

/** Returns the review of a new upload that is to be tested. */
export function newReview(since: number, by: string, reason: string): ImageReview {
  const change = { stage: 'uploaded' as const, since, by, reason };
  return { ...change, history: [change] };
}

/**
 * Returns the review after the event, or undefined if its stage does not allow the event. An upload without a review is
 * promoted.
 */
export function advanceReview(
  { review, since }: { readonly review: ImageReview | undefined; readonly since: number },
  event: ReviewEvent,
  change: Omit<StageChange, 'stage'>,
): ImageReview | undefined {
  const before = review ?? trustedReview(since);
  const stage = STAGE_TRANSITIONS[before.stage][event];
  if (stage === undefined) return undefined;
  return {
    ...before,
    ...change,
    stage,
    ...(stage === 'promoted' ? { promoted: change.since } : {}),
    // A pin would contradict these stages.
    ...(stage === 'rejected' || stage === 'revoked' ? { pinned: undefined } : {}),
    history: [...before.history, { ...change, stage }].slice(-MAX_HISTORY),
  };
}

/** Returns the review with an entry in its history that does not change the stage. */
export function noteReview(review: ImageReview, note: string, change: Omit<StageChange, 'stage'>): ImageReview {
  return { ...review, history: [...review.history, { ...change, stage: note }].slice(-MAX_HISTORY) };
}

/** Returns the review of an upload that was used before its image had tests. */
export function trustedReview(since: number): ImageReview {
  const change = { stage: 'promoted' as const, since, by: 'nodepool', reason: 'its image had no tests' };
  return { ...change, promoted: since, history: [change] };
}

/** Settings and initial content of the simulated GitHub. */

import type { CloudState } from '@nodepool/simulated-cloud';

export interface GithubSettings {
  /** Latency of each call (ms); half precedes its effect, half follows it. */
  readonly latencyMs: number;
  /** Difference of the service's clock, which checks and issues tokens, from the simulation's (ms). */
  readonly clockAheadMs: number;
  /**
   * `direct`: the service assigns jobs to scale sets, as github.com does. `acquire`: it offers them with
   * `JobAvailable`, and the first scale set that acquires a job gets it, as GitHub Enterprise Server does.
   */
  readonly assignment: 'direct' | 'acquire';
  /** Time from `acquirejobs` until the job is assigned (ms). */
  readonly assignMs: number;
  /** Time for which a call for messages waits (ms). */
  readonly longPollMs: number;
  /** Time after the last call for messages until the session of a scale set ends by itself (ms). */
  readonly sessionExpiryMs: number;
  /** Lifetime of the tokens of App installations (ms). */
  readonly installationTokenMs: number;
  /** Lifetime of registration tokens (ms). */
  readonly registrationTokenMs: number;
  /** Lifetime of the tokens for the Actions service (ms). */
  readonly adminTokenMs: number;
  /** Lifetime of the tokens for message queues (ms). */
  readonly queueTokenMs: number;
  /** Time in which a runner must take an assigned job, else the job is assigned anew (ms). */
  readonly pickupMs: number;
  /** Pause before the second assignment of a job (ms); twice as long before the third, and so on. */
  readonly requeueDelayMs: number;
  /** Time in the queue after which a job is cancelled (ms). */
  readonly queueLimitMs: number;
  /** Time without a call of a runner after which it is offline (ms). */
  readonly runnerTimeoutMs: number;
  /** Time without a renewal after which a running job fails (ms). */
  readonly jobLockMs: number;
  /** Time in which a runner must end a cancelled job, else the service ends it (ms). */
  readonly cancelGraceMs: number;
  /** Time after which the registration of an offline runner is deleted (ms). */
  readonly offlineRunnerMs: number;
  /**
   * If true, calls of the Actions service need the system information in their header `User-Agent`, which GitHub's
   * client sends. Other clients may need false.
   */
  readonly strictUserAgent: boolean;
  /**
   * If true, runners have fields that GitHub's client does not read and that other clients expect: `status`, `busy` and
   * more.
   */
  readonly runnerDetails: boolean;
  /** If true, answers of the Actions service begin with a byte order mark, which GitHub's client removes. */
  readonly byteOrderMark: boolean;
}

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

export const DEFAULT_SETTINGS: GithubSettings = {
  latencyMs: 0,
  clockAheadMs: 0,
  assignment: 'direct',
  assignMs: 0,
  longPollMs: 50_000,
  sessionExpiryMs: 90_000,
  installationTokenMs: HOUR_MS,
  registrationTokenMs: HOUR_MS,
  adminTokenMs: HOUR_MS,
  queueTokenMs: HOUR_MS,
  pickupMs: 5 * MINUTE_MS,
  requeueDelayMs: MINUTE_MS,
  queueLimitMs: 24 * HOUR_MS,
  runnerTimeoutMs: MINUTE_MS,
  jobLockMs: 10 * MINUTE_MS,
  cancelGraceMs: 5 * MINUTE_MS,
  offlineRunnerMs: 24 * HOUR_MS,
  strictUserAgent: true,
  runnerDetails: false,
  byteOrderMark: false,
};

/** Repositories by organization, and organizations by enterprise. */
export interface World {
  readonly organizations: Readonly<Record<string, readonly string[]>>;
  readonly enterprises: Readonly<Record<string, readonly string[]>>;
}

export const DEFAULT_WORLD: World = {
  organizations: { acme: ['app', 'web', 'docs', 'infra', 'tools'], globex: ['app'] },
  enterprises: { umbrella: ['acme', 'globex'] },
};

/** Runner group that every scope has. */
export const DEFAULT_GROUP = { id: 1, name: 'default' } as const;
/** Version of the Actions service's API, which every call must name. */
export const API_VERSION = '6.0-preview';
/** Id of the first workflow run. GitHub's ids need more than 32 bits. */
export const FIRST_RUN_ID = 30_000_000_001;
/** Maximum number of job messages in one answer. */
export const MAX_MESSAGES = 50;

export type GithubState = CloudState<GithubSettings>;

/** Returns the service's time, milliseconds since the epoch. */
export function serviceTime({ clock, settings }: GithubState): number {
  return clock.now() + settings.clockAheadMs;
}

/** Returns the service's time as text. */
export function timestamp(state: GithubState): string {
  return new Date(serviceTime(state)).toISOString();
}

/** Returns a random uuid. */
export function newUuid({ random }: GithubState): string {
  return random.uuidHex().replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}

/** Data of the bridge for GitHub Actions in ZooKeeper: in its requests and nodes, and the states of its scale sets. */

import { isJsonObject, type JsonObject, type JsonValue } from '@nodepool/core';
import { NODEPOOL_ROOT } from '../paths.js';

export const GITHUB_ROOT = `${NODEPOOL_ROOT}/github`;

/** A job of a workflow. */
export interface GithubJob {
  readonly id: string;
  /** e.g. `acme/app`. */
  readonly repository: string;
  /** e.g. `acme/app/.github/workflows/ci.yml@refs/heads/main`. */
  readonly workflow: string;
  readonly run: number;
  readonly name: string;
}

/** The member `github` of the `requestor_data` of a runner's request, and later of the `user_data` of its node. */
export interface RunnerData {
  readonly installation: string;
  readonly scaleSet: string;
  /** Name of the runner. */
  readonly runner: string;
  /** The job that caused the request, later the job that GitHub has given to the runner; null if unknown. */
  readonly job: GithubJob | null;
  /** Id of the runner in GitHub; null before its registration. */
  readonly agent: number | null;
  /** True once the runner may have been started: then its node is never used for another one. */
  readonly started: boolean;
}

const JOB_STATES = ['offered', 'assigned', 'running', 'completed'] as const;

/** A job that a scale set has, and its state for people. */
export interface KnownJob extends GithubJob {
  readonly state: (typeof JOB_STATES)[number];
  /** Unix seconds at which this state began. */
  readonly since: number;
  /** Unix seconds; null if unknown. */
  readonly queued: number | null;
  /** Name of the runner; null if it has none. */
  readonly runner: string | null;
  readonly result: string | null;
}

/**
 * A phase of a job or of its runner, in their order: in GitHub's queue, until the node is locked, the registration,
 * until the runner is online, from the queue until the runner is online (the sum), without a job, from the assignment
 * until a runner starts the job, and until its end.
 */
export type RunnerPhase = (typeof RUNNER_PHASES)[number];

const RUNNER_PHASES = ['queued', 'node', 'register', 'start', 'online', 'idle', 'waiting', 'running'] as const;

/** The last times of a phase in one repository, seconds. */
export interface PhaseTimes {
  /** `unknown` for runners whose job the bridge did not know, `other` for repositories beyond a limit. */
  readonly repository: string;
  readonly phase: RunnerPhase;
  readonly count: number;
  readonly p50: number;
  readonly p95: number;
}

/** The state of a scale set, `/nodepool/github/<installation>~<scale set>`, written by the bridge that serves it. */
export interface ScaleSetRecord {
  readonly installation: string;
  readonly scaleSet: string;
  /** Page of the installation. */
  readonly url: string;
  readonly nodeLabel: string;
  /** Host and process of the bridge. */
  readonly bridge: string;
  /** Ids of the scale set and of the session in GitHub. The next bridge closes a session that was left. */
  readonly id: number | null;
  readonly session: string | null;
  /** Number of jobs that GitHub may assign, and the reason. */
  readonly capacity: number;
  readonly capacityReason: string;
  readonly jobsAvailable: number;
  readonly jobsAssigned: number;
  readonly jobsRunning: number;
  readonly runners: Readonly<Record<string, number>>;
  /** The trouble of the connection to GitHub; null if there is none. */
  readonly problem: string | null;
  /** Unix seconds of the last write. */
  readonly written: number;
  readonly jobs: readonly KnownJob[];
  readonly phases: readonly PhaseTimes[];
}

export function scaleSetRecordPath(installation: string, scaleSet: string): string {
  return `${GITHUB_ROOT}/${installation}~${scaleSet}`;
}

/** Returns the value for `requestor_data` or `user_data`. */
export function runnerDataValue(data: RunnerData): JsonObject {
  return { github: { ...data, job: data.job === null ? null : { ...data.job } } };
}

/** Returns the data of a runner; undefined if another program wrote the value. */
export function runnerDataIn(value: JsonValue): RunnerData | undefined {
  const data = isJsonObject(value) ? value['github'] : undefined;
  if (!isJsonObject(data)) return undefined;
  const { installation, scaleSet, runner, agent } = data;
  if (typeof installation !== 'string' || typeof scaleSet !== 'string' || typeof runner !== 'string') return undefined;
  return {
    ...{ installation, scaleSet, runner },
    job: jobIn(data['job']),
    agent: typeof agent === 'number' ? agent : null,
    started: data['started'] === true,
  };
}

/** Returns undefined for a record that cannot be read. Members of another type get their defaults. */
export function scaleSetRecordIn(data: Uint8Array): ScaleSetRecord | undefined {
  const value = parsed(data);
  if (!isJsonObject(value)) return undefined;
  const { installation, scaleSet, runners } = value;
  if (typeof installation !== 'string' || typeof scaleSet !== 'string') return undefined;
  return {
    ...{ installation, scaleSet, url: text(value['url']), nodeLabel: text(value['nodeLabel']) },
    ...{ bridge: text(value['bridge']), id: numberOrNull(value['id']), session: textOrNull(value['session']) },
    ...{ capacity: number(value['capacity']), capacityReason: text(value['capacityReason']) },
    ...{ jobsAvailable: number(value['jobsAvailable']), jobsAssigned: number(value['jobsAssigned']) },
    ...{ jobsRunning: number(value['jobsRunning']), problem: textOrNull(value['problem']) },
    runners: Object.fromEntries(
      Object.entries(isJsonObject(runners) ? runners : {}).filter(
        (entry): entry is [string, number] => typeof entry[1] === 'number',
      ),
    ),
    written: number(value['written']),
    jobs: objects(value['jobs']).flatMap(knownJobIn),
    phases: objects(value['phases']).flatMap(phaseTimesIn),
  };
}

function parsed(data: Uint8Array): JsonValue {
  try {
    return JSON.parse(new TextDecoder().decode(data)) as JsonValue;
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}

function knownJobIn(value: JsonObject): KnownJob | readonly [] {
  const job = jobIn(value);
  const state = JOB_STATES.find((each) => each === value['state']);
  if (job === null || job.id === '' || state === undefined) return [];
  const { since, queued, runner, result } = value;
  return {
    ...{ ...job, state, since: number(since), queued: numberOrNull(queued) },
    ...{ runner: textOrNull(runner), result: textOrNull(result) },
  };
}

function phaseTimesIn({ repository, phase: name, count, p50, p95 }: JsonObject): PhaseTimes | readonly [] {
  const phase = RUNNER_PHASES.find((each) => each === name);
  if (typeof repository !== 'string' || phase === undefined) return [];
  return { repository, phase, count: number(count), p50: number(p50), p95: number(p95) };
}

function jobIn(value: JsonValue | undefined): GithubJob | null {
  if (!isJsonObject(value)) return null;
  const { id, repository, workflow, run, name } = value;
  return { id: text(id), repository: text(repository), workflow: text(workflow), run: number(run), name: text(name) };
}

function objects(value: JsonValue | undefined): readonly JsonObject[] {
  return Array.isArray(value) ? value.filter((each): each is JsonObject => isJsonObject(each)) : [];
}

function text(value: JsonValue | undefined): string {
  return typeof value === 'string' ? value : '';
}

function textOrNull(value: JsonValue | undefined): string | null {
  return typeof value === 'string' ? value : null;
}

function number(value: JsonValue | undefined): number {
  return typeof value === 'number' ? value : 0;
}

function numberOrNull(value: JsonValue | undefined): number | null {
  return typeof value === 'number' ? value : null;
}

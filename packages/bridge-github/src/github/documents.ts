/** Answers of the Actions service, as far as they are used. Unknown fields are ignored, missing ones have defaults. */

import { isJsonObject, type JsonObject, type JsonValue } from '@nodepool/core';

export interface ScaleSetDocument {
  readonly id: number;
  readonly name: string;
  readonly labels: readonly string[];
  readonly disableUpdate: boolean;
  readonly statistics: Statistics | undefined;
}

/** Numbers of a scale set, from which the number of runners follows. */
export interface Statistics {
  readonly available: number;
  readonly acquired: number;
  /** Jobs that the scale set has to serve, running ones included. */
  readonly assigned: number;
  readonly running: number;
  readonly registered: number;
  readonly busy: number;
  readonly idle: number;
}

export interface SessionDocument {
  readonly id: string;
  readonly queueUrl: string;
  readonly queueToken: string;
  readonly statistics: Statistics | undefined;
}

/** A runner as GitHub knows it. */
export interface Agent {
  readonly id: number;
  readonly name: string;
  readonly scaleSetId: number;
}

export type JobMessageKind = 'available' | 'assigned' | 'started' | 'completed';

export interface JobMessage {
  readonly kind: JobMessageKind;
  readonly requestId: number;
  readonly jobId: string;
  /** e.g. `acme/app`. */
  readonly repository: string;
  readonly workflow: string;
  readonly runId: number;
  readonly name: string;
  /** Milliseconds since the epoch on GitHub's clock; undefined if the message does not tell. */
  readonly queuedAt: number | undefined;
  readonly assignedAt: number | undefined;
  readonly startedAt: number | undefined;
  /** Name of the runner; empty if there is none. */
  readonly runner: string;
  /** e.g. `succeeded`; empty before the end. */
  readonly result: string;
}

export interface Message {
  readonly id: number;
  readonly jobs: readonly JobMessage[];
  readonly statistics: Statistics | undefined;
}

const KINDS: Readonly<Record<string, JobMessageKind | undefined>> = {
  JobAvailable: 'available',
  JobAssigned: 'assigned',
  JobStarted: 'started',
  JobCompleted: 'completed',
};

export function scaleSetIn(value: JsonValue | undefined): ScaleSetDocument | undefined {
  if (!isJsonObject(value) || numberIn(value, 'id') === 0) return undefined;
  const setting = value['RunnerSetting'];
  return {
    id: numberIn(value, 'id'),
    name: textIn(value, 'name'),
    labels: objectsIn(value['labels']).map((label) => textIn(label, 'name')),
    disableUpdate: isJsonObject(setting) && setting['disableUpdate'] === true,
    statistics: statisticsIn(value['statistics']),
  };
}

export function sessionIn(value: JsonValue | undefined): SessionDocument | undefined {
  if (!isJsonObject(value)) return undefined;
  const [id, queueUrl] = [textIn(value, 'sessionId'), textIn(value, 'messageQueueUrl')];
  const queueToken = textIn(value, 'messageQueueAccessToken');
  if (id === '' || queueUrl === '' || queueToken === '') return undefined;
  return { id, queueUrl, queueToken, statistics: statisticsIn(value['statistics']) };
}

export function agentIn(value: JsonValue | undefined): Agent | undefined {
  if (!isJsonObject(value) || numberIn(value, 'id') === 0) return undefined;
  return { id: numberIn(value, 'id'), name: textIn(value, 'name'), scaleSetId: numberIn(value, 'runnerScaleSetId') };
}

/** Returns the message of a queue; undefined if the answer is none. Jobs of unknown kinds are left out. */
export function messageIn(value: JsonValue | undefined): Message | undefined {
  if (!isJsonObject(value)) return undefined;
  const id = value['messageId'];
  if (typeof id !== 'number') return undefined;
  return { id, jobs: jobsIn(textIn(value, 'body')), statistics: statisticsIn(value['statistics']) };
}

/** Returns the elements of a list, which the service wraps in `value`. */
export function listIn(value: JsonValue | undefined): readonly JsonObject[] {
  return isJsonObject(value) ? objectsIn(value['value']) : [];
}

export function numbersIn(value: JsonValue | undefined): readonly number[] {
  const list = isJsonObject(value) ? value['value'] : undefined;
  return Array.isArray(list) ? list.filter((each): each is number => typeof each === 'number') : [];
}

/** Returns the job of an offer or of a message; undefined if its kind is unknown. */
export function jobIn(value: JsonObject): JobMessage | undefined {
  const kind = KINDS[textIn(value, 'messageType')];
  if (kind === undefined) return undefined;
  return {
    kind,
    requestId: numberIn(value, 'runnerRequestId'),
    jobId: textIn(value, 'jobId'),
    repository: `${textIn(value, 'ownerName')}/${textIn(value, 'repositoryName')}`,
    workflow: textIn(value, 'jobWorkflowRef'),
    runId: numberIn(value, 'workflowRunId'),
    name: textIn(value, 'jobDisplayName'),
    queuedAt: timeIn(value, 'queueTime'),
    assignedAt: timeIn(value, 'scaleSetAssignTime'),
    startedAt: timeIn(value, 'runnerAssignTime'),
    runner: textIn(value, 'runnerName'),
    result: textIn(value, 'result'),
  };
}

function jobsIn(body: string): readonly JobMessage[] {
  try {
    return objectsIn(JSON.parse(body) as JsonValue).flatMap((each) => jobIn(each) ?? []);
  } catch {
    // Jobs are hints, and the same message would come again for ever.
    return [];
  }
}

function statisticsIn(value: JsonValue | undefined): Statistics | undefined {
  if (!isJsonObject(value) || typeof value['totalAssignedJobs'] !== 'number') return undefined;
  const count = (name: string): number => Math.max(0, numberIn(value, name));
  return {
    available: count('totalAvailableJobs'),
    acquired: count('totalAcquiredJobs'),
    assigned: count('totalAssignedJobs'),
    running: count('totalRunningJobs'),
    registered: count('totalRegisteredRunners'),
    busy: count('totalBusyRunners'),
    idle: count('totalIdleRunners'),
  };
}

function objectsIn(value: JsonValue | undefined): readonly JsonObject[] {
  return Array.isArray(value) ? value.filter((each): each is JsonObject => isJsonObject(each)) : [];
}

function textIn(value: JsonObject, name: string): string {
  const found = value[name];
  return typeof found === 'string' ? found : '';
}

function numberIn(value: JsonObject, name: string): number {
  const found = value[name];
  return typeof found === 'number' ? found : 0;
}

/** Go's zero time, year 1, stands for an unknown time. */
function timeIn(value: JsonObject, name: string): number | undefined {
  const ms = Date.parse(textIn(value, name));
  return Number.isNaN(ms) || ms <= 0 ? undefined : ms;
}

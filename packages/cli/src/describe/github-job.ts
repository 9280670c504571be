/** Explains why a job of GitHub Actions waits, from the records of bridges, requests and nodes. */

import type { NodeState, RequestState } from '@nodepool/core';
import type { KnownJob, RunnerData, ScaleSetRecord } from '@nodepool/store/github';

/** A workflow run, perhaps with one of its jobs, as the page of GitHub names it. */
export interface RunPage {
  /** e.g. `acme/app`. */
  readonly repository: string;
  readonly run: number;
}

/** A request of a bridge. */
export interface RunnerRequest {
  readonly id: string;
  readonly state: RequestState;
  readonly data: RunnerData;
}

/** A node of a bridge. */
export interface RunnerNode {
  readonly id: string;
  readonly state: NodeState;
  readonly data: RunnerData;
}

export interface JobExplanation {
  readonly job: string;
  readonly state: string;
  readonly scaleSet: string;
  /** One sentence each. */
  readonly says: readonly string[];
  /** The request that the job waits for; null if there is none. */
  readonly request: string | null;
  readonly node: string | null;
}

const PAGE = /^https?:\/\/[^/]+\/([^/]+\/[^/]+)\/actions\/runs\/(\d+)(?:[/?#].*)?$/;

/** Returns undefined for an address that is not the page of a run or a job. */
export function runPageOf(url: string): RunPage | undefined {
  const [, repository, run] = PAGE.exec(url) ?? [];
  return repository === undefined ? undefined : { repository, run: Number(run) };
}

/** Returns an explanation of each job of the run that a bridge knows. `now` is in milliseconds since the epoch. */
export function explainJobs(
  page: RunPage,
  records: readonly ScaleSetRecord[],
  requests: readonly RunnerRequest[],
  nodes: readonly RunnerNode[],
  now: number,
): readonly JobExplanation[] {
  return records.flatMap((record) =>
    record.jobs
      .filter(({ repository, run }) => run === page.run && repository.toLowerCase() === page.repository.toLowerCase())
      .map((job) => explained(job, record, requests, nodes, now)),
  );
}

/** Returns the reasons why no bridge knows a run: one sentence for each scale set. */
export function explainUnknown(records: readonly ScaleSetRecord[]): readonly string[] {
  if (records.length === 0) return ['No bridge has served a scale set yet: nodepool-github does not run.'];
  return records.map((record) => {
    const { jobsAvailable, jobsAssigned } = record;
    return `Scale set ${nameOf(record)} has not got the job. ${connectionOf(record)} It has ${jobsAssigned} jobs, ${jobsAvailable} are offered to it, and it may get ${capacityOf(record)}.`;
  });
}

function explained(
  job: KnownJob,
  record: ScaleSetRecord,
  requests: readonly RunnerRequest[],
  nodes: readonly RunnerNode[],
  now: number,
): JobExplanation {
  const { name, id, state, since, runner } = job;
  const request = requests.find(({ data }) => data.runner === runner || data.job?.id === id);
  const node = nodes.find(({ data }) => data.runner === runner || data.job?.id === id);
  const seconds = Math.max(0, Math.round(now / 1000 - since));
  const says = [`It is ${state} for ${seconds} s.`];
  if (job.queued !== null && state !== 'completed') {
    says.push(`GitHub has had it in its queue since ${new Date(job.queued * 1000).toISOString()}.`);
  }
  if (state === 'completed') says.push(`Its result is ${job.result ?? 'unknown'}.`);
  else says.push(...progress(job, record, request, node));
  return {
    ...{ job: name, state, scaleSet: nameOf(record), says },
    request: request?.id ?? null,
    node: node?.id ?? null,
  };
}

function progress(
  { state, runner }: KnownJob,
  record: ScaleSetRecord,
  request: RunnerRequest | undefined,
  node: RunnerNode | undefined,
): readonly string[] {
  const connection = record.problem === null ? [] : [connectionOf(record)];
  if (state === 'running')
    return [...connection, `Runner ${runner ?? 'unknown'} runs it on node ${node?.id ?? 'unknown'}.`];
  if (state === 'offered') {
    return [...connection, `GitHub offers it to the scale set, which may get ${capacityOf(record)}.`];
  }
  if (node !== undefined) {
    const step = node.data.started ? 'its runner starts and connects to GitHub' : 'its runner is registered';
    return [...connection, `Node ${node.id} is ready, and ${step}.`];
  }
  if (request !== undefined) return [...connection, `It waits for request ${request.id}, which is ${request.state}.`];
  return [
    ...connection,
    'No request is waiting for it: runners that exist or come are enough, or max-runners is reached.',
  ];
}

function connectionOf({ problem, bridge }: ScaleSetRecord): string {
  return problem === null ? `Bridge ${bridge} is connected to GitHub.` : `Bridge ${bridge} has a problem: ${problem}.`;
}

function capacityOf({ capacity, capacityReason }: ScaleSetRecord): string {
  return `${capacity} jobs at once (${capacityReason})`;
}

function nameOf({ installation, scaleSet }: ScaleSetRecord): string {
  return `${installation}/${scaleSet}`;
}

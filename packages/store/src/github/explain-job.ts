/** Explains why a job of GitHub Actions waits, from the records of bridges, requests and nodes. */

import type { JsonValue, Node, NodeRequest, NodeState, RequestState } from '@nodepool/core';
import { runnerDataIn, type KnownJob, type RunnerData, type ScaleSetRecord } from './records.js';

/** A workflow run, perhaps with one of its jobs, as the page of GitHub names it. */
export interface RunPage {
  /** e.g. `acme/app`. */
  readonly repository: string;
  readonly run: number;
}

/** A request or a node of a bridge. */
export interface RunnerPlace<S> {
  readonly id: string;
  readonly state: S;
  readonly data: RunnerData;
}

/** Finds the request and the node of jobs, by the name of their runner or by their own id. */
export class RunnerPlaces {
  private readonly requests: ReadonlyMap<string, RunnerPlace<RequestState>>;
  private readonly nodes: ReadonlyMap<string, RunnerPlace<NodeState>>;

  constructor(requests: Iterable<RunnerPlace<RequestState>>, nodes: Iterable<RunnerPlace<NodeState>>) {
    this.requests = byRunnerAndJob(requests);
    this.nodes = byRunnerAndJob(nodes);
  }

  requestOf(job: KnownJob): RunnerPlace<RequestState> | undefined {
    return this.requests.get(`runner ${job.runner ?? ''}`) ?? this.requests.get(`job ${job.id}`);
  }

  nodeOf(job: KnownJob): RunnerPlace<NodeState> | undefined {
    return this.nodes.get(`runner ${job.runner ?? ''}`) ?? this.nodes.get(`job ${job.id}`);
  }
}

/** The records of a store. */
interface Records {
  readonly requests: { all(): Iterable<{ readonly id: string; readonly request: NodeRequest }> };
  readonly nodes: { all(): Iterable<{ readonly id: string; readonly node: Node }> };
}

/** Returns the requests and the nodes of bridges. */
export function runnerPlacesIn({ requests, nodes }: Records): RunnerPlaces {
  return new RunnerPlaces(
    [...requests.all()].flatMap(({ id, request }) => placeOf(id, request.state, request.requestor_data)),
    [...nodes.all()].flatMap(({ id, node }) => placeOf(id, node.state, node.user_data)),
  );
}

function placeOf<S>(id: string, state: S, value: JsonValue): readonly RunnerPlace<S>[] {
  const data = runnerDataIn(value);
  return data === undefined ? [] : [{ id, state, data }];
}

function byRunnerAndJob<S>(places: Iterable<RunnerPlace<S>>): ReadonlyMap<string, RunnerPlace<S>> {
  const found = new Map<string, RunnerPlace<S>>();
  for (const place of places) {
    found.set(`runner ${place.data.runner}`, place);
    if (place.data.job !== null) found.set(`job ${place.data.job.id}`, place);
  }
  return found;
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
  places: RunnerPlaces,
  now: number,
): readonly JobExplanation[] {
  return records.flatMap((record) =>
    record.jobs
      .filter(({ repository, run }) => run === page.run && repository.toLowerCase() === page.repository.toLowerCase())
      .map((job) => explained(job, record, places, now)),
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

function explained(job: KnownJob, record: ScaleSetRecord, places: RunnerPlaces, now: number): JobExplanation {
  const { name, state, since } = job;
  const seconds = Math.max(0, Math.round(now / 1000 - since));
  const says = [`It is ${state} for ${seconds} s.`];
  if (job.queued !== null && state !== 'completed') {
    says.push(`GitHub has had it in its queue since ${new Date(job.queued * 1000).toISOString()}.`);
  }
  const request = places.requestOf(job);
  const node = places.nodeOf(job);
  says.push(...explainProgress(job, record, places));
  return {
    ...{ job: name, state, scaleSet: nameOf(record), says },
    request: request?.id ?? null,
    node: node?.id ?? null,
  };
}

/** Returns the step of a job, and what it waits for: one sentence each, which do not change with time. */
export function explainProgress(job: KnownJob, record: ScaleSetRecord, places: RunnerPlaces): readonly string[] {
  const { state, runner, result } = job;
  if (state === 'completed') return [`Its result is ${result ?? 'unknown'}.`];
  const request = places.requestOf(job);
  const node = places.nodeOf(job);
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

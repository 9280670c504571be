/** The document of GitHub Actions: scale sets, jobs, and times by repository. */

import {
  explainProgress,
  runnerPlacesIn,
  type KnownJob,
  type RunnerPlaces,
  type ScaleSetRecord,
} from '@nodepool/store/github';
import type { GithubDocument, JobRow, RepositoryTimes, ScaleSetStatus, TimesOfPhase } from '../client/model.js';
import { namesOf, originOf, runUrl, scaleSetsOf } from './job-link.js';
import { requestRows } from './requests.js';
import { shortened, type Observed, type ScaleSetEntry } from './sources.js';
import { SHORT, textOrNull } from './texts.js';

/** Jobs that the document lists, of each kind. */
const MAX_JOBS = 100;
const MAX_REPOSITORIES = 200;

export function githubDocument(observed: Observed): GithubDocument {
  const { complete, sets } = scaleSetsOf(observed);
  const jobs = sets.flatMap(({ record }) => record.jobs.map((job) => ({ job, record })));
  const of = (...states: KnownJob['state'][]): Tracked[] => jobs.filter(({ job }) => states.includes(job.state));
  const waiting = of('offered', 'assigned').sort((a, b) => startOf(a.job) - startOf(b.job));
  const running = of('running').sort((a, b) => a.job.since - b.job.since);
  const ended = of('completed').sort((a, b) => b.job.since - a.job.since);
  const shown = [waiting, running, ended].flatMap((kind) => kind.slice(0, MAX_JOBS));
  return {
    complete,
    scaleSets: sets.map(scaleSetStatus),
    repositories: sets.flatMap(({ record }) => timesOf(record)).slice(0, MAX_REPOSITORIES),
    jobs: jobRows(observed, shown),
    counts: { waiting: waiting.length, running: running.length },
  };
}

interface Tracked {
  readonly job: KnownJob;
  readonly record: ScaleSetRecord;
}

function startOf({ queued, since }: KnownJob): number {
  return queued ?? since;
}

function jobRows(observed: Observed, tracked: readonly Tracked[]): JobRow[] {
  const places: RunnerPlaces = runnerPlacesIn(observed.store);
  const requests = new Set(
    tracked.flatMap(({ job }) => (job.state === 'completed' ? [] : (places.requestOf(job)?.id ?? []))),
  );
  const reasons = new Map(
    requestRows(observed, ({ id }) => requests.has(id), requests.size).map(({ id, reason }) => [id, reason]),
  );
  return tracked.map(({ job, record }) => {
    const request = job.state === 'completed' ? undefined : places.requestOf(job)?.id;
    return {
      ...{ id: job.id, ...namesOf(job), url: runUrl(record.url, job), scaleSet: nameOf(record), state: job.state },
      ...{ since: job.since, queued: job.queued, result: textOrNull(job.result, SHORT) },
      says: shortened(explainProgress(job, record, places).join(' ')),
      request: request === undefined ? null : { id: request, reason: reasons.get(request) ?? '' },
      node: job.state === 'completed' ? null : (places.nodeOf(job)?.id ?? null),
    };
  });
}

function scaleSetStatus({ record, bridges }: ScaleSetEntry): ScaleSetStatus {
  const { jobsAvailable: available, jobsAssigned: assigned, jobsRunning: running, runners } = record;
  return {
    name: nameOf(record),
    url: originOf(record.url) === undefined ? null : record.url,
    nodeLabel: shortened(record.nodeLabel, SHORT),
    bridge: shortened(record.bridge, SHORT),
    bridges,
    problem: bridges === 0 ? 'no bridge serves it: nodepool-github does not run' : textOrNull(record.problem),
    capacity: record.capacity,
    capacityReason: shortened(record.capacityReason),
    jobs: { available, assigned, running },
    runners: Object.entries(runners).map(([state, count]) => ({ state: shortened(state, SHORT), count })),
    changed: record.written,
  };
}

function timesOf(record: ScaleSetRecord): RepositoryTimes[] {
  const repositories = new Map<string, Record<string, TimesOfPhase>>();
  for (const { repository, phase, count, p50, p95 } of record.phases) {
    const phases = repositories.get(repository) ?? {};
    phases[phase] = { count, p50, p95 };
    repositories.set(repository, phases);
  }
  const scaleSet = nameOf(record);
  return [...repositories].map(([repository, phases]) => ({
    ...{ repository: shortened(repository, SHORT), scaleSet, phases },
  }));
}

function nameOf({ installation, scaleSet }: ScaleSetRecord): string {
  return shortened(`${installation}/${scaleSet}`, SHORT);
}

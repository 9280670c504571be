/** Links from requests and nodes to the job of GitHub Actions that they are for. */

import type { JsonValue } from '@nodepool/core';
import { runnerDataIn, type GithubJob } from '@nodepool/store/github';
import type { JobLink } from '../client/model.js';
import { oncePerMoment, shortened, type Observed } from './sources.js';
import { SHORT } from './texts.js';

export const scaleSetsOf = oncePerMoment(({ scaleSets }) => scaleSets());

/** Returns the job that `requestor_data` or `user_data` names; null for those of other requestors. */
export function jobLink(observed: Observed, value: JsonValue): JobLink | null {
  const data = runnerDataIn(value);
  if (data?.job == null) return null;
  const { job, installation, scaleSet } = data;
  const entry = scaleSetsOf(observed).sets.find(
    ({ record }) => record.installation === installation && record.scaleSet === scaleSet,
  );
  return { ...namesOf(job), url: runUrl(entry?.record.url ?? '', job) };
}

export function namesOf({ name, repository }: GithubJob): Pick<JobLink, 'name' | 'repository'> {
  return { name: shortened(name, SHORT), repository: shortened(repository, SHORT) };
}

/** Returns the page of a run; null if the record has no usable address. */
export function runUrl(page: string, { repository, run }: GithubJob): string | null {
  const origin = originOf(page);
  const parts = repository.split('/');
  if (origin === undefined || parts.length !== 2 || run === 0) return null;
  return `${origin}/${parts.map(encodeURIComponent).join('/')}/actions/runs/${run}`;
}

/** Returns undefined for anything but the address of a web page, since records can come from any program. */
export function originOf(page: string): string | undefined {
  const url = URL.parse(page);
  return url?.protocol === 'https:' || url?.protocol === 'http:' ? url.origin : undefined;
}

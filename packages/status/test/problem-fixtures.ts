/** A healthy Nodepool and parts of its status, for tests of the problems of the status page. */

import type { ImageStatus, LabelStatus, ProviderStatus, ReasonGroup } from '../src/client/model.js';
import { findProblems } from '../src/documents/problems/index.js';
import type { ProblemSources } from '../src/documents/problems/sources.js';

/** The time of the tests, in unix seconds. */
export const NOW = 1_800_000_000;

export const HEALTHY: ProblemSources = {
  zookeeper: { state: 'connected', since: NOW - 500, lastProblem: undefined },
  complete: true,
  configuration: { problems: [], count: 0, since: null },
  unreadable: { records: [], count: 0 },
  providers: [],
  lastServed: new Map(),
  suspensions: [],
  stranded: [],
  damagedBacking: [],
  launchers: [],
  troubles: [],
  stuck: [],
  labels: [],
  reasons: [],
  accepted: new Map(),
  failed: new Map(),
  images: [],
  launches: new Map(),
  builders: [{ images: ['debian'] }],
  now: NOW,
};

export function provider(name: string, more: Partial<ProviderStatus>): ProviderStatus {
  return {
    ...{
      name,
      driver: 'example',
      driverVersion: '1.0.0',
      state: 'serving',
      reason: null,
      cause: null,
      since: NOW - 60,
    },
    ...{ launches: null, lastError: null, failures: [], usage: [], api: null, pools: [], missingInstances: null },
    groups: { building: 0, ready: 0, 'in use': 0, held: 0, leaving: 0, failed: 0 },
    toNode: { count: 0, p50: null, p95: null },
    ...more,
  };
}

export function group(more: Partial<ReasonGroup>): ReasonGroup {
  return { phase: 'limit', pool: 'cloud/main', text: 'full.', count: 1, oldest: NOW - 700, labels: ['small'], ...more };
}

export function image(more: Partial<ImageStatus>): ImageStatus {
  return {
    ...{ name: 'debian', paused: false, requested: null, builds: [], uploads: [], lastFailure: null },
    labels: ['small'],
    ...more,
  };
}

export const label = (more: Partial<LabelStatus>): LabelStatus => ({
  ...{ name: 'small', ready: 0, building: 0, inUse: 0, total: 0, waiting: 0, oldest: null },
  ...{ readyTarget: 0, readyReason: null },
  ...{ maxAge: null, minRetention: null },
  ...{ toNode: { count: 0, p50: null, p95: null }, pools: [], reason: null },
  ...more,
});

export const upload = {
  ...{ provider: 'cloud', build: 'b', id: '1', progress: null, externalName: null, failure: null },
  review: null,
};
export const build = { id: 'b', builder: 'nb01', formats: [], failure: null, duration: null };
export const failure = { text: 'exit code 1', time: NOW - 100, log: '/var/log/b.log', builder: 'nb01' };

/** Returns the severities and titles of the problems of a Nodepool that is healthy except for `sources`. */
export const titles = (sources: Partial<ProblemSources>): string[] =>
  findProblems({ ...HEALTHY, ...sources }).map(({ severity, title }) => `${severity}: ${title}`);

/** Metrics of the bridge. */

import { counter, duration, gauge } from '@nodepool/core';

const OF_SET = ['installation', 'scale_set'] as const;

export const SETTINGS_PROBLEMS = gauge<never>('nodepool_github_settings_problems', [], 'Problems in refused settings.');

export const SERVES = gauge('nodepool_github_serves', OF_SET, '1 if this bridge serves the scale set.');

export const SESSION = gauge('nodepool_github_session', OF_SET, '1 if the scale set has a session and GitHub answers.');

export const LAST_ANSWER = gauge(
  'nodepool_github_last_answer_time_seconds',
  OF_SET,
  'Last successful call for messages (unix seconds).',
);

export const JOBS = gauge(
  'nodepool_github_jobs',
  [...OF_SET, 'state'],
  'Jobs: `available` (no scale set has them), `assigned` (including running), `running`.',
);

export const RUNNERS = gauge(
  'nodepool_github_runners',
  [...OF_SET, 'state'],
  'Runners: `requested`, `starting`, `online`, `busy`, `ending`.',
);

export const CAPACITY = gauge(
  'nodepool_github_capacity',
  OF_SET,
  'Jobs that the bridge can serve, as reported to GitHub.',
);

export const OLDEST_WAIT = gauge(
  'nodepool_github_oldest_wait_seconds',
  OF_SET,
  'Wait of the oldest assigned job without a running runner.',
);

/** Upper bounds in seconds: the start of a runner takes part of a second, a launch minutes, a job hours. */
const BUCKETS = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 14_400] as const;

export const JOB_PHASE = duration(
  'nodepool_github_job_phase_seconds',
  [...OF_SET, 'repository', 'phase'],
  '`queued` (until GitHub assigns the job), `online` (from the queue until its runner is online), `waiting` (from the assignment until a runner starts it), `running`. Repositories after the first 100 are `other`.',
  BUCKETS,
);

export const RUNNER_PHASE = duration(
  'nodepool_github_runner_phase_seconds',
  [...OF_SET, 'repository', 'phase'],
  '`node` (until the node is locked), `register`, `start` (until the runner is online), `idle`; by the repository of the causing job.',
  BUCKETS,
);

export const RUNNERS_ENDED = counter(
  'nodepool_github_runners_ended_total',
  [...OF_SET, 'reason'],
  'Ended runners; reason: `job-done`, or the trouble.',
);

export const AGENTS_DELETED = counter(
  'nodepool_github_agents_deleted_total',
  OF_SET,
  'Registrations of runners without a process that the bridge has deleted.',
);

export const CALLS = duration(
  'nodepool_github_call_seconds',
  ['installation', 'operation', 'status'],
  'Calls to GitHub; status `none`: without an answer.',
  [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60],
);

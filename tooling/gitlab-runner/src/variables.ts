/** Variables of a job, and the driver's environment made of them. */

import type { Job, Variable } from './job.js';

export interface Directories {
  readonly builds: string;
  readonly cache: string;
  readonly project: string;
}

export function temporaryDirOf({ project }: Directories): string {
  return `${project}.tmp`;
}

export interface RunnerIdentity {
  readonly id: number;
  /** First characters of the runner's token, as the runner shows it. */
  readonly shortToken: string;
  /** Number of this job among those that the runner executes now (`CI_CONCURRENT_ID`). */
  readonly concurrentId: number;
  readonly serverUrl: string;
}

/** Returns the project's directory below the directory for builds. */
export function projectDirOf(builds: string, job: Job, runner: RunnerIdentity, shared: boolean): string {
  const path = job.projectPath ?? 'group/project';
  return shared ? `${builds}/${runner.shortToken}/${runner.concurrentId}/${path}` : `${builds}/${path}`;
}

/** Returns all variables in the runner's order: a later variable replaces an earlier one of the same key. */
export function variablesOf(
  job: Job,
  runner: RunnerIdentity,
  directories: Directories,
  options: { readonly shared: boolean; readonly status: string; readonly timeoutMs: number },
): Variable[] {
  const { shared, status, timeoutMs } = options;
  const values: Readonly<Record<string, string>> = {
    FF_NETWORK_PER_BUILD: 'false',
    FF_SCRIPT_SECTIONS: 'false',
    ...(job.image === undefined ? {} : { CI_JOB_IMAGE: job.image }),
    CI_RUNNER_SHORT_TOKEN: runner.shortToken,
    CI_BUILDS_DIR: directories.builds,
    CI_PROJECT_DIR: directories.project,
    CI_CONCURRENT_ID: String(runner.concurrentId),
    CI_CONCURRENT_PROJECT_ID: '0',
    CI_SERVER: 'yes',
    CI_JOB_STATUS: status,
    CI_JOB_TIMEOUT: String(Math.floor(timeoutMs / 1000)),
    CI_PIPELINE_ID: '901',
    CI_PIPELINE_URL: `${runner.serverUrl}/${job.projectPath ?? 'group/project'}/-/pipelines/901`,
    CI_JOB_ID: String(job.id),
    CI_JOB_URL: `${runner.serverUrl}/${job.projectPath ?? 'group/project'}/-/jobs/${job.id}`,
    CI_JOB_TOKEN: jobToken(job),
    CI_JOB_STARTED_AT: '2026-01-01T00:00:00Z',
    CI_BUILD_ID: String(job.id),
    CI_REGISTRY_PASSWORD: jobToken(job),
    CI_REGISTRY_USER: 'gitlab-ci-token',
    CI: 'true',
    GITLAB_CI: 'true',
    CI_SERVER_URL: runner.serverUrl,
    CI_SERVER_HOST: new URL(runner.serverUrl).hostname,
    CI_RUNNER_ID: String(runner.id),
    CI_RUNNER_DESCRIPTION: 'custom',
    CI_RUNNER_TAGS: '["custom"]',
    CI_PROJECT_ID: String(job.projectId ?? 7),
    CI_PROJECT_PATH: job.projectPath ?? 'group/project',
    CI_PROJECT_PATH_SLUG: (job.projectPath ?? 'group/project').replaceAll(/[^a-z0-9]/g, '-'),
    CI_PROJECT_NAMESPACE: 'group',
    CI_JOB_NAME: job.name ?? 'test',
    CI_JOB_STAGE: 'test',
    CI_COMMIT_SHA: '0123456789abcdef0123456789abcdef01234567',
    GIT_STRATEGY: 'none',
  };
  const after: Readonly<Record<string, string>> = {
    ...(shared ? { CI_SHARED_ENVIRONMENT: 'true' } : { CI_DISPOSABLE_ENVIRONMENT: 'true' }),
    CI_RUNNER_VERSION: '18.0.0',
    CI_RUNNER_EXECUTABLE_ARCH: 'linux/amd64',
    RUNNER_TEMP_PROJECT_DIR: temporaryDirOf(directories),
  };
  const listed = (pairs: Readonly<Record<string, string>>): Variable[] =>
    Object.entries(pairs).map(([key, value]) => ({ key, value }));
  return [...listed(values), ...(job.variables ?? []), ...listed(after)];
}

export function jobToken(job: Job): string {
  return `glcbt-secret-of-${job.id}`;
}

/** Returns the value of the last variable with this key. */
export function valueOf(variables: readonly Variable[], key: string): string | undefined {
  return variables.findLast((variable) => variable.key === key)?.value;
}

/** Returns the content of `JOB_RESPONSE_FILE`: the coordinator's answer, which a job cannot influence otherwise. */
export function jobResponse(job: Job, timeoutMs: number): object {
  return {
    id: job.id,
    token: jobToken(job),
    allow_git_fetch: true,
    job_info: {
      name: job.name ?? 'test',
      stage: 'test',
      project_id: job.projectId ?? 7,
      project_name: (job.projectPath ?? 'group/project').split('/').at(-1),
    },
    git_info: { sha: '0123456789abcdef0123456789abcdef01234567', ref: 'main', ref_type: 'branch' },
    runner_info: { timeout: Math.floor(timeoutMs / 1000) },
    variables: (job.variables ?? []).map(({ key, value, file = false }) => ({ key, value, file, public: false })),
    steps: [
      { name: 'script', script: job.script, timeout: Math.floor(timeoutMs / 1000), when: 'on_success' },
      ...(job.afterScript === undefined
        ? []
        : [{ name: 'after_script', script: job.afterScript, timeout: 300, when: 'always', allow_failure: true }]),
    ],
    image: { name: job.image ?? '', entrypoint: null },
    services: null,
    artifacts: null,
    cache: null,
    credentials: null,
    dependencies: null,
    features: { trace_sections: true },
  };
}

/** The job and the exit codes that GitLab Runner passes to a custom executor. */

import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { isJsonObject, fileFaultOf, type JsonObject } from '@nodepool/core';
import { CommandError } from '../command-context.js';

export type Environment = Readonly<Record<string, string | undefined>>;

export interface GitLabJob {
  /** Name of the job's leases, which contains its complete identity. */
  readonly leaseName: string;
  /** Fields for people. The same at each attempt, because an idempotency key stands for them. */
  readonly facts: Readonly<Record<string, string>>;
}

/**
 * Returns the job. Its identity comes from JOB_RESPONSE_FILE, because jobs can set the variables with the prefix
 * `CUSTOM_ENV_`. The hash of the job's token tells apart equal ids of several GitLab servers, and cannot be guessed.
 * Throws `CommandError` if there is no job.
 */
export function readJob(env: Environment): GitLabJob {
  const file = env['JOB_RESPONSE_FILE'] ?? '';
  const [id, ...secrets] = file === '' ? variablesOf(env) : identityIn(readResponse(file));
  if (!/^\d+$/.test(id)) throw new CommandError('there is no job: GitLab Runner calls this program for each stage');
  const hash = createHash('sha256')
    .update(JSON.stringify([id, ...secrets]))
    .digest('hex');
  const facts = { job: 'CI_JOB_URL', project: 'CI_PROJECT_PATH', runner: 'CI_RUNNER_DESCRIPTION' };
  return {
    leaseName: `gitlab-job-${id}-${hash.slice(0, 24)}`,
    facts: Object.fromEntries(
      Object.entries(facts).flatMap(([name, variable]) => {
        const value = env[`CUSTOM_ENV_${variable}`];
        return value === undefined ? [] : [[name, value.slice(0, 1000)]];
      }),
    ),
  };
}

/** Returns the time limit of the job in seconds, after which GitLab Runner ends every stage; undefined without one. */
export function timeLimitOf(env: Environment): number | undefined {
  const file = env['JOB_RESPONSE_FILE'] ?? '';
  const info = file === '' ? undefined : readResponse(file)['runner_info'];
  const limit = isJsonObject(info) ? info['timeout'] : undefined;
  return typeof limit === 'number' && limit > 0 ? limit : undefined;
}

function identityIn({ id, token }: JsonObject): readonly [id: string, token: string] {
  return [typeof id === 'number' ? String(id) : '', typeof token === 'string' ? token : ''];
}

function readResponse(file: string): JsonObject {
  try {
    const response: unknown = JSON.parse(readFileSync(file, 'utf8'));
    return isJsonObject(response) ? response : {};
  } catch (error) {
    throw new CommandError(`the job response ${file} cannot be read: ${fileFaultOf(error)}`, { cause: error });
  }
}

/** Returns the identity from the variables, for runners without the file. */
function variablesOf(env: Environment): readonly [id: string, server: string, token: string] {
  const value = (name: string): string => env[`CUSTOM_ENV_${name}`] ?? '';
  return [value('CI_JOB_ID'), value('CI_SERVER_URL'), value('CI_JOB_TOKEN')];
}

/** The exit codes of a custom executor. */
export class ExitCodes {
  readonly systemFailure: number;
  private readonly buildFailure: number;
  private readonly file: string | undefined;

  constructor(env: Environment) {
    this.systemFailure = codeOf(env['SYSTEM_FAILURE_EXIT_CODE'], 2);
    this.buildFailure = codeOf(env['BUILD_FAILURE_EXIT_CODE'], 1);
    this.file = env['BUILD_EXIT_CODE_FILE'];
  }

  /** Returns the code of a failed job. `status` is for `allow_failure:exit_codes`, for which GitLab reads a file. */
  buildFailed(status: number): number {
    // The file may contain nothing but the number.
    if (this.file !== undefined && this.file !== '') writeFileSync(this.file, String(status));
    return this.buildFailure;
  }
}

function codeOf(text: string | undefined, byDefault: number): number {
  const code = Number(text);
  return text !== undefined && Number.isInteger(code) && code > 0 && code < 256 ? code : byDefault;
}

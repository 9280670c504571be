import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { GitLabRunner, type Job, type JobResult, type RunnerConfig } from '@nodepool/gitlab-runner';

const DRIVER = `#!/usr/bin/env bash
echo "$* $CUSTOM_ENV_CI_JOB_ID" >> "$FOLDER/calls"
case "$1" in
  config) printf '{"builds_dir": "%s/builds", "job_env": {"FROM_CONFIG": "yes"}%s}' "$FOLDER" "$MORE" ;;
  prepare) [ "$FROM_CONFIG" = yes ] || exit 9; eval "$ON_PREPARE" ;;
  run)
    bash "$2"; code=$?
    if [ $code -ne 0 ]; then echo $code > "$BUILD_EXIT_CODE_FILE"; exit "$BUILD_FAILURE_EXIT_CODE"; fi ;;
  cleanup) eval "$ON_CLEANUP" ;;
esac
`;

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'gitlab-runner-'));
  writeFileSync(join(folder, 'driver'), DRIVER);
  chmodSync(join(folder, 'driver'), 0o755);
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function runner(env: Readonly<Record<string, string>> = {}, more: Partial<RunnerConfig> = {}): GitLabRunner {
  const driver = join(folder, 'driver');
  return new GitLabRunner({
    custom: {
      configExec: [driver, 'config'],
      prepareExec: [driver, 'prepare'],
      runExec: [driver, 'run'],
      cleanupExec: [driver, 'cleanup'],
    },
    env: { PATH: process.env['PATH'] ?? '', FOLDER: folder, ...env },
    preparationRetryMs: 0,
    buildFailureExitCode: 41,
    systemFailureExitCode: 42,
    ...more,
  });
}

async function run(job: Partial<Job>, env?: Readonly<Record<string, string>>): Promise<JobResult> {
  return await runner(env).run({ id: 5, script: ['echo hello'], ...job });
}

const stages = (result: JobResult): string[] => result.calls.map(({ phase, stage }) => stage ?? phase);

describe('the stand-in for GitLab Runner', () => {
  it('calls the driver for each stage in order, and skips stages without commands', async () => {
    const result = await run({
      afterScript: ['echo "after $CI_JOB_STATUS"'],
      steps: [{ name: 'release', script: ['echo r'] }],
    });
    expect(result).toMatchObject({ status: 'success', violations: [] });
    expect(result.trace).toContain('after success');
    expect(stages(result)).toEqual([
      'config',
      'prepare',
      'prepare_script',
      'get_sources',
      'build_script',
      'step_release',
      'after_script',
      'cleanup_file_variables',
      'cleanup',
    ]);
  });

  it('reports the exit code of the script, and lets allow_failure:exit_codes decide', async () => {
    const result = await run({ script: ['(exit 7)', 'echo never'], allowFailureExitCodes: [7] });
    expect(result).toMatchObject({ failureReason: 'script_failure', exitCode: 7, allowedToFail: true, violations: [] });
    expect(result.trace).not.toContain('\nnever');
    expect((await run({ script: ['false'] })).allowedToFail).toBe(false);
  });

  it('passes variables with any text to scripts, and refuses those that no process can receive', async () => {
    const hostile = `a 'b' "c" $HOME \`id\` \\ \n\t\x01 é`;
    const variables = [
      { key: 'HOSTILE', value: hostile },
      { key: 'IN_FILE', value: hostile, file: true },
    ];
    const script = [`printf '%s' "$HOSTILE" > ${folder}/plain`, `cp "$IN_FILE" ${folder}/file`];
    expect(await run({ variables, script })).toMatchObject({ status: 'success', violations: [] });
    expect(readFileSync(join(folder, 'plain'), 'utf8')).toBe(hostile);
    expect(readFileSync(join(folder, 'file'), 'utf8')).toBe(hostile);
    for (const value of ['a\0b', 'x'.repeat(1 << 20)]) {
      const result = await run({ variables: [{ key: 'IMPOSSIBLE', value }] });
      expect(result).toMatchObject({ status: 'failed', failureReason: 'runner_system_failure' });
      expect(result.message).toContain('failed to start command');
    }
  });

  it('prepares three times after system failures, with a cleanup after each, and once after a build failure', async () => {
    const system = await run({}, { ON_PREPARE: 'exit $SYSTEM_FAILURE_EXIT_CODE' });
    expect(system.failureReason).toBe('runner_system_failure');
    expect(stages(system).join(' ')).toBe('config prepare cleanup config prepare cleanup config prepare cleanup');
    const build = await run({}, { ON_PREPARE: 'exit $BUILD_FAILURE_EXIT_CODE' });
    expect(build.failureReason).toBe('script_failure');
    expect(stages(build).join(' ')).toBe('config prepare cleanup');
  });

  it('reports what the documentation does not foresee', async () => {
    expect((await run({}, { MORE: ', "build_dir": "/x"' })).violations).toEqual([
      'config_exec printed the unknown key build_dir',
    ]);
    expect((await run({}, { ON_PREPARE: 'sleep 60 >/dev/null 2>&1 &' })).violations).toEqual([
      'prepare_exec left processes in its group',
    ]);
    expect((await run({}, { ON_CLEANUP: 'echo careful >&2' })).violations).toEqual([
      'cleanup_exec succeeded and wrote a warning: careful',
    ]);
    const unknown = await run({}, { ON_PREPARE: 'exit 3' });
    expect(unknown.failureReason).toBe('runner_system_failure');
    expect(unknown.violations[0]).toContain('neither of the documented exit codes');
  });

  it('continues with the later stages after a script was cancelled, and not after the time limit', async () => {
    const afterScript = ['echo "after $CI_JOB_STATUS"'];
    const slow = [`touch ${folder}/started`, 'sleep 60 & wait'];
    const cancelled = runner().start({ id: 1, script: slow, afterScript }, (_, stage) => {
      if (stage === 'build_script') cancelled.cancel();
    });
    const result = await cancelled.result;
    expect(result).toMatchObject({ status: 'canceled', failureReason: 'job_canceled' });
    expect(result.trace).toContain('after canceled');

    const limited = await runner().run({ id: 2, script: slow, afterScript, timeoutMs: 1000 });
    expect(limited).toMatchObject({ status: 'failed', failureReason: 'job_execution_timeout' });
    expect(stages(limited)).not.toContain('after_script');
    expect(stages(limited).at(-1)).toBe('cleanup');
  });

  it('kills a driver that ignores SIGTERM, and cleans up', async () => {
    const driver = join(folder, 'driver');
    const custom = { runExec: [driver, 'run'], cleanupExec: [driver, 'cleanup'], gracefulKillTimeoutMs: 50 } as const;
    const config = {
      custom: { ...custom, prepareExec: ['/bin/sh', '-c', "trap '' TERM; echo up; sleep 60"] as const },
    };
    const job = runner({}, config).start({ id: 3, script: [] }, (phase) => {
      if (phase === 'prepare') job.cancel();
    });
    const result = await job.result;
    expect(result.status).toBe('canceled');
    expect(result.calls.at(-1)).toMatchObject({ phase: 'cleanup', code: 0 });
    expect(existsSync(join(folder, 'calls'))).toBe(true);
  });
});

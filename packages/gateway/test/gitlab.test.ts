/** The program `nodepool-gitlab` with a gateway, called as GitLab Runner calls a custom executor. */

import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import { BROKEN_SSH, LOCAL_SSH, ProgramSite, type ProgramRun } from './support/program-site.js';
import { inState, TOKENS, until } from './support/world.js';

const [BUILD_FAILURE, SYSTEM_FAILURE] = [51, 52];

const site = new ProgramSite('gitlab');

/** Stands for one job of a runner. */
class Job {
  private scripts = 0;

  private constructor(
    readonly id: number,
    readonly env: Readonly<Record<string, string>>,
  ) {}

  static async create(id: number, token: string, env: Readonly<Record<string, string>> = {}): Promise<Job> {
    const response = join(site.folder, `response-${id}-${token}`);
    await writeFile(response, JSON.stringify({ id, token, job_info: { name: 'test' } }));
    return new Job(id, {
      ...{ NODEPOOL_GATEWAY: site.gateway.url, NODEPOOL_TOKEN_FILE: join(site.folder, 'token') },
      ...{ JOB_RESPONSE_FILE: response, BUILD_EXIT_CODE_FILE: join(site.folder, `status-${id}`) },
      ...{ BUILD_FAILURE_EXIT_CODE: String(BUILD_FAILURE), SYSTEM_FAILURE_EXIT_CODE: String(SYSTEM_FAILURE) },
      ...{ CUSTOM_ENV_CI_JOB_ID: String(id), CUSTOM_ENV_NODEPOOL_LABEL: 'debian' },
      ...env,
    });
  }

  start(...args: readonly string[]): ProgramRun {
    return site.run(args, { env: this.env });
  }

  async script(text: string): Promise<ProgramRun> {
    const file = join(site.folder, `script-${this.id}-${++this.scripts}`);
    await writeFile(file, text);
    return this.start('run', file, 'build_script');
  }

  get status(): string | undefined {
    return site.textOf(`status-${this.id}`);
  }
}

async function codeOf(stage: ProgramRun | Promise<ProgramRun>): Promise<number | null> {
  return (await stage).code;
}

it('runs the scripts of a job on one node, and returns it', async () => {
  const job = await Job.create(1, 'one', { CUSTOM_ENV_CI_JOB_STATUS: 'success' });
  const config = job.start('--builds-dir', '/builds', 'config');
  expect(await config.code).toBe(0);
  expect(JSON.parse(config.printed)).toMatchObject({ driver: { name: 'nodepool' }, builds_dir: '/builds' });
  expect(await codeOf(job.start('prepare'))).toBe(0);
  const [node] = site.world.paths('/nodepool/nodes');
  const first = await job.script('echo out; echo err >&2; cat; echo "$-"; set -o pipefail; printf "%s" "${0##*/}"');
  expect(await first.code).toBe(0);
  expect([first.printed, first.noted]).toEqual([expect.stringMatching(/^out\n\w+\n9$/), 'err\n']);
  const long = await job.script(`: ${'x'.repeat(300_000)}\necho end`);
  expect([await long.code, long.printed]).toEqual([0, 'end\n']);
  expect(site.world.paths('/nodepool/nodes')).toContain(node);
  expect(await codeOf(job.start('cleanup'))).toBe(0);
  await site.world.clean();
  // Jobs of tests that run at the same time have such files, too, until their scripts start.
  await until(async () => !(await readdir('/tmp')).some((name) => /^nodepool-gitlab-[0-9a-f]{32}$/.test(name)));
  const ended = await site.gateway.client().list({ state: 'ended' }).next();
  expect(ended.value).toMatchObject({ end: { reason: 'released', outcome: 'success' } });
  expect(await codeOf(job.start('cleanup'))).toBe(0);
});

it('reports the status of a failed script', async () => {
  const job = await Job.create(2, 'two');
  await job.start('prepare').code;
  for (const status of [1, 7, 97, 255]) {
    expect(await codeOf(job.script(`exit ${status}`))).toBe(BUILD_FAILURE);
    expect(job.status).toBe(String(status));
  }
  await job.start('cleanup').code;
  await site.world.clean();
});

it('reports every other failure as one of the system', async () => {
  const job = await Job.create(3, 'three');
  const unprepared = await job.script('true');
  expect(await unprepared.code).toBe(SYSTEM_FAILURE);
  expect(unprepared.noted).toContain('the job has no lease');
  await job.start('prepare').code;
  await site.executable('ssh', BROKEN_SSH);
  expect(await codeOf(job.script('true'))).toBe(SYSTEM_FAILURE);
  await site.executable('ssh', LOCAL_SSH.replace('exec setsid', 'head -c 3 | setsid'));
  const truncated = await job.script('exit 0\nexit 1\n');
  expect(await truncated.code).toBe(SYSTEM_FAILURE);
  expect(truncated.noted).toContain('status 97 before the command began');
  expect(await codeOf(job.start('unknown'))).toBe(SYSTEM_FAILURE);
  expect(await codeOf(job.start('run', '/nowhere', 'build_script'))).toBe(SYSTEM_FAILURE);
  expect(job.status).toBeUndefined();
  await job.start('cleanup').code;
  await site.world.clean();
});

it('a node that is lost while the script runs is a failure of the system', async () => {
  const job = await Job.create(4, 'four');
  await job.start('prepare').code;
  await writeFile(join(site.folder, 'running'), '');
  const running = await job.script(`echo begun; while [ -e ${site.folder}/running ]; do sleep 0.1; done`);
  await running.prints('begun');
  const [lease] = await site.leases('ready');
  await site.loseNode(lease);
  await until(() => Promise.resolve(/lease \w+ has ended \(lost\)|is lost/.test(running.noted)));
  // The processes of a lost node hold the output of this ssh.
  await rm(join(site.folder, 'running'));
  expect(await running.code).toBe(SYSTEM_FAILURE);
  await job.start('cleanup').code;
  await site.world.clean();
});

it('ends the script of a cancelled job, and its processes', async () => {
  const job = await Job.create(5, 'five');
  await job.start('prepare').code;
  const running = await job.script(
    `(trap 'echo ended >${site.folder}/child; exit' TERM; echo begun; sleep 60 & wait) & wait`,
  );
  await running.prints('begun');
  running.signal('SIGTERM');
  expect(await running.code).toBe(SYSTEM_FAILURE);
  await until(() => Promise.resolve(site.textOf('child') !== undefined));
  expect(job.status).toBeUndefined();
  expect(await codeOf(job.script('echo after'))).toBe(0);
  await job.start('cleanup').code;
  await site.world.clean();
});

it('a job that waits for its node can be cancelled, and tried again', async () => {
  site.world.launcher.mode = 'wait';
  const job = await Job.create(6, 'six');
  const waiting = job.start('prepare');
  await waiting.notes('queued');
  waiting.signal('SIGTERM');
  expect(await waiting.code).toBe(SYSTEM_FAILURE);
  await site.world.clean();
  site.world.launcher.resume('fail');
  const failed = job.start('prepare');
  expect(await failed.code).toBe(SYSTEM_FAILURE);
  expect(failed.noted).toContain('the image is missing');
  site.world.launcher.mode = 'serve';
  await site.executable('ssh', BROKEN_SSH);
  expect(await codeOf(job.start('prepare'))).toBe(SYSTEM_FAILURE);
  await site.executable('ssh', LOCAL_SSH);
  expect(await codeOf(job.start('prepare'))).toBe(0);
  expect(await codeOf(job.script('true'))).toBe(0);
  await job.start('cleanup').code;
  await site.world.clean();
});

it('cleanup after a kill returns the node of its own job only', async () => {
  const others = [await Job.create(7, 'another server'), await Job.create(77, 'seven')];
  for (const other of others) expect(await codeOf(other.start('prepare'))).toBe(0);
  const kept = site.world.paths('/nodepool/nodes');
  // The variables of a job are not its identity.
  const job = await Job.create(7, 'seven', { CUSTOM_ENV_CI_JOB_ID: '77' });
  for (const text of ['lease', 'node 0']) {
    const killed = job.start('prepare');
    await killed.notes(text);
    killed.signal('SIGKILL');
    await killed.code;
    expect(await codeOf(job.start('cleanup'))).toBe(0);
  }
  await until(() => Promise.resolve(site.world.paths('/nodepool/requests').length === 0));
  await until(() => Promise.resolve(site.world.paths('/nodepool/nodes').length === kept.length));
  expect(site.world.paths('/nodepool/nodes')).toEqual(kept);
  for (const other of others) {
    expect(await codeOf(other.script('true'))).toBe(0);
    await other.start('cleanup').code;
  }
  await site.world.clean();
});

it('a label that the token does not permit is a failure of the job', async () => {
  await site.useToken(TOKENS.small);
  const job = await Job.create(8, 'eight', { CUSTOM_ENV_NODEPOOL_LABEL: 'windows' });
  const refused = job.start('prepare');
  expect(await refused.code).toBe(BUILD_FAILURE);
  expect(refused.noted).toContain('The token does not permit this');
});

it.each([
  ['while a stage runs', 9, '& wait'],
  ['when a stage begins', 10, '&'],
])('returns the node of a job whose runner was killed %s', async (_, id, rest) => {
  const job = await Job.create(id, 'nine');
  await job.start('prepare').code;
  const [lease] = await site.leases('ready');
  const file = join(site.folder, 'endless');
  await writeFile(file, `echo $$ >${site.folder}/pid; while :; do sleep 0.1; done`);
  const runner = site.shell(`"${process.execPath}" "${site.program}" run "${file}" build_script ${rest}`, job);
  const runnerEnd = once(runner.child, 'exit');
  // The shell of the other case ends by itself; a kill might come before it has started the stage.
  if (rest === '& wait') {
    await until(() => Promise.resolve(site.textOf('pid') !== undefined));
    runner.child.kill('SIGKILL');
  }
  await runnerEnd;
  await inState(site.gateway.client(), lease?.id ?? '', 'ended');
  await site.world.clean();
  const pid = site.textOf('pid')?.trim() ?? 'none';
  await until(() => Promise.resolve(!existsSync(`/proc/${pid}`)));
});

/** The stand-in for a runner, as a process that uses the simulated GitHub. */

import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { access, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  startSimulatedGithub,
  writeRunner,
  type JobRequest,
  type RunnerBehaviour,
  type SimulatedGithub,
} from '../src/index.js';
import { call, drain, messageIn, poll, TestClient, type Queue } from './support/client.js';
import { Events, startRunner, type RunnerProcess } from './support/processes.js';

let github: SimulatedGithub;
let client: TestClient;
let queue: Queue;
let events: Events;
let folder: string;
let program: string;
let running: RunnerProcess[];

beforeEach(async () => {
  events = new Events();
  running = [];
  folder = await mkdtemp(join(tmpdir(), 'stand-in-'));
  program = await writeRunner(folder);
  // Calls for messages do not wait long, so that the client's own ones return.
  const settings = { longPollMs: 200, runnerTimeoutMs: 500, jobLockMs: 1500, cancelGraceMs: 1000 };
  github = await startSimulatedGithub({ settings, print: events.print });
  client = await TestClient.logIn(github);
  queue = await client.openSession(await client.createSet('linux'));
  await poll(queue, 10);
});

afterEach(async () => {
  for (const runner of running) runner.kill('SIGKILL');
  await Promise.all(running.map(({ ended }) => ended));
  await github.close();
  await rm(folder, { recursive: true, force: true });
});

const queueJob = (changes: Partial<JobRequest> = {}): number =>
  github.queueJob({ repository: 'acme/app', labels: ['linux'], ...changes });
const jobs = (): readonly string[] =>
  github.inspect.jobs().map(({ state, result = 'open', startedBy }) => `${state} ${result} ${startedBy.join(',')}`);

async function configurationOf(name: string, behaviour: RunnerBehaviour = 'normal'): Promise<string> {
  github.faults.add({ on: 'runnerscalesets.generateJitConfig', fault: { kind: 'runner', behaviour } });
  const body = { name, workFolder: '_work' };
  const answer = await client.call('POST', 'runtime/runnerscalesets/1/generatejitconfig', { body });
  return String(answer.body['encodedJITConfig']);
}

/** Starts a runner with a behaviour that the service chose. */
async function run(
  name: string,
  behaviour?: RunnerBehaviour,
  env: Record<string, string> = {},
): Promise<RunnerProcess> {
  const configuration = await configurationOf(name, behaviour);
  const times = { STAND_IN_RENEW_MS: '200', STAND_IN_RETRY_MS: '50' };
  const started = startRunner(program, { ACTIONS_RUNNER_INPUT_JITCONFIG: configuration, ...times, ...env });
  running.push(started);
  return started;
}

describe('runner', () => {
  it('takes a job, runs it, reports its end and ends', async () => {
    queueJob();
    const runner = await run('r1');
    const { code, output } = await runner.ended;
    expect(code).toBe(0);
    expect(output).toContain('√ Connected to GitHub');
    expect(output).toContain('Running job: build');
    expect(output).toContain('Job build completed with result: Succeeded');
    expect(jobs()).toEqual(['completed succeeded r1']);
    expect(github.inspect.runners()).toEqual([]);
    expect(await drain(queue, 10)).toEqual(['JobAssigned 1', 'JobStarted 1', 'JobCompleted 1']);
  });

  it('is idle until there is a job, which the statistics show', async () => {
    const runner = await run('r1');
    await events.have('Runner r1 is online');
    const number = queueJob({ durationMs: 60_000 });
    await events.have(`Job ${number} runs on r1`);
    expect(messageIn(await poll(queue, 10)).statistics).toEqual({
      ...{ totalAvailableJobs: 0, totalAcquiredJobs: 0, totalAssignedJobs: 1, totalRunningJobs: 1 },
      ...{ totalRegisteredRunners: 1, totalBusyRunners: 1, totalIdleRunners: 0 },
    });
    const busy = await client.call('DELETE', 'distributedtask/pools/0/agents/1');
    expect([busy.status, busy.body.typeName]).toEqual([400, expect.stringContaining('JobStillRunningException')]);
    github.cancelJob(number);
    expect((await runner.ended).output).toContain('completed with result: Canceled');
    expect(jobs()).toEqual(['completed canceled r1']);
  });

  it('takes its configuration as an argument, and stores it beside itself', async () => {
    queueJob();
    const runner = startRunner(program, {}, ['--jitconfig', await configurationOf('r1')]);
    running.push(runner);
    expect((await runner.ended).code).toBe(0);
    expect(await readdir(folder)).toEqual(
      expect.arrayContaining(['.credentials', '.credentials_rsaparams', '.runner']),
    );
    expect(jobs()).toEqual(['completed succeeded r1']);
  });

  it('refuses root and a missing configuration', async () => {
    const asRoot = startRunner(program, { RUNNER_ALLOW_RUNASROOT: '', ACTIONS_RUNNER_INPUT_JITCONFIG: 'x' });
    const unconfigured = startRunner(program, {});
    running.push(asRoot, unconfigured);
    const expected = process.getuid?.() === 0 ? 'Must not run interactively with sudo' : 'Runner listener exit';
    expect((await asRoot.ended).output).toContain(expected);
    expect((await unconfigured.ended).output).toContain('Runner is not configured.');
  });

  it('runs commands and hooks, hides its configuration from them, and fails with them', async () => {
    queueJob({ run: 'echo "secret: $ACTIONS_RUNNER_INPUT_JITCONFIG." && exit 3' });
    const hooks = { ACTIONS_RUNNER_HOOK_JOB_STARTED: 'touch started', ACTIONS_RUNNER_HOOK_JOB_COMPLETED: 'touch done' };
    const runner = await run('r1', 'normal', hooks);
    const { code, output } = await runner.ended;
    expect(code).toBe(0);
    expect(output).toContain('secret: .\n');
    expect(jobs()).toEqual(['completed failed r1']);
    await access(join(folder, '_work', 'started'));
    await access(join(folder, '_work', 'done'));
  });

  it('reports the conclusion of the job', async () => {
    queueJob({ conclusion: 'failed' });
    await (
      await run('r1')
    ).ended;
    expect(jobs()).toEqual(['completed failed r1']);
  });

  it('cannot use its configuration a second time', async () => {
    queueJob();
    const configuration = await configurationOf('r1');
    for (const expected of ['Succeeded', 'The runner registration has been deleted']) {
      const runner = startRunner(program, { ACTIONS_RUNNER_INPUT_JITCONFIG: configuration });
      running.push(runner);
      expect((await runner.ended).output).toContain(expected);
    }
    expect(jobs()).toEqual(['completed succeeded r1']);
  });

  it('ends when a user deletes its registration', async () => {
    const runner = await run('r1');
    await events.have('Runner r1 is online');
    expect(github.removeRunner('r1')).toBe(true);
    expect((await runner.ended).output).toContain('The runner registration has been deleted');
    expect(github.removeRunner('r1')).toBe(false);
  });

  it('fails its job when a user deletes its registration during the job', async () => {
    queueJob({ durationMs: 60_000 });
    const runner = await run('r1');
    await events.have('Job 1 runs on r1');
    github.removeRunner('r1');
    await runner.ended;
    expect(jobs()).toEqual(['completed failed r1']);
  });

  it('survives an absence of the service', async () => {
    github.faults.add({ on: 'runner', times: 4, fault: { kind: 'status', status: 503 } });
    queueJob();
    expect((await (await run('r1')).ended).code).toBe(0);
    expect(jobs()).toEqual(['completed succeeded r1']);
  });

  it('closes its session when it is asked to end', async () => {
    const runner = await run('r1');
    await events.have('Runner r1 is online');
    runner.kill('SIGTERM');
    expect((await runner.ended).code).toBe(0);
    expect(github.inspect.runners()).toMatchObject([{ name: 'r1', isOnline: false }]);
  });
});

describe('runner that fails', () => {
  /** Serves the remaining job with a healthy runner. */
  const expectServedBy = async (name: string): Promise<void> => {
    await (
      await run(name)
    ).ended;
    expect(jobs()).toEqual([`completed succeeded ${name}`]);
  };

  it('never connects: the job waits for another one', async () => {
    queueJob();
    await run('bad', 'never-connects');
    await expectServedBy('good');
    expect(github.inspect.runners()).toMatchObject([{ name: 'bad', isOnline: false }]);
  });

  it('dies at once', async () => {
    queueJob();
    expect((await (await run('bad', 'dies-at-once')).ended).signal).toBe('SIGKILL');
    await expectServedBy('good');
  });

  it('ends without a job', async () => {
    expect((await (await run('bad', 'ends-without-job')).ended).code).toBe(0);
    queueJob();
    await expectServedBy('good');
  });

  it('hangs while it is online: the service notices it after a time', async () => {
    await run('bad', 'hangs-online');
    await events.have('Runner bad is online');
    queueJob();
    await events.have('Runner bad is offline');
    await expectServedBy('good');
  });

  it('dies before it starts the job that it got: the job waits for another one', async () => {
    github.faults.add({ on: 'runner.startJob', fault: { kind: 'hang', when: 'before' } });
    const bad = await run('bad');
    await events.have('Runner bad is online');
    queueJob();
    // The runner has the job once it has made the call that is never answered.
    while (github.calls.count('runner.startJob') === 0) await poll(queue, 10);
    bad.kill('SIGKILL');
    await events.have('Runner bad is offline');
    await expectServedBy('good');
  });

  it('dies in the job, which fails after a time', async () => {
    queueJob({ behaviour: 'dies-in-job' });
    expect((await (await run('bad')).ended).signal).toBe('SIGKILL');
    expect(jobs()).toEqual(['running open bad']);
    await events.have('Job 1 ended: failed');
    expect(github.inspect.runners()).toEqual([]);
  });

  it('hangs in the job, which fails after a time', async () => {
    queueJob({ behaviour: 'hangs-in-job' });
    await run('bad');
    await events.have('Job 1 ended: failed');
    expect(jobs()).toEqual(['completed failed bad']);
  });

  it('renews a job that never ends, until it is cancelled', async () => {
    queueJob({ behaviour: 'never-ends-job' });
    const runner = await run('bad');
    await events.have('Job 1 runs on bad');
    while (github.calls.count('runner.renewJob') < 3) await poll(queue, 10);
    github.cancelJob(1);
    await runner.ended;
    expect(jobs()).toEqual(['completed canceled bad']);
  });

  it('does not end a cancelled job: the service ends it', async () => {
    github.faults.add({ on: 'runner.message', after: 1, times: Infinity, fault: { kind: 'hang', when: 'before' } });
    queueJob({ durationMs: 60_000 });
    await run('bad');
    await events.have('Job 1 runs on bad');
    github.cancelJob(1);
    await events.have('Job 1 ended: canceled');
  });
});

describe('service for runners', () => {
  it('refuses a second session of a runner', async () => {
    const ACTIONS_RUNNER_INPUT_JITCONFIG = await configurationOf('r1');
    const first = startRunner(program, { ACTIONS_RUNNER_INPUT_JITCONFIG });
    running.push(first);
    await events.have('Runner r1 is online');
    const second = startRunner(program, { ACTIONS_RUNNER_INPUT_JITCONFIG });
    running.push(second);
    expect((await second.ended).output).toContain('The runner r1 has an active session');
    first.kill('SIGTERM');
    expect((await first.ended).code).toBe(0);
  });

  it('refuses calls without a valid token', async () => {
    for (const [method, path] of [
      ['POST', 'broker/session'],
      ['GET', 'broker/message?sessionId=x'],
      ['DELETE', 'broker/session'],
      ['POST', 'run/acquirejob'],
      ['POST', 'run/renewjob'],
      ['POST', 'run/completejob'],
    ] as const) {
      const body = method === 'POST' ? { body: {} } : {};
      expect((await call(method, `${github.actionsUrl}/${path}`, { token: 'unknown', ...body })).status).toBe(401);
    }
    const headers = { 'Content-Type': 'application/x-www-form-urlencoded' };
    const form = 'grant_type=client_credentials&client_assertion=x';
    const token = await call('POST', `${github.actionsUrl}/oauth/token`, { headers, body: form });
    expect([token.status, token.body['error']]).toEqual([400, 'invalid_client']);
  });
});

/** Runners inside the process, on a virtual clock. */

import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { seededRandom, VirtualClock } from '@nodepool/core/testing';
import {
  startSimulatedGithub,
  type InProcessRunner,
  type JobRequest,
  type RunnerBehaviour,
  type SimulatedGithub,
} from '../src/index.js';
import { poll, TestClient, type Queue } from './support/client.js';

const MINUTE_MS = 60_000;

let clock: VirtualClock;
let github: SimulatedGithub;
let client: TestClient;
let queue: Queue;

beforeEach(async () => {
  clock = new VirtualClock();
  const settings = { sessionExpiryMs: 1e9, queueTokenMs: 1e9, adminTokenMs: 1e9 };
  github = await startSimulatedGithub({ clock, random: seededRandom(1), settings });
  client = await TestClient.logIn(github);
  queue = await client.openSession(await client.createSet('linux'));
  github.configure({ longPollMs: 0 });
  await poll(queue, 1000);
  github.configure({ longPollMs: 50_000 });
});

afterEach(() => github.close());

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

const run = async (name: string, behaviour?: RunnerBehaviour): Promise<InProcessRunner> =>
  github.startRunner(await configurationOf(name, behaviour));

describe('runner in the process', () => {
  it('waits for a job, and runs it for its time', async () => {
    const runner = await run('r1');
    await clock.advance(10 * MINUTE_MS);
    expect(github.inspect.runners()).toMatchObject([{ name: 'r1', isOnline: true }]);
    queueJob({ durationMs: 30 * MINUTE_MS });
    await clock.advance(30 * MINUTE_MS - 1);
    expect(jobs()).toEqual(['running open r1']);
    await clock.advance(1);
    expect(jobs()).toEqual(['completed succeeded r1']);
    expect(await runner.ended).toBe('exited');
    expect(github.inspect.runners()).toEqual([]);
  });

  it('ends a cancelled job', async () => {
    const number = queueJob({ behaviour: 'never-ends-job' });
    const runner = await run('r1');
    await clock.advance(60 * MINUTE_MS);
    github.cancelJob(number);
    await clock.advance(1);
    expect(jobs()).toEqual(['completed canceled r1']);
    expect(await runner.ended).toBe('exited');
  });

  it('that is killed in its job fails it after ten minutes', async () => {
    queueJob({ durationMs: 30 * MINUTE_MS });
    const runner = await run('r1');
    await clock.advance(MINUTE_MS - 1);
    runner.kill();
    expect(await runner.ended).toBe('killed');
    await clock.advance(9 * MINUTE_MS);
    expect(jobs()).toEqual(['running open r1']);
    await clock.advance(MINUTE_MS);
    expect(jobs()).toEqual(['completed failed r1']);
  });

  it('that is killed while it is idle is offline after a minute', async () => {
    const runner = await run('r1');
    await clock.advance(1);
    runner.kill();
    expect(await runner.ended).toBe('killed');
    await clock.advance(MINUTE_MS);
    expect(github.inspect.runners()).toMatchObject([{ name: 'r1', isOnline: false }]);
  });

  it.each<readonly [RunnerBehaviour, string | undefined]>([
    ['never-connects', undefined],
    ['dies-at-once', 'killed'],
    ['ends-without-job', 'exited'],
    ['hangs-online', undefined],
  ])('with the behaviour %s leaves the job to another one', async (behaviour, end) => {
    const bad = await run('bad', behaviour);
    await clock.advance(2 * MINUTE_MS);
    queueJob();
    const good = await run('good');
    await clock.advance(1);
    expect(await good.ended).toBe('exited');
    expect(jobs()).toEqual(['completed succeeded good']);
    bad.kill();
    expect(await bad.ended).toBe(end ?? 'killed');
  });

  it.each<RunnerBehaviour>(['dies-in-job', 'hangs-in-job'])('with the job %s fails it', async (behaviour) => {
    queueJob({ behaviour });
    const runner = await run('r1');
    await clock.advance(10 * MINUTE_MS);
    runner.kill();
    expect(jobs()).toEqual(['completed failed r1']);
    expect(await runner.ended).toBe('killed');
  });

  it('ends if its registration is deleted, or does not exist', async () => {
    const configuration = await configurationOf('r1');
    const runner = github.startRunner(configuration);
    await clock.advance(1);
    github.removeRunner('r1');
    expect(await runner.ended).toBe('not-registered');
    expect(await github.startRunner(configuration).ended).toBe('not-registered');
    expect(() => github.startRunner('text')).toThrow('the text is not a just-in-time configuration');
  });

  it('can serve hundreds of jobs at once', async () => {
    const runners: InProcessRunner[] = [];
    for (let index = 0; index < 300; index += 1) {
      queueJob({ durationMs: MINUTE_MS });
      runners.push(await run(`r${index}`));
    }
    await clock.advance(MINUTE_MS);
    expect(await Promise.all(runners.map(({ ended }) => ended))).toEqual(runners.map(() => 'exited'));
    expect(new Set(github.inspect.jobs().flatMap(({ startedBy }) => startedBy)).size).toBe(300);
    expect(github.inspect.jobs().every(({ result }) => result === 'succeeded')).toBe(true);
  });
});

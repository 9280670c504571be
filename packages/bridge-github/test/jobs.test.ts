/** The life of jobs: assigned by GitHub, run on a node of their own, and nothing left afterwards. */

import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { World } from './support/world.js';

const JOB = { repository: 'acme/app', labels: ['linux'] } as const;

let world: World;

beforeEach(async () => {
  world = await World.start();
});
afterEach(async () => {
  await world.stop();
});

/** Expects that each job has succeeded on a runner of its own. */
function expectServedOnce(): void {
  const jobs = world.github.inspect.jobs();
  expect(jobs.map(({ result, startedBy }) => [result, startedBy.length])).toEqual(jobs.map(() => ['succeeded', 1]));
  expect(new Set(jobs.flatMap(({ startedBy }) => startedBy)).size).toBe(jobs.length);
  expect([...world.launcher.deleted].sort()).toEqual([...world.launcher.launched].sort());
}

function troubles(): readonly string[] {
  return world.lines.filter((line) => line.startsWith('error') || line.startsWith('warn'));
}

it('each job runs once, on a node of its own, and nothing is left', async () => {
  world.startBridge();
  for (let count = 0; count < 5; count++) world.github.queueJob(JOB);
  await world.untilServed();
  expectServedOnce();
  expect(troubles()).toEqual([]);
  expect(world.sshCalls()).toContain('ACTIONS_RUNNER_INPUT_JITCONFIG');
  // The beginning of each just-in-time configuration, whose bytes fill the groups of the encoding.
  expect(world.sshCalls()).not.toContain(Buffer.from('{".runner":"').toString('base64'));
});

it('a service that offers jobs gets them acquired', async () => {
  world.github.configure({ assignment: 'acquire' });
  world.startBridge();
  for (let count = 0; count < 3; count++) world.github.queueJob(JOB);
  await world.untilServed();
  expectServedOnce();
});

it('a request has the job in its data, and the record of the scale set names the job and its capacity', async () => {
  world.launcher.mode = 'wait';
  world.startBridge();
  world.github.queueJob({ ...JOB, workflow: 'release.yml', displayName: 'publish' });
  await world.until('the request', () => world.records('requests').size === 1);
  await world.until('the record', () => world.record()?.jobs.length === 1);
  const [request] = world.records('requests').values();
  const job = { repository: 'acme/app', name: 'publish', run: 30_000_000_001 };
  expect(request).toMatchObject({
    ...{ requestor: 'nodepool-github', node_types: ['debian'] },
    requestor_data: { github: { installation: 'acme', scaleSet: 'linux', job, agent: null, started: false } },
  });
  expect(world.record()).toMatchObject({ jobsAssigned: 1, problem: null, jobs: [{ ...job, state: 'assigned' }] });
  world.launcher.mode = 'serve';
  await world.untilServed();
  expectServedOnce();
});

it('a job that is cancelled while its request waits leaves nothing', async () => {
  world.launcher.mode = 'wait';
  world.startBridge();
  const job = world.github.queueJob(JOB);
  await world.until('the request', () => world.records('requests').size === 1);
  world.github.cancelJob(job);
  await world.untilServed();
  expect(world.launcher.launched).toEqual([]);
});

it('a runner whose job is cancelled is removed after the idle timeout', async () => {
  world.github.faults.add({
    on: 'runnerscalesets.generateJitConfig',
    fault: { kind: 'runner', behaviour: 'hangs-online' },
  });
  world.startBridge(world.settings({ idleTimeoutMs: 200 }));
  const job = world.github.queueJob(JOB);
  await world.until('the runner is online', () => world.github.inspect.runners().some(({ isOnline }) => isOnline));
  world.github.cancelJob(job);
  await world.untilServed();
  expect(world.launcher.deleted).toEqual(world.launcher.launched);
});

it('runners wait for jobs with min-runners, and a job starts on one of them', async () => {
  world.startBridge(world.settings({ minRunners: 2 }));
  const online = (): number => world.github.inspect.runners().filter(({ isOnline }) => isOnline).length;
  await world.until('two runners are online', () => online() === 2);
  const waiting = world.github.inspect.runners().map(({ name }) => name);
  world.github.queueJob(JOB);
  await world.until('the job ends', () => world.github.inspect.jobs().every(({ state }) => state === 'completed'));
  expect(waiting).toEqual(expect.arrayContaining([...(world.github.inspect.jobs()[0]?.startedBy ?? [])]));
  await world.until('two runners are online again', () => online() === 2);
});

describe('the result of a job, with which launchers judge images,', () => {
  it.each([
    ['succeeded', 'success'],
    ['failed', 'failure'],
  ] as const)('is reported with the node: %s', async (conclusion, result) => {
    world.startBridge();
    world.github.queueJob({ ...JOB, conclusion, durationMs: 200 });
    await world.untilServed();
    expect(world.launcher.results).toEqual([result]);
  });

  it('is not reported for a job that was cancelled', async () => {
    world.startBridge();
    const job = world.github.queueJob({ ...JOB, durationMs: 60_000 });
    await world.until('the job runs', () => world.github.inspect.jobs()[0]?.state === 'running');
    expect(world.github.cancelJob(job)).toBe(true);
    await world.untilServed();
    expect(world.launcher.results).toEqual([null]);
  });

  it('is not reported for a runner that died, although GitHub says that its job has failed', async () => {
    world.github.configure({ jobLockMs: 1000 });
    world.startBridge();
    world.github.queueJob({ ...JOB, behaviour: 'dies-in-job' });
    await world.untilServed();
    expect(world.github.inspect.jobs().map(({ result }) => result)).toEqual(['failed']);
    expect(world.launcher.results).toEqual([null]);
  });
});

describe('runners that fail', () => {
  it.each([
    ['dies-at-once', 'ended-without-job'],
    ['ends-without-job', 'job-done'],
    ['never-connects', 'never-connected'],
  ] as const)('%s: another node gets the job', async (behaviour, reason) => {
    world.github.faults.add({ on: 'runnerscalesets.generateJitConfig', fault: { kind: 'runner', behaviour } });
    world.startBridge(world.settings({ startTimeoutMs: behaviour === 'never-connects' ? 3000 : 60_000 }));
    world.github.queueJob(JOB);
    await world.untilServed();
    const [job] = world.github.inspect.jobs();
    expect([job?.result, job?.startedBy.length]).toEqual(['succeeded', 1]);
    // On a busy machine, further runners can take longer than the start timeout.
    expect(world.launcher.launched.length).toBeGreaterThanOrEqual(2);
    expect(world.lines.some((line) => line.includes(`"reason":"${reason}"`))).toBe(true);
  });

  it('dies-in-job: the job fails, and its node is returned', async () => {
    world.github.configure({ jobLockMs: 1000 });
    world.startBridge();
    world.github.queueJob({ ...JOB, behaviour: 'dies-in-job' });
    await world.untilServed();
    expect(world.github.inspect.jobs().map(({ result }) => result)).toEqual(['failed']);
    expect(world.launcher.deleted).toEqual(world.launcher.launched);
  });

  it('a runner that a user removes on the page of GitHub is replaced', async () => {
    world.github.faults.add({ on: 'runnerscalesets.generateJitConfig', fault: { kind: 'latency', ms: 0 } });
    world.startBridge(world.settings({ minRunners: 1 }));
    await world.until('a runner', () => world.github.inspect.runners().some(({ isOnline }) => isOnline));
    const [runner] = world.github.inspect.runners();
    world.github.removeRunner(runner?.name ?? '');
    await world.until('another runner', () =>
      world.github.inspect.runners().some(({ name, isOnline }) => isOnline && name !== runner?.name),
    );
    await world.until('the node is deleted', () => world.launcher.deleted.length === 1);
  });
});

describe('messages', () => {
  it.each(['JobAssigned', 'JobStarted', 'JobCompleted'])('lost %s: the jobs are served nevertheless', async (on) => {
    world.github.messageFaults.add({ on, times: Infinity, fault: { kind: 'lost' } });
    world.startBridge();
    for (let count = 0; count < 2; count++) world.github.queueJob(JOB);
    await world.untilServed();
    expectServedOnce();
  });

  it('repeated and late messages change nothing', async () => {
    for (const on of ['JobAssigned', 'JobStarted', 'JobCompleted']) {
      world.github.messageFaults.add({ on, fault: { kind: 'repeated' } });
      world.github.messageFaults.add({ on, fault: { kind: 'late', ms: 300 } });
    }
    world.startBridge();
    for (let count = 0; count < 3; count++) world.github.queueJob(JOB);
    await world.untilServed();
    expectServedOnce();
  });
});

describe('requests', () => {
  it('a failed request is repeated after a while, and the reason is shown', async () => {
    world.launcher.mode = 'fail';
    world.startBridge();
    world.github.queueJob(JOB);
    await world.until('the reason', () => world.record()?.problem?.includes('the image is missing') === true);
    expect(world.record()?.capacity).toBe(0);
    world.launcher.mode = 'serve';
    await world.untilServed();
    expectServedOnce();
  });

  it('a node without host keys is returned, and the reason is shown', async () => {
    world.launcher.login = { connection_type: 'winrm' };
    world.startBridge();
    world.github.queueJob(JOB);
    await world.until('the reason', () => world.record()?.problem?.includes('commands need ssh') === true);
    world.launcher.login = {};
    await world.untilServed();
    expectServedOnce();
  });
});

/** Assignment of jobs to scale sets: capacity, competition, cancellation, and what messages say about it. */

import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { seededRandom, VirtualClock } from '@nodepool/core/testing';
import { startSimulatedGithub, type JobRequest, type SimulatedGithub } from '../src/index.js';
import { drain, messageIn, poll, TestClient, type Queue } from './support/client.js';

const SETS = 'runtime/runnerscalesets';
const MINUTE_MS = 60_000;

let clock: VirtualClock;
let github: SimulatedGithub;
let client: TestClient;

beforeEach(async () => {
  clock = new VirtualClock();
  const settings = { longPollMs: 0, sessionExpiryMs: 1e9, queueTokenMs: 1e9, adminTokenMs: 1e9 };
  github = await startSimulatedGithub({ clock, random: seededRandom(1), settings });
  client = await TestClient.logIn(github);
});

afterEach(() => github.close());

const queueJob = (changes: Partial<JobRequest> = {}): number =>
  github.queueJob({ repository: 'acme/app', labels: ['linux'], ...changes });
const states = (): readonly string[] =>
  github.inspect
    .jobs()
    .map(({ state, scaleSet = 'none', result }) => [state, scaleSet, result].filter(Boolean).join(' '));

/** Creates a scale set with a session that has a capacity. */
async function listen(
  name: string,
  capacity: number,
  options: { labels?: string[]; group?: number } = {},
): Promise<Queue> {
  const { labels = ['linux'], group = 1 } = options;
  const queue = await client.openSession(await client.createSet(name, labels, group));
  await poll(queue, capacity);
  return queue;
}

describe('direct assignment', () => {
  it('respects the capacity, and follows it', async () => {
    const queue = await listen('a', 2);
    for (let index = 0; index < 4; index += 1) queueJob();
    expect(states()).toEqual(['assigned a', 'assigned a', 'queued none', 'queued none']);
    await poll(queue, 3);
    expect(states()).toEqual(['assigned a', 'assigned a', 'assigned a', 'queued none']);
    await poll(queue, 0);
    github.cancelJob(1);
    expect(states()).toEqual(['completed a canceled', 'assigned a', 'assigned a', 'queued none']);
    await poll(queue, 3);
    expect(states()[3]).toBe('assigned a');
  });

  it('assigns nothing before the first call for messages, and nothing without a session', async () => {
    const set = await client.createSet('a', ['linux']);
    const queue = await client.openSession(set);
    queueJob();
    expect(states()).toEqual(['queued none']);
    github.loseSession('a');
    expect((await poll(queue, 1)).status).toBe(404);
    expect(states()).toEqual(['queued none']);
  });

  it('shares jobs among scale sets, each of which gets no more than its capacity', async () => {
    await listen('a', 10);
    await listen('b', 5);
    for (let index = 0; index < 20; index += 1) queueJob();
    const count = (name: string): number => states().filter((state) => state === `assigned ${name}`).length;
    expect([count('a'), count('b'), states().filter((state) => state === 'queued none').length]).toEqual([10, 5, 5]);
  });

  it('compares labels, the scope, and the repositories of the runner group', async () => {
    const group = github.addRunnerGroup('acme', 'web-only', ['acme/web']);
    await listen('web', 9, { labels: ['linux', 'web'], group });
    await listen('arm', 9, { labels: ['linux', 'arm64'] });
    queueJob({ labels: ['LINUX', 'arm64'] });
    queueJob({ labels: ['linux', 'web'] });
    queueJob({ labels: ['linux', 'web'], repository: 'acme/web' });
    queueJob({ labels: ['linux', 'gpu'] });
    queueJob({ labels: ['arm64'], repository: 'globex/app' });
    expect(states()).toEqual(['assigned arm', 'queued none', 'assigned web', 'queued none', 'queued none']);
    expect(() => queueJob({ repository: 'acme/unknown' })).toThrow('there is no repository acme/unknown');
  });

  it('serves all organizations of an enterprise, and one repository of a repository', async () => {
    client = await TestClient.logIn(github, 'enterprises/umbrella');
    await listen('wide', 9, { labels: ['wide'] });
    client = await TestClient.logIn(github, 'acme/app');
    await listen('narrow', 9, { labels: ['narrow'] });
    queueJob({ labels: ['wide'], repository: 'globex/app' });
    queueJob({ labels: ['narrow'] });
    queueJob({ labels: ['narrow'], repository: 'acme/web' });
    expect(states()).toEqual(['assigned wide', 'assigned narrow', 'queued none']);
  });

  it('takes a job back that no runner starts, three times with growing pauses', async () => {
    const queue = await listen('a', 1);
    queueJob();
    for (const attempt of [1, 2, 3]) {
      expect(states()).toEqual(['assigned a']);
      await clock.advance(5 * MINUTE_MS);
      expect(states()).toEqual(['delayed none']);
      await clock.advance(attempt * MINUTE_MS);
    }
    await clock.advance(60 * MINUTE_MS);
    expect(states()).toEqual(['assigned a']);
    const pair = ['JobAssigned 1', 'JobCompleted 1'];
    expect(await drain(queue, 1)).toEqual([...pair, ...pair, ...pair, 'JobAssigned 1']);
  });

  it('reports a job that it takes back as canceled, without a runner', async () => {
    const queue = await listen('a', 1);
    queueJob();
    await clock.advance(5 * MINUTE_MS);
    const { jobs, statistics } = messageIn(await poll(queue, 0));
    expect(jobs[1]).toMatchObject({ messageType: 'JobCompleted', result: 'canceled', runnerId: 0, runnerName: '' });
    expect(statistics.totalAssignedJobs).toBe(0);
  });

  it('queues assigned jobs again when their scale set is deleted', async () => {
    await listen('a', 1);
    queueJob();
    await client.call('DELETE', `${SETS}/1`);
    expect(states()).toEqual(['queued none']);
    await listen('b', 1);
    expect(states()).toEqual(['assigned b']);
  });
});

describe('cancellation', () => {
  it('of a queued job sends no message', async () => {
    const queue = await listen('a', 0);
    github.cancelJob(queueJob());
    expect(states()).toEqual(['completed none canceled']);
    expect(await drain(queue, 5)).toEqual([]);
    expect(github.cancelJob(99)).toBe(false);
  });

  it('of an assigned job is reported, and frees its place', async () => {
    const queue = await listen('a', 1);
    queueJob();
    queueJob();
    github.cancelJob(1);
    github.cancelJob(1);
    expect(states()).toEqual(['completed a canceled', 'assigned a']);
    expect(await drain(queue, 1)).toEqual(['JobAssigned 1', 'JobCompleted 1', 'JobAssigned 2']);
  });

  it('comes by itself after 24 hours in the queue', async () => {
    queueJob();
    await clock.advance(24 * 60 * MINUTE_MS - 1);
    expect(states()).toEqual(['queued none']);
    await clock.advance(1);
    expect(states()).toEqual(['completed none canceled']);
  });
});

describe('acquisition', () => {
  beforeEach(() => github.configure({ assignment: 'acquire' }));

  const acquire = async (queue: Queue, set: number, ids: readonly number[]): Promise<readonly unknown[]> => {
    const options = { body: ids, token: queue.token };
    const { status, body } = await client.call('POST', `${SETS}/${set}/acquirejobs`, options);
    return [status, body.value];
  };

  it('offers a job to all able scale sets; the first one gets it', async () => {
    const a = await listen('a', 2);
    const b = await listen('b', 2);
    queueJob();
    for (const queue of [a, b]) {
      const { jobs, statistics } = messageIn(await poll(queue, 2));
      expect(jobs).toEqual([expect.objectContaining({ messageType: 'JobAvailable', runnerRequestId: 1 })]);
      expect(statistics).toMatchObject({ totalAvailableJobs: 1, totalAssignedJobs: 0 });
    }
    expect(await acquire(b, 2, [1, 77])).toEqual([200, [1]]);
    expect(await acquire(a, 1, [1])).toEqual([200, []]);
    expect(await acquire(a, 1, [])).toEqual([200, []]);
    expect(states()).toEqual(['assigned b']);
    expect(await drain(a, 2)).toEqual(['JobAvailable 1']);
    expect(await drain(b, 2)).toEqual(['JobAvailable 1', 'JobAssigned 1']);
  });

  it('offers and gives no more than the capacity', async () => {
    const queue = await listen('a', 2);
    for (let index = 0; index < 5; index += 1) queueJob();
    expect(await drain(queue, 2)).toEqual(['JobAvailable 1', 'JobAvailable 2']);
    expect(await acquire(queue, 1, [1, 2, 3])).toEqual([200, [1, 2]]);
    expect(await drain(queue, 2)).toEqual(['JobAssigned 1', 'JobAssigned 2']);
    expect(await drain(queue, 3)).toEqual(['JobAvailable 3']);
    await poll(queue, 2);
    expect(await acquire(queue, 1, [3])).toEqual([200, []]);
  });

  it('can take time', async () => {
    github.configure({ assignMs: 1000 });
    const queue = await listen('a', 1);
    queueJob();
    await acquire(queue, 1, [1]);
    expect(messageIn(await poll(queue, 1)).statistics).toMatchObject({ totalAcquiredJobs: 1, totalAssignedJobs: 0 });
    await clock.advance(1000);
    expect(messageIn(await poll(queue, 1)).statistics).toMatchObject({ totalAcquiredJobs: 0, totalAssignedJobs: 1 });
  });

  it('needs the token of the session and a list of integers', async () => {
    const queue = await listen('a', 1);
    const path = `${SETS}/1/acquirejobs`;
    expect((await client.call('POST', path, { body: [1] })).status).toBe(401);
    expect((await client.call('POST', path, { body: { ids: [1] }, token: queue.token })).status).toBe(400);
    expect((await client.call('POST', path, { body: ['1'], token: queue.token })).status).toBe(400);
    await listen('b', 1);
    expect((await client.call('POST', `${SETS}/2/acquirejobs`, { body: [1], token: queue.token })).status).toBe(401);
    github.loseSession('a');
    expect((await client.call('POST', path, { body: [1], token: queue.token })).status).toBe(401);
  });

  it('lists the jobs that can be acquired', async () => {
    const queue = await listen('a', 1);
    const path = `${SETS}/1/acquirablejobs`;
    expect((await client.call('GET', path)).status).toBe(204);
    queueJob();
    const { body } = await client.call('GET', path);
    expect(body).toMatchObject({ count: 1, value: [{ messageType: 'JobAvailable', runnerRequestId: 1 }] });
    await acquire(queue, 1, [1]);
    expect((await client.call('GET', path)).status).toBe(204);
  });
});

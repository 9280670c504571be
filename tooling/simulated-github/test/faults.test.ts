/** Planned faults of calls and of messages, and the absence of the service. */

import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { seededRandom, VirtualClock } from '@nodepool/core/testing';
import { startSimulatedGithub, type SimulatedGithub } from '../src/index.js';
import { drain, messageIn, poll, TestClient, type Queue } from './support/client.js';

const SETS = 'runtime/runnerscalesets';

let clock: VirtualClock;
let github: SimulatedGithub;
let client: TestClient;
let queue: Queue;

beforeEach(async () => {
  clock = new VirtualClock();
  github = await startSimulatedGithub({ clock, random: seededRandom(1), settings: { longPollMs: 0 } });
  client = await TestClient.logIn(github);
  queue = await client.openSession(await client.createSet('linux'));
  await poll(queue, 10);
});

afterEach(() => github.close());

const queueJob = (): number => github.queueJob({ repository: 'acme/app', labels: ['linux'] });

describe('messages', () => {
  it('can be lost, while the statistics remain right', async () => {
    github.messageFaults.add({ on: 'JobAssigned', fault: { kind: 'lost' } });
    queueJob();
    queueJob();
    const { jobs, statistics } = messageIn(await poll(queue, 10));
    expect(jobs.map(({ workflowRunId }) => workflowRunId)).toEqual([30_000_000_002]);
    expect(statistics.totalAssignedJobs).toBe(2);
  });

  it('can be repeated', async () => {
    github.messageFaults.add({ on: 'JobCompleted', fault: { kind: 'repeated' } });
    github.cancelJob(queueJob());
    expect(await drain(queue, 10)).toEqual(['JobAssigned 1', 'JobCompleted 1', 'JobCompleted 1']);
  });

  it('can be late, so that others overtake them', async () => {
    github.messageFaults.add({ on: 'JobAssigned', fault: { kind: 'late', ms: 1000 } });
    github.cancelJob(queueJob());
    expect(await drain(queue, 10)).toEqual(['JobCompleted 1']);
    await clock.advance(1000);
    expect(await drain(queue, 10)).toEqual(['JobAssigned 1']);
  });

  it('can have wrong statistics', async () => {
    queueJob();
    github.faults.add({ on: 'messages.get', fault: { kind: 'statistics', statistics: { totalAssignedJobs: 0 } } });
    expect(messageIn(await poll(queue, 10)).statistics).toMatchObject({ totalAssignedJobs: 0, totalRunningJobs: 0 });
    expect(messageIn(await poll(queue, 10)).statistics.totalAssignedJobs).toBe(1);
  });

  it('can be cut off or empty, and come again', async () => {
    queueJob();
    github.faults.add({ on: 'messages.get', fault: { kind: 'empty' } });
    expect(await poll(queue, 10)).toMatchObject({ status: 200, body: { text: '' } });
    github.faults.add({ on: 'messages.get', fault: { kind: 'cut', when: 'after' } });
    await expect(poll(queue, 10)).rejects.toThrow();
    expect(await drain(queue, 10)).toEqual(['JobAssigned 1']);
  });
});

describe('calls', () => {
  it('can fail with an exception, before or after their effect', async () => {
    const exception = 'RunnerScaleSetExistsException';
    github.faults.add({ on: 'runnerscalesets.create', fault: { kind: 'status', status: 409, exception } });
    github.faults.add({
      on: 'runnerscalesets.create',
      after: 1,
      fault: { kind: 'status', status: 502, when: 'after' },
    });
    const create = () => client.call('POST', SETS, { body: { name: 'b', runnerGroupId: 1 } });
    const refused = await create();
    expect([refused.status, refused.body.typeName]).toEqual([409, expect.stringContaining(exception)]);
    expect((await create()).status).toBe(502);
    expect(github.inspect.scaleSets().map(({ name }) => name)).toEqual(['linux', 'b']);
  });

  it('can be throttled, with Retry-After', async () => {
    github.faults.add({ on: 'agents', fault: { kind: 'status', status: 429, retryAfter: 7 } });
    const { status, headers } = await client.call('GET', 'distributedtask/pools/0/agents');
    expect([status, headers.get('Retry-After')]).toEqual([429, '7']);
    expect((await client.call('GET', 'distributedtask/pools/0/agents')).status).toBe(200);
  });

  it('can be redirected', async () => {
    const to = 'http://127.0.0.1:1/other';
    github.faults.add({ on: 'messages.get', fault: { kind: 'redirect', status: 307, to } });
    const { status, headers } = await poll(queue, 10);
    expect([status, headers.get('Location')]).toEqual([307, to]);
  });

  it('of the REST API fail in its own format', async () => {
    github.faults.add({ on: 'runners', fault: { kind: 'status', status: 500, message: 'Server Error' } });
    const answer = await fetch(`${github.url}/orgs/acme/actions/runners/registration-token`, { method: 'POST' });
    expect([answer.status, await answer.json()]).toEqual([500, expect.objectContaining({ message: 'Server Error' })]);
  });

  it('are counted by operation', async () => {
    github.calls.reset();
    await poll(queue, 10);
    await client.call('GET', SETS);
    expect(github.calls.byOperation()).toEqual({ 'messages.get': 1, 'runnerscalesets.list': 1 });
  });
});

describe('absence', () => {
  it('refuses connections for a time, and loses nothing', async () => {
    queueJob();
    github.goAway(600_000);
    await expect(poll(queue, 10)).rejects.toThrow();
    await clock.advance(600_000);
    // The session expired meanwhile.
    expect((await poll(queue, 10)).status).toBe(404);
    queue = await client.openSession(1);
    expect(queue.statistics.totalAssignedJobs).toBe(0);
    await clock.advance(60_000);
    await poll(queue, 10);
    expect(await drain(queue, 10)).toEqual(['JobAssigned 1', 'JobCompleted 1', 'JobAssigned 1']);
  });

  it('can concern one of the two services', async () => {
    github.connections.actions.refuse();
    await expect(poll(queue, 10)).rejects.toThrow();
    expect((await fetch(`${github.url}/unknown`)).status).toBe(404);
    await github.connections.actions.accept();
    expect((await poll(queue, 10)).status).toBe(202);
  });
});

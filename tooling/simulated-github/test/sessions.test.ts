/** Sessions of scale sets and their messages. */

import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { seededRandom, VirtualClock } from '@nodepool/core/testing';
import { startSimulatedGithub, type SimulatedGithub } from '../src/index.js';
import {
  call,
  deleteMessage,
  drain,
  messageIn,
  poll,
  queueIn,
  TestClient,
  until,
  type Queue,
} from './support/client.js';

const SETS = 'runtime/runnerscalesets';
const HOUR_MS = 3_600_000;

let clock: VirtualClock;
let github: SimulatedGithub;
let client: TestClient;
let set: number;

beforeEach(async () => {
  clock = new VirtualClock();
  github = await startSimulatedGithub({ clock, random: seededRandom(1), settings: { longPollMs: 0 } });
  client = await TestClient.logIn(github);
  set = await client.createSet('linux');
});

afterEach(() => github.close());

const queueJobs = (count: number): void => {
  for (let index = 0; index < count; index += 1) github.queueJob({ repository: 'acme/app', labels: ['linux'] });
};
const undeleted = (): readonly number[] => github.inspect.scaleSets()[0]?.undeletedMessages.map(({ id }) => id) ?? [];

describe('session', () => {
  it('is exclusive, even for its owner', async () => {
    await client.openSession(set, 'first');
    for (const ownerName of ['first', 'second']) {
      const { status, body } = await client.call('POST', `${SETS}/${set}/sessions`, { body: { ownerName } });
      expect([status, body.typeName?.split(',')[0]]).toEqual([
        409,
        'GitHub.Actions.Runtime.WebApi.RunnerScaleSetSessionConflictException',
      ]);
    }
  });

  it("accepts the empty session id of GitHub's client, and nothing else", async () => {
    const path = `${SETS}/${set}/sessions`;
    const ownerName = 'tests';
    const other = { sessionId: '11111111-0000-0000-0000-000000000000', ownerName };
    expect((await client.call('POST', path, { body: other })).status).toBe(400);
    expect((await client.call('POST', path, { body: { ownerName: '' } })).status).toBe(400);
    expect((await client.call('POST', path, { body: { ownerName, color: 'red' } })).status).toBe(400);
    const empty = { sessionId: '00000000-0000-0000-0000-000000000000', ownerName };
    expect((await client.call('POST', path, { body: empty })).status).toBe(200);
  });

  it('ends when its owner deletes it', async () => {
    const queue = await client.openSession(set);
    expect((await client.call('DELETE', `${SETS}/${set}/sessions/${queue.sessionId}`)).status).toBe(204);
    expect((await client.call('DELETE', `${SETS}/${set}/sessions/${queue.sessionId}`)).status).toBe(404);
    expect((await poll(queue, 1)).status).toBe(404);
    expect((await client.openSession(set)).sessionId).not.toBe(queue.sessionId);
  });

  it('expires 90 seconds after the last call for messages', async () => {
    const queue = await client.openSession(set);
    await clock.advance(89_999);
    expect((await poll(queue, 1)).status).toBe(202);
    await clock.advance(89_999);
    expect(github.inspect.scaleSets()[0]?.session?.owner).toBe('tests');
    await clock.advance(1);
    expect(github.inspect.scaleSets()[0]?.session).toBeUndefined();
    expect((await poll(queue, 1)).status).toBe(404);
    expect((await client.call('PATCH', `${SETS}/${set}/sessions/${queue.sessionId}`)).status).toBe(404);
    await client.openSession(set);
  });

  it('can be lost, which ends a waiting call', async () => {
    github.configure({ longPollMs: 50_000 });
    const queue = await client.openSession(set);
    const waiting = poll(queue, 1);
    await until(() => github.inspect.scaleSets()[0]?.session?.capacity === 1);
    expect(github.loseSession('linux')).toBe(true);
    expect((await waiting).status).toBe(404);
    expect(github.loseSession('linux')).toBe(false);
  });

  it('ends with its scale set', async () => {
    const queue = await client.openSession(set);
    await client.call('DELETE', `${SETS}/${set}`);
    expect((await poll(queue, 1)).status).toBe(404);
  });
});

describe('token of the message queue', () => {
  const refresh = async (queue: Queue): Promise<Queue> =>
    queueIn((await client.call('PATCH', `${SETS}/${set}/sessions/${queue.sessionId}`)).body);

  it('expires, and is renewed for the same session', async () => {
    github.configure({ queueTokenMs: 60_000 });
    const queue = await client.openSession(set);
    await clock.advance(59_999);
    expect((await poll(queue, 1)).status).toBe(202);
    await clock.advance(1);
    expect((await poll(queue, 1)).status).toBe(401);
    expect((await deleteMessage(queue, 1)).status).toBe(401);
    const renewed = await refresh(queue);
    expect([renewed.sessionId, renewed.url]).toEqual([queue.sessionId, queue.url]);
    expect((await poll(renewed, 1)).status).toBe(202);
  });

  it('can be revoked', async () => {
    const queue = await client.openSession(set);
    github.revokeTokens('queue');
    expect((await poll(queue, 1)).status).toBe(401);
    expect((await poll(await refresh(queue), 1)).status).toBe(202);
  });

  it('belongs to one queue, and is not the token of the tenant', async () => {
    const queue = await client.openSession(set);
    const other = await client.openSession(await client.createSet('windows'));
    expect((await poll({ ...queue, url: other.url }, 1)).status).toBe(401);
    expect((await client.plainCall('GET', SETS, { token: queue.token })).status).toBe(401);
    expect((await poll({ ...queue, url: queue.url.split('?')[0] ?? '' }, 1)).status).toBe(401);
  });
});

describe('call for messages', () => {
  it('needs the capacity and the version of the API', async () => {
    const { url, token } = await client.openSession(set);
    const Accept = 'application/json; api-version=6.0-preview';
    const get = async (headers: Record<string, string>): Promise<number> =>
      (await call('GET', url, { token, headers })).status;
    expect(await get({ Accept })).toBe(400);
    expect(await get({ Accept, 'X-ScaleSetMaxCapacity': '-1' })).toBe(400);
    expect(await get({ Accept, 'X-ScaleSetMaxCapacity': 'many' })).toBe(400);
    expect(await get({ Accept, 'X-ScaleSetMaxCapacity': '2147483648' })).toBe(400);
    expect(await get({ 'X-ScaleSetMaxCapacity': '1' })).toBe(400);
    expect(await get({ Accept, 'X-ScaleSetMaxCapacity': '1', 'User-Agent': 'curl' })).toBe(400);
    expect(await get({ Accept, 'X-ScaleSetMaxCapacity': '1' })).toBe(202);
  });

  it('records the capacities of the client', async () => {
    const queue = await client.openSession(set);
    for (const capacity of [3, 3, 0, 5]) await poll(queue, capacity);
    expect(github.inspect.scaleSets()[0]?.session).toMatchObject({ capacity: 5, capacities: [3, 0, 5] });
  });

  it('waits for a message', async () => {
    github.configure({ longPollMs: 50_000 });
    const queue = await client.openSession(set);
    const waiting = poll(queue, 1);
    await until(() => github.inspect.scaleSets()[0]?.session?.capacity === 1);
    queueJobs(1);
    expect(messageIn(await waiting).jobs.map(({ messageType }) => messageType)).toEqual(['JobAssigned']);
  });

  it('ends with 202 if none comes in time', async () => {
    github.configure({ longPollMs: 50_000 });
    const queue = await client.openSession(set);
    const waiting = poll(queue, 1);
    await until(() => github.inspect.scaleSets()[0]?.session?.capacity === 1);
    await clock.advance(50_000);
    expect((await waiting).status).toBe(202);
  });

  it('keeps the session while it waits', async () => {
    github.configure({ longPollMs: 200_000 });
    const queue = await client.openSession(set);
    const waiting = poll(queue, 1);
    await until(() => github.inspect.scaleSets()[0]?.session?.capacity === 1);
    await clock.advance(199_999);
    expect(github.inspect.scaleSets()[0]?.session?.id).toBe(queue.sessionId);
    await clock.advance(1);
    expect((await waiting).status).toBe(202);
  });

  it('does not keep the session if the client is gone', async () => {
    github.configure({ longPollMs: 50_000_000 });
    const queue = await client.openSession(set);
    const stop = new AbortController();
    const waiting = poll(queue, 1, 0, stop.signal);
    await until(() => github.inspect.scaleSets()[0]?.session?.capacity === 1);
    stop.abort();
    await expect(waiting).rejects.toThrow();
    // The expiry begins once the service has noticed the end of the connection.
    await until(() => clock.nextDueAt === 90_000);
    await clock.advance(90_000);
    expect(github.inspect.scaleSets()[0]?.session).toBeUndefined();
  });
});

describe('message', () => {
  it('comes again until it is deleted', async () => {
    const queue = await client.openSession(set);
    await poll(queue, 1);
    queueJobs(1);
    const first = messageIn(await poll(queue, 1));
    expect(messageIn(await poll(queue, 1))).toEqual(first);
    expect(github.inspect.scaleSets()[0]?.undeletedMessages).toEqual([{ id: first.id, deliveries: 2 }]);
    expect((await deleteMessage(queue, first.id)).status).toBe(204);
    expect((await poll(queue, 1)).status).toBe(202);
    expect((await deleteMessage(queue, first.id)).status).toBe(204);
  });

  it('comes again in the next session, under the same id', async () => {
    const queue = await client.openSession(set);
    await poll(queue, 1);
    queueJobs(1);
    const first = messageIn(await poll(queue, 1));
    github.loseSession('linux');
    const next = await client.openSession(set);
    expect(next.statistics.totalAssignedJobs).toBe(1);
    expect(messageIn(await poll(next, 1))).toEqual(first);
  });

  it('does not come again while the client names it as its last one', async () => {
    const queue = await client.openSession(set);
    await poll(queue, 2);
    queueJobs(1);
    const { id } = messageIn(await poll(queue, 2));
    expect((await poll(queue, 2, id)).status).toBe(202);
    queueJobs(1);
    expect(messageIn(await poll(queue, 2, id)).id).toBe(id + 1);
    expect(undeleted()).toEqual([id, id + 1]);
  });

  it('has at most 50 job messages, and exact statistics', async () => {
    const queue = await client.openSession(set);
    await poll(queue, 120);
    queueJobs(130);
    const first = messageIn(await poll(queue, 120));
    expect(first.jobs).toHaveLength(50);
    expect(first.statistics).toEqual({
      ...{ totalAvailableJobs: 10, totalAcquiredJobs: 0, totalAssignedJobs: 120, totalRunningJobs: 0 },
      ...{ totalRegisteredRunners: 0, totalBusyRunners: 0, totalIdleRunners: 0 },
    });
    expect(await drain(queue, 120)).toHaveLength(120);
  });

  it('contains what github.com sends', async () => {
    const queue = await client.openSession(set);
    await poll(queue, 1);
    github.queueJob({ repository: 'acme/app', labels: ['linux'], workflow: 'test.yml', displayName: 'unit' });
    expect(messageIn(await poll(queue, 1)).jobs).toEqual([
      {
        messageType: 'JobAssigned',
        runnerRequestId: 0,
        repositoryName: 'app',
        ownerName: 'acme',
        jobId: expect.stringMatching(/^[0-9a-f-]{36}$/),
        jobWorkflowRef: 'acme/app/.github/workflows/test.yml@refs/heads/main',
        jobDisplayName: 'unit',
        workflowRunId: 30_000_000_001,
        eventName: 'push',
        requestLabels: ['linux'],
        scaleSetAssignTime: '2026-01-01T00:00:00.000Z',
      },
    ]);
  });

  it('begins with id 1 again in a scale set that was created again', async () => {
    const queue = await client.openSession(set);
    await poll(queue, 2);
    queueJobs(2);
    await drain(queue, 2);
    await client.call('DELETE', `${SETS}/${set}`);
    const again = await client.openSession(await client.createSet('linux'));
    // A client that still names its old last message gets nothing.
    expect((await poll(again, 2, 100)).status).toBe(202);
    expect(messageIn(await poll(again, 2)).id).toBe(1);
  });
});

it('keeps tokens within their lifetime only', async () => {
  const queue = await client.openSession(set);
  await clock.advance(HOUR_MS);
  expect((await poll(queue, 1)).status).toBe(401);
});

/** The control interface over HTTP, and its page. */

import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { VirtualClock } from '@nodepool/core/testing';
import { startSimulatedGithub, type SimulatedGithub } from '../src/index.js';
import { poll, TestClient } from './support/client.js';

let clock: VirtualClock;
let github: SimulatedGithub;

beforeEach(async () => {
  clock = new VirtualClock();
  github = await startSimulatedGithub({ clock, settings: { longPollMs: 0 } });
});

afterEach(() => github.close());

async function control(
  method: string,
  path: string,
  body?: unknown,
): Promise<readonly [status: number, body: unknown]> {
  const content = body === undefined ? {} : { body: JSON.stringify(body) };
  const answer = await fetch(github.controlUrl + path, { method, ...content });
  const text = await answer.text();
  return [answer.status, text === '' ? undefined : JSON.parse(text)];
}

const JOB = { repository: 'acme/app', labels: ['linux'] };

describe('jobs', () => {
  it('are queued, shown and cancelled', async () => {
    expect(await control('POST', '/jobs', { ...JOB, count: 2 })).toEqual([201, { numbers: [1, 2] }]);
    expect(await control('POST', '/jobs/1/cancel')).toEqual([204, undefined]);
    expect((await control('POST', '/jobs/9/cancel'))[0]).toBe(404);
    expect(await control('GET', '/jobs')).toEqual([
      200,
      [
        expect.objectContaining({ number: 1, result: 'canceled' }),
        expect.objectContaining({ number: 2, state: 'queued' }),
      ],
    ]);
    const [, events] = await control('GET', '/events');
    expect(events).toContainEqual({ time: '2026-01-01T00:00:00.000Z', text: 'Job 1 is cancelled' });
  });

  it.each([
    [{ repository: 'acme/none', labels: ['linux'] }, 'there is no repository acme/none'],
    [{ repository: 'acme/app' }, 'The field "labels" is missing'],
    [{ ...JOB, labels: [] }, '"labels" must be a list of texts'],
    [{ ...JOB, conclusion: 'maybe' }, '"conclusion" must be "succeeded" or "failed"'],
    [{ ...JOB, behaviour: 'odd' }, expect.stringContaining('"behaviour" is one of: normal, never-connects')],
    [{ ...JOB, color: 'red' }, 'The field "color" is unknown'],
    [{ ...JOB, count: 0 }, '"count" is 1 to 10000'],
    [[], 'The body is not a JSON object'],
  ])('are refused if they are wrong: %j', async (body, message) => {
    expect(await control('POST', '/jobs', body)).toEqual([400, { message }]);
    expect(github.inspect.jobs()).toEqual([]);
  });
});

it('shows scale sets, runners and calls', async () => {
  const client = await TestClient.logIn(github);
  const queue = await client.openSession(await client.createSet('linux'));
  await client.register(1, 'runner-1');
  await poll(queue, 3);
  const [, sets] = await control('GET', '/scale-sets');
  expect(sets).toMatchObject([{ name: 'linux', session: { owner: 'tests', capacity: 3 } }]);
  const [, runners] = await control('GET', '/runners');
  expect(runners).toMatchObject([{ name: 'runner-1', isOnline: false }]);
  expect((await control('GET', '/calls'))[1]).toMatchObject({ 'messages.get': 1 });
  expect(await control('POST', '/runners/runner-1/remove')).toEqual([204, undefined]);
  expect((await control('POST', '/runners/runner-1/remove'))[0]).toBe(404);
  expect(await control('POST', '/scale-sets/linux/lose-session')).toEqual([204, undefined]);
  expect((await control('POST', '/scale-sets/linux/lose-session'))[0]).toBe(404);
  expect(await control('POST', '/runner-groups', { scope: 'acme', name: 'large' })).toEqual([201, { id: 2 }]);
});

it('changes settings', async () => {
  expect((await control('PATCH', '/settings', { assignment: 'acquire', pickupMs: 1 }))[1]).toMatchObject({
    pickupMs: 1,
  });
  expect(await control('PATCH', '/settings', { color: 1 })).toEqual([400, { message: 'There is no setting "color"' }]);
  expect((await control('PATCH', '/settings', { pickupMs: '1' }))[0]).toBe(400);
  expect((await control('PATCH', '/settings', { assignment: 'other' }))[0]).toBe(400);
  expect((await control('GET', '/settings'))[1]).toMatchObject({ assignment: 'acquire' });
});

it('plans faults, and ends them', async () => {
  const client = await TestClient.logIn(github);
  const list = async (): Promise<number> => (await client.call('GET', 'runtime/runnerscalesets')).status;
  const fault = { kind: 'status', status: 503 };
  expect(await control('POST', '/faults', { on: 'runnerscalesets', times: 9, fault })).toEqual([201, undefined]);
  expect(await list()).toBe(503);
  expect(await control('DELETE', '/faults')).toEqual([204, undefined]);
  expect(await list()).toBe(200);
  expect(await control('POST', '/message-faults', { on: 'JobAssigned', fault: { kind: 'lost' } })).toEqual([
    201,
    undefined,
  ]);
  expect((await control('POST', '/message-faults', { on: 'JobAssigned', fault: { kind: 'odd' } }))[0]).toBe(400);
  expect((await control('POST', '/faults', { on: 'x', fault: { kind: 'status' } }))[0]).toBe(400);
  expect((await control('POST', '/faults', { on: 'x', fault: { kind: 'runner', behaviour: 'odd' } }))[0]).toBe(400);
});

it('revokes tokens', async () => {
  const client = await TestClient.logIn(github);
  expect(await control('POST', '/revoke', { kind: 'admin' })).toEqual([204, undefined]);
  expect((await client.call('GET', 'runtime/runnerscalesets')).status).toBe(401);
  expect((await control('POST', '/revoke', { kind: 'other' }))[0]).toBe(400);
});

it('sends the service away, and is there itself', async () => {
  expect((await control('POST', '/away', { seconds: 60 }))[0]).toBe(202);
  await expect(fetch(github.url)).rejects.toThrow();
  expect((await control('GET', '/jobs'))[0]).toBe(200);
  await clock.advance(60_000);
  expect((await fetch(github.url)).status).toBe(404);
  expect((await control('POST', '/away', { seconds: 0 }))[0]).toBe(400);
});

it('has a page for people', async () => {
  const answer = await fetch(github.controlUrl);
  expect(answer.headers.get('Content-Type')).toBe('text/html; charset=utf-8');
  expect(await answer.text()).toContain('<title>Simulated GitHub</title>');
  expect((await control('GET', '/nothing'))[0]).toBe(404);
});

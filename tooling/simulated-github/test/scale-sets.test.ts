/** Runner groups, runner scale sets and runners, and the strictness of their calls. */

import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { VirtualClock } from '@nodepool/core/testing';
import { startSimulatedGithub, type SimulatedGithub } from '../src/index.js';
import { TestClient, USER_AGENT, type Body, type TestAnswer } from './support/client.js';

const SETS = 'runtime/runnerscalesets';
const AGENTS = 'distributedtask/pools/0/agents';

let clock: VirtualClock;
let github: SimulatedGithub;
let client: TestClient;

beforeEach(async () => {
  clock = new VirtualClock();
  github = await startSimulatedGithub({ clock, settings: { longPollMs: 0 } });
  client = await TestClient.logIn(github);
});

afterEach(() => github.close());

const exceptionOf = ({ status, body }: TestAnswer): readonly unknown[] => [
  status,
  body.typeName?.split(',')[0]?.split('.').at(-1),
];

describe('strictness', () => {
  const fullInfo = JSON.parse(USER_AGENT) as object;

  it.each([
    ['no JSON', 'nodepool/1.0'],
    ['no object', '[]'],
    ['a missing member', JSON.stringify({ ...fullInfo, subsystem: undefined })],
    ['a member of another type', JSON.stringify({ ...fullInfo, scale_set_id: '1' })],
    ['an unknown member', JSON.stringify({ ...fullInfo, color: 'red' })],
  ])('refuses a User-Agent with %s', async (_name, agent) => {
    const answer = await client.call('GET', SETS, { headers: { 'User-Agent': agent } });
    expect(exceptionOf(answer)).toEqual([400, 'VssPropertyValidationException']);
    github.configure({ strictUserAgent: false });
    expect((await client.call('GET', SETS, { headers: { 'User-Agent': agent } })).status).toBe(200);
  });

  it('refuses calls without the version of the API, and with another one', async () => {
    expect(exceptionOf(await client.plainCall('GET', SETS))).toEqual([400, 'VssVersionNotSpecifiedException']);
    const other = await client.plainCall('GET', `${SETS}?api-version=7.1`);
    expect(exceptionOf(other)).toEqual([400, 'VssVersionOutOfRangeException']);
    const Accept = 'application/json; api-version=6.0-preview';
    expect((await client.plainCall('GET', SETS, { headers: { Accept } })).status).toBe(200);
  });

  it('refuses unknown fields, parameters, content types, paths and methods', async () => {
    const body = { name: 'linux', runnerGroupId: 1, labels: [] };
    expect((await client.call('POST', SETS, { body: { ...body, color: 'red' } })).status).toBe(400);
    expect((await client.call('POST', SETS, { body: { ...body, runnerGroupId: '1' } })).status).toBe(400);
    expect((await client.call('POST', SETS, { body: { ...body, RunnerSetting: { fast: true } } })).status).toBe(400);
    expect((await client.call('POST', SETS, { body: { ...body, labels: [{ name: 'x' }] } })).status).toBe(400);
    expect((await client.call('POST', SETS, { body: { ...body, labels: [{ name: 'x', type: 'User' }] } })).status).toBe(
      400,
    );
    expect((await client.call('POST', SETS, { body: '{' })).status).toBe(400);
    expect((await client.call('GET', `${SETS}?color=red`)).status).toBe(400);
    expect((await client.call('POST', SETS, { body, headers: { 'Content-Type': 'text/plain' } })).status).toBe(415);
    expect((await client.call('GET', 'runtime/unknown')).status).toBe(404);
    expect((await client.call('PUT', SETS, { body })).status).toBe(405);
    expect(github.inspect.scaleSets()).toEqual([]);
  });

  it('refuses calls without a token', async () => {
    const answer = await client.call('GET', SETS, { headers: { Authorization: undefined } });
    expect(exceptionOf(answer)).toEqual([401, 'VssUnauthorizedException']);
  });

  it('identifies every answer', async () => {
    const { headers } = await client.call('GET', SETS);
    expect(headers.get('ActivityId')).toMatch(/^[0-9a-f-]{36}$/);
    expect(headers.get('X-GitHub-Request-Id')).toBeTruthy();
  });
});

describe('runner groups', () => {
  it('are found by name', async () => {
    const id = github.addRunnerGroup('acme', 'large');
    await client.createSet('linux', ['linux'], id);
    const large = { id, name: 'large', size: 1, isDefaultGroup: false };
    const normal = { id: 1, name: 'default', size: 0, isDefaultGroup: true };
    const find = async (query: string): Promise<Body> =>
      (await client.call('GET', `runtime/runnergroups/${query}`)).body;
    expect(await find('?groupName=large')).toEqual({ count: 1, value: [large] });
    expect(await find('?groupName=Default')).toEqual({ count: 1, value: [normal] });
    expect(await find('?groupName=none')).toEqual({ count: 0, value: [] });
    expect(await find('')).toEqual({ count: 2, value: [normal, large] });
  });
});

describe('scale sets', () => {
  it('are created, found, changed and deleted', async () => {
    const body = {
      ...{ name: 'linux', runnerGroupId: 1, createdOn: '0001-01-01T00:00:00Z' },
      labels: [{ name: 'linux', type: 'System' }],
      RunnerSetting: { disableUpdate: true },
    };
    const created = await client.call('POST', SETS, { body });
    const { id } = created.body;
    expect(created.body).toMatchObject({
      ...body,
      id: 1,
      runnerGroupName: 'default',
      createdOn: '2026-01-01T00:00:00.000Z',
    });
    expect((await client.call('GET', `${SETS}/${id}`)).body).toEqual(created.body);
    expect((await client.call('GET', `${SETS}?runnerGroupId=1&name=linux`)).body).toEqual({
      count: 1,
      value: [created.body],
    });
    expect((await client.call('GET', `${SETS}?runnerGroupId=1&name=other`)).body.count).toBe(0);
    const labels = [{ name: 'arm64', type: 'System' }];
    const changed = await client.call('PATCH', `${SETS}/${id}`, { body: { labels } });
    expect(changed.body).toEqual({ ...created.body, labels });
    expect((await client.call('DELETE', `${SETS}/${id}`)).status).toBe(204);
    expect(exceptionOf(await client.call('GET', `${SETS}/${id}`))).toEqual([404, 'RunnerScaleSetNotFoundException']);
    expect((await client.call('DELETE', `${SETS}/${id}`)).status).toBe(404);
  });

  it('have their name as label if they have no other', async () => {
    const { body } = await client.call('POST', SETS, { body: { name: 'linux', runnerGroupId: 1 } });
    expect(body['labels']).toEqual([{ name: 'linux', type: 'System' }]);
  });

  it('have a name that is unique in their group', async () => {
    const large = github.addRunnerGroup('acme', 'large');
    const create = (name: string, runnerGroupId: number): Promise<TestAnswer> =>
      client.call('POST', SETS, { body: { name, runnerGroupId } });
    expect((await create('linux', 1)).status).toBe(200);
    expect(exceptionOf(await create('linux', 1))).toEqual([409, 'RunnerScaleSetExistsException']);
    const other = await create('linux', large);
    expect(other.status).toBe(200);
    const moved = await client.call('PATCH', `${SETS}/${other.body.id}`, { body: { runnerGroupId: 1 } });
    expect(moved.status).toBe(409);
    expect((await create('windows', 99)).status).toBe(400);
    expect((await client.call('POST', SETS, { body: { name: 'windows' } })).status).toBe(400);
    expect((await client.call('POST', SETS, { body: { runnerGroupId: 1 } })).status).toBe(400);
  });

  it('belong to one tenant', async () => {
    const id = await client.createSet('linux');
    const other = await TestClient.logIn(github, 'acme/app');
    expect((await other.call('GET', `${SETS}/${id}`)).status).toBe(404);
    expect((await other.call('DELETE', `${SETS}/${id}`)).status).toBe(404);
    expect((await client.call('GET', `${SETS}/${id}`)).status).toBe(200);
  });
});

describe('runners', () => {
  it('get a just-in-time configuration that contains the files of the real runner', async () => {
    const id = await client.createSet('linux');
    const body = { name: 'runner-1', workFolder: '' };
    const answer = await client.call('POST', `${SETS}/${id}/generatejitconfig`, { body });
    const { runner, encodedJITConfig } = answer.body;
    expect(runner).toEqual({ id: 1, name: 'runner-1', runnerScaleSetId: id });
    const files = JSON.parse(Buffer.from(String(encodedJITConfig), 'base64').toString()) as Record<string, string>;
    const fileOf = (name: string): unknown => JSON.parse(Buffer.from(files[name] ?? '', 'base64').toString());
    expect(Object.keys(files)).toEqual(['.runner', '.credentials', '.credentials_rsaparams']);
    expect(fileOf('.runner')).toMatchObject({
      AgentId: '1',
      AgentName: 'runner-1',
      Ephemeral: 'True',
      WorkFolder: '_work',
    });
    expect(fileOf('.credentials')).toMatchObject({ Scheme: 'OAuth' });
    expect(Object.keys(fileOf('.credentials_rsaparams') as object)).toContain('inverseQ');
  });

  it('have a unique name, are found by it, and are deleted', async () => {
    const set = await client.createSet('linux');
    const id = await client.register(set, 'runner-1');
    const body = { name: 'runner-1', workFolder: '_work' };
    const again = await client.call('POST', `${SETS}/${set}/generatejitconfig`, { body });
    expect(exceptionOf(again)).toEqual([409, 'TaskAgentExistsException']);
    const reference = { id, name: 'runner-1', runnerScaleSetId: set };
    expect((await client.call('GET', `${AGENTS}?agentName=runner-1`)).body).toEqual({ count: 1, value: [reference] });
    expect((await client.call('GET', AGENTS)).body.count).toBe(1);
    expect((await client.call('GET', `${AGENTS}/${id}`)).body).toEqual(reference);
    expect((await client.call('DELETE', `${AGENTS}/${id}`)).status).toBe(204);
    expect(exceptionOf(await client.call('GET', `${AGENTS}/${id}`))).toEqual([404, 'TaskAgentNotFoundException']);
    expect(exceptionOf(await client.call('DELETE', `${AGENTS}/${id}`))).toEqual([404, 'TaskAgentNotFoundException']);
    expect((await client.call('GET', `${AGENTS}?agentName=runner-1`)).body.count).toBe(0);
  });

  it('are deleted together with their scale set, and after a day without a connection', async () => {
    const set = await client.createSet('linux');
    await client.register(set, 'runner-1');
    await clock.advance(86_400_000 - 1);
    expect(github.inspect.runners()).toHaveLength(1);
    await clock.advance(1);
    expect(github.inspect.runners()).toEqual([]);
    await client.logInAgain();
    await client.register(set, 'runner-2');
    await client.call('DELETE', `${SETS}/${set}`);
    expect(github.inspect.runners()).toEqual([]);
  });

  it('have more fields for clients that need them', async () => {
    github.configure({ runnerDetails: true });
    const set = await client.createSet('linux');
    const id = await client.register(set, 'runner-1');
    const { body } = await client.call('GET', `${AGENTS}/${id}`);
    expect(body).toMatchObject({ id, status: 'offline', busy: false, ephemeral: true });
  });

  it('need the settings that GitHub expects', async () => {
    const set = await client.createSet('linux');
    const path = `${SETS}/${set}/generatejitconfig`;
    expect((await client.call('POST', path, { body: { name: '', workFolder: '_work' } })).status).toBe(400);
    expect((await client.call('POST', path, { body: { name: 'x' } })).status).toBe(400);
    expect((await client.call('POST', path, { body: { name: 'x', workFolder: '', labels: [] } })).status).toBe(400);
    const unknown = await client.call('POST', `${SETS}/99/generatejitconfig`, { body: { name: 'x', workFolder: '' } });
    expect(unknown.status).toBe(404);
  });
});

it('begins answers with a byte order mark if that is set', async () => {
  expect((await client.call('GET', SETS)).hasMark).toBe(false);
  github.configure({ byteOrderMark: true });
  expect(await client.call('GET', SETS)).toMatchObject({ hasMark: true, body: { count: 0, value: [] } });
});

/** `nodepool describe`: records of ZooKeeper, and documents of launchers. */

import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { launcherUrls } from '../src/launchers.js';
import { World } from './world.js';

let world: World;

beforeEach(async () => {
  world = new World();
  await world.start();
});

afterEach(() => world.stop());

async function described(...args: string[]): Promise<{ text: string; json: Record<string, unknown>; noted: string }> {
  const { code, out } = await world.run('describe', ...args);
  expect([code, out.noted]).toEqual([0, expect.stringMatching(/^(no launcher is registered with a web endpoint.*)?$/)]);
  const data = await world.run('describe', ...args, '-o', 'json');
  return { text: out.printed, json: JSON.parse(data.out.printed) as Record<string, unknown>, noted: out.noted };
}

describe('nodepool describe, without a launcher,', () => {
  it('shows age, labels, nodes and pools of a request', async () => {
    await world.pool(['small', 'big']);
    const id = await world.request({
      node_types: ['small', 'small', 'big'],
      tenant_name: 't1',
      created_time: world.clock.now() / 1000 - 90,
    });
    const { text, json, noted } = await described('request', id);
    expect(text).toContain(`request ${id}\n  Waiting: cloud/main can serve it.`);
    expect(text).toMatch(/^Age: +00:00:01:30$/m);
    expect(text).toMatch(/^Labels: +small ×2, big$/m);
    expect(text).toMatch(/^Tenant: +t1$/m);
    expect(text).toMatch(/^Pools:\n {2}POOL +LAUNCHER +SAYS\n {2}cloud\/main +host +has all its labels$/m);
    expect(json).toMatchObject({
      kind: 'request',
      state: 'requested',
      node_types: ['small', 'small', 'big'],
      nodes: [],
    });
    expect(noted).toContain('timeline and reasons are missing');
  });

  it('shows the labels of a request that pools lack, and its nodes', async () => {
    await world.pool(['big']);
    const id = await world.request({ node_types: ['small'], state: 'pending' });
    const node = await world.node({ state: 'building', allocated_to: id });
    const { text } = await described('request', id);
    expect(text).toMatch(
      /no pool works on it: no registered pool can, so it may wait again; 1 of 1 nodes have a record/,
    );
    expect(text).toContain('has no label small');
    expect(text).toMatch(new RegExp(`^Nodes:\n.*\n {2}${node} +building`, 'm'));
  });

  it('shows the request of a node, and never its credentials', async () => {
    const request = await world.request({});
    const node = await world.node({
      state: 'hold',
      allocated_to: request,
      comment: 'ask Ada\u001b[31m',
      connection_port: { token: 'hush' },
      driver_data: { secret: 'hush' },
    });
    const { text, json } = await described('node', String(Number(node)));
    expect(text).toContain(`node ${node}\n  Held for inspection.`);
    expect(text).toMatch(new RegExp(`^Request: +${request} \\(requested\\)$`, 'm'));
    expect(text).toContain('ask Ada\\u001b[31m');
    expect(text + JSON.stringify(json)).not.toContain('hush');
  });

  it('shows numbers, pools and waiting requests of a label', async () => {
    await world.pool(['small']);
    await world.node({ type: ['small'] });
    await world.node({ type: ['small'], state: 'in-use' });
    const request = await world.request({ node_types: ['small'] });
    const { text, json } = await described('label', 'small');
    expect(text).toContain('Served by cloud/main; 2 nodes; 1 request not fulfilled.');
    expect(text).toMatch(/^Nodes: +1 ready, 1 in-use$/m);
    expect(text).toMatch(new RegExp(`^Waiting requests:\n.*\n {2}${request} `, 'm'));
    expect(json).toMatchObject({ nodes: { ready: 1, 'in-use': 1 }, requests: 1, waiting: [{ id: request }] });
  });

  it('shows pools, images and nodes of a provider', async () => {
    await world.pool(['small']);
    await world.node({});
    await world.upload(await world.build('debian', 'a'.repeat(32)), 'cloud');
    const { text } = await described('provider', 'cloud');
    expect(text).toContain('1 pool registered; it is not in the configuration; 1 node.');
    expect(text).toMatch(/^Images:\n.*\n {2}debian +a{32} +\d{10} +ready/m);
  });

  it.each([
    ['node', '77', 'there is no node "0000000077": `nodepool list` shows those that exist'],
    ['label', 'smal', 'there is no label "smal": did you mean "small"?'],
    ['provider', 'clod', 'there is no provider "clod": did you mean "cloud"?'],
    ['request', '200-0000000009', 'there is no request "200-0000000009": `nodepool request-list` shows'],
  ])('rejects an unknown %s', async (kind, name, message) => {
    await world.pool(['small']);
    const { code, out } = await world.run('describe', kind, name);
    expect([code, out.printed]).toEqual([1, '']);
    expect(out.noted).toContain(message);
  });
});

describe('nodepool describe with launchers', () => {
  let server: Server;
  let documents: Record<string, unknown>;

  beforeEach(async () => {
    documents = {};
    server = createServer((request, response) => {
      const document = documents[request.url ?? ''];
      if (document === undefined) response.writeHead(404).end('there is no such page');
      else response.end(JSON.stringify(document));
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    await world.launcher({ host: '127.0.0.1', port: (server.address() as AddressInfo).port });
  });

  afterEach(async () => {
    server.close();
    await once(server, 'close');
  });

  it('adds the reason, the timeline and the decisions', async () => {
    const id = await world.request({});
    const now = world.clock.now() / 1000;
    documents[`/status/v1/request/${id}`] = {
      request: { id },
      summary: 'Waiting for a server to be deleted.',
      reason: { phase: 'limit', text: 'max-servers is 10', pool: 'cloud/main', since: now - 60, missing: '1 instance' },
      timeline: [{ phase: 'limit', from: now - 60, to: null, detail: 'max-servers', failed: false, by: 'cloud/main' }],
      nodes: [{ node: { id: '0000000007' }, timeline: [{ phase: 'creating', from: now - 2.5, to: now, by: 'cloud' }] }],
      decisions: [{ by: 'cloud/main', decision: 'waits', reason: 'no room', first: now - 60, last: now - 1, times: 3 }],
    };
    const { text, json } = await described('request', id);
    expect(text).toContain('  Waiting for a server to be deleted.');
    expect(text).toMatch(/^ {2}limit +00:00:01:00 +cloud\/main +max-servers is 10 +1 instance +127/m);
    expect(text).toMatch(/^ {2}\d{4}-\d\d-\d\d \d\d:\d\d:\d\d +limit +00:00:01:00 +cloud\/main +max-servers$/m);
    expect(text).toMatch(/ creating +2\.50 s +0000000007 +cloud$/m);
    expect(text).toMatch(/^ {2}00:00:00:01 +cloud\/main +waits +no room +3 +127/m);
    expect(json).toMatchObject({ reasons: [{ phase: 'limit', missing: '1 instance' }], decisions: [{ times: 3 }] });
  });

  it('shows a request that exists only in a launcher’s history', async () => {
    documents['/status/v1/request/200-0000000099'] = { request: { id: '200-0000000099' }, summary: 'Fulfilled.' };
    expect((await described('request', '200-0000000099')).text).toBe('request 200-0000000099\n  Fulfilled.');
  });

  it('shows a deleted node that a launcher remembers', async () => {
    const timeline = [{ phase: 'deleting', from: 1, to: 2.5, by: null }];
    documents['/status/v1/node/0000000001'] = { node: null, summary: 'The node is deleted.', timeline };
    const { text, json } = await described('node', '1');
    expect(text).toMatch(/^node 0000000001\n {2}The node is deleted\.\n/);
    expect(json['timeline']).toMatchObject([{ phase: 'deleting', seconds: 1.5 }]);
  });

  it('prefers the timeline of the launcher that recorded it', async () => {
    const id = await world.request({});
    const other = createServer((_request, response) =>
      response.end(
        JSON.stringify({
          ...{ request: { id }, summary: 'Waits for a limit.', reason: { phase: 'limit', pool: 'cloud/main' } },
          timeline: [{ phase: 'accepted', from: 1, to: 2, by: 'b' }],
        }),
      ),
    );
    other.listen(0, '127.0.0.1');
    await once(other, 'listening');
    await world.launcher({ host: '127.0.0.1', port: (other.address() as AddressInfo).port });
    documents[`/status/v1/request/${id}`] = {
      request: { id },
      summary: 'Ask the other launcher.',
      reason: { phase: 'elsewhere', text: 'ask the other launcher', pool: 'cloud/main' },
      timeline: [{ phase: 'elsewhere', from: 1, to: 2 }],
    };
    const { json, text } = await described('request', id);
    expect(json['timeline']).toMatchObject([{ phase: 'accepted', seconds: 1 }]);
    expect(json['reasons']).toMatchObject([{ phase: 'limit', pool: 'cloud/main' }]);
    expect(text).toMatch(/^request .*\n {2}Waits for a limit\.$/m);
    other.close();
    await once(other, 'close');
  });

  it('shows the health of a provider', async () => {
    await world.node({});
    const now = world.clock.now() / 1000;
    documents['/status/v1/provider/cloud'] = {
      provider: {
        name: 'cloud',
        state: 'unreachable',
        reason: 'connection refused',
        since: now - 5,
        lastError: { text: 'ECONNREFUSED', time: now, code: null },
        failures: [{ code: 'error.network', count: 4, text: 'refused', last: now }],
        usage: [{ resource: 'instances', used: 3, limit: 10 }],
      },
    };
    const { text } = await described('provider', 'cloud');
    expect(text).toMatch(/^ {2}unreachable +00:00:00:05 +connection refused +ECONNREFUSED/m);
    expect(text).toMatch(/^ {2}error\.network +4 /m);
    expect(text).toMatch(/^ {2}instances +3 +10 /m);
  });

  it('shows why pools cannot serve a label, in the words of the launchers that serve the pools', async () => {
    const trouble = { state: 'unreachable', reason: 'no answer', since: 0 } as const;
    await world.pool(['small'], { trouble });
    documents['/status/v1/label/small'] = {
      launcher: { hostname: 'nl01' },
      label: { name: 'small' },
      poolAnswers: [
        { pool: 'cloud/main', launcher: 'nl01', says: 'the cloud has no image "debian"; it has: ubuntu' },
        { pool: 'cloud/other', launcher: 'nl02', says: 'can serve it' },
      ],
    };
    const { text } = await described('label', 'small');
    expect(text).toMatch(/^ {2}cloud\/main +the cloud has no image "debian"; it has: ubuntu /m);
    expect(text).not.toContain('cloud/other');
    expect(text).toMatch(/^ {2}cloud\/main +host +launches no nodes; its provider is unreachable: no answer$/m);
  });
});

it('nodepool describe reaches a launcher on this machine, and one with an IPv6 address', () => {
  const component = { kind: 'launcher', state: 'running', version: '1', model_api: 0 } as const;
  const entries = [
    {
      path: 'a',
      session: 1n,
      component: { ...component, hostname: 'here', webapp: { host: 'here.example.org', port: 8005 } },
    },
    {
      path: 'b',
      session: 1n,
      component: { ...component, hostname: 'there', webapp: { host: 'there.example.org', port: 8006 } },
    },
    {
      path: 'c',
      session: 1n,
      component: { ...component, hostname: 'here', webapp: { host: '2001:db8::1', port: 8007 } },
    },
    { path: 'd', session: 1n, component: { ...component, hostname: 'old' } },
  ];
  expect(launcherUrls({ all: () => entries }, 'here')).toEqual([
    'http://[2001:db8::1]:8007',
    'http://localhost:8005',
    'http://there.example.org:8006',
  ]);
});

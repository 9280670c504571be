/** Tests of `/metrics` and `/explain`, as clients of the web endpoint see them. */

import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { DecisionLog, UNFULFILLED_REQUESTS } from '../src/index.js';
import { MetricsRegistry, openPrometheus } from '@nodepool/daemon';
import { silentLogger } from '@nodepool/core';
import type { Store } from '@nodepool/store';
import { createWebServer, type WebServer } from '../src/web/index.js';
import { Timelines } from '../src/timeline/timelines.js';
import { ManualClock, nodeEntry, pool, Records } from './fixtures.js';

let records: Records;
let decisions: DecisionLog;
let metrics: MetricsRegistry;
let server: WebServer;
let port: number;

beforeEach(async () => {
  records = new Records();
  const clock = new ManualClock();
  decisions = new DecisionLog({ clock });
  const prometheus = openPrometheus(() => undefined);
  metrics = new MetricsRegistry({ clock, statsd: undefined, prometheus, onError: () => undefined });
  const store: Store = records.asStore();
  const timelines = new Timelines({ store, clock, onError: () => undefined });
  const explain = {
    decisions,
    activity: () => [],
    timelines,
    queuePosition: () => undefined,
    readyTarget: () => undefined,
  };
  server = createWebServer({
    store,
    log: silentLogger,
    clock,
    isReady: () => true,
    metrics,
    explain,
  });
  ({ port } = await server.start({ port: 0, address: '127.0.0.1', otherAddress: '' }));
});

afterEach(() => server.stop());

function get(path: string, accept = '*/*'): Promise<Response> {
  return fetch(`http://127.0.0.1:${port}${path}`, { headers: { Connection: 'close', Accept: accept } });
}

it('/metrics has the format of Prometheus', async () => {
  metrics.set(UNFULFILLED_REQUESTS, { label: 'debian', state: 'requested' }, 3);
  const response = await get('/metrics');
  expect(response.headers.get('content-type')).toMatch(/^text\/plain; version=0\.0\.4/);
  expect(await response.text()).toContain('nodepool_unfulfilled_requests{label="debian",state="requested"} 3\n');
});

describe('/explain', () => {
  it('is text, and JSON for clients that accept it', async () => {
    records.nodes = [nodeEntry('0000000007', { connection_port: { token: 'hush' } })];
    records.pools = [pool('main', ['small'])];
    decisions.record('node', '0000000007', 'cloud/main', 'launch attempt 1 failed', 'no answer');
    const text = await (await get('/explain/node/0000000007')).text();
    expect(text).toMatch(/^node 0000000007\n {2}Ready, and free for any request\./);
    expect(text).toContain('cloud/main launch attempt 1 failed: no answer');
    const json = await (await get('/explain/node/0000000007', 'application/json')).text();
    expect(JSON.parse(json)).toMatchObject({
      kind: 'node',
      id: '0000000007',
      facts: { state: 'ready', provider: 'cloud' },
      decisions: [{ by: 'cloud/main', decision: 'launch attempt 1 failed', reason: 'no answer', times: 1 }],
    });
    expect(text + json).not.toContain('hush');
  });

  it('returns 404 for unknown subjects', async () => {
    const response = await get('/explain/node/0000000009');
    expect(response.status).toBe(404);
    expect(await response.text()).toContain('there is no node "0000000009"');
    expect((await get('/explain/elephant/1')).status).toBe(404);
  });

  it('reports unreadable records', async () => {
    records.complete = false;
    expect(await (await get('/explain/node/1')).text()).toContain('does not see all records at the moment');
  });

  it('accepts names with slashes and spaces', async () => {
    decisions.record('label', 'a/b c', 'cloud/main', 'out of service', 'no such image');
    records.pools = [];
    const answer = await get('/explain/label/a%2Fb%20c');
    expect(answer.status).toBe(200);
    expect(await answer.text()).toContain('cloud/main out of service: no such image');
  });
});

/** The endpoint of a daemon that waits for ZooKeeper: alive, and not ready. */

import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { silentLogger, VirtualClock } from '@nodepool/core/testing';
import { createWaitingEndpoint } from '../src/process/waiting-endpoint.js';
import type { HttpServer } from '../src/web/http-server.js';

let server: HttpServer;
let url: string;

beforeEach(async () => {
  const clock = new VirtualClock();
  server = createWaitingEndpoint({
    ...{ name: 'nodepool-gateway', clock, log: silentLogger },
    metrics: { exposition: () => Promise.resolve(undefined) },
    wait: () => ({ servers: ['zookeeper:2281'], since: clock.now(), reason: 'connection refused' }),
  });
  const { port } = await server.start({ port: 0, address: '127.0.0.1', otherAddress: '' });
  url = `http://127.0.0.1:${port}`;
});

afterEach(() => server.stop());

it('answers the probes of a process with 200, so that an orchestrator does not restart it', async () => {
  for (const path of ['/live', '/health']) expect([path, (await fetch(url + path)).status]).toEqual([path, 200]);
});

it('is not ready, and names the servers and the reason', async () => {
  for (const path of ['/ready', '/']) {
    const answer = await fetch(url + path);
    expect([path, answer.status]).toEqual([path, 503]);
    expect(await answer.text()).toMatch(/not connected to ZooKeeper: zookeeper:2281, .*: connection refused/);
  }
});

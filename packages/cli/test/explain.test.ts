import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { World } from './world.js';

let world: World;
let server: Server;
let url: string;
let asked: IncomingMessage[];
let answer: (response: ServerResponse) => void;

beforeEach(async () => {
  world = new World();
  await world.start();
  asked = [];
  server = createServer((request, response) => {
    asked.push(request);
    answer(response);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});

afterEach(async () => {
  if (server.listening) {
    server.close();
    await once(server, 'close');
  }
  await world.stop();
});

describe('nodepool explain', () => {
  it('prints what the launcher says', async () => {
    answer = (response) => response.end('request 200-0000000007\n  Requested.\n');
    const { code, out } = await world.run('explain', 'request', '200-0000000007', '--launcher', url);
    expect([code, out.printed.trim()]).toEqual([0, 'request 200-0000000007\n  Requested.']);
    expect(asked[0]).toMatchObject({ url: '/explain/request/200-0000000007' });
  });

  it('asks the launcher of the configuration unless told otherwise', async () => {
    answer = (response) => response.end('label small\n');
    await world.writeConfig(
      `zookeeper-servers: [{host: localhost, port: 2181}]\nwebapp: {port: ${new URL(url).port}}\nlabels: []\nproviders: []\n`,
    );
    const { code, out } = await world.run('explain', 'label', 'small');
    expect([code, out.printed.trim()]).toEqual([0, 'label small']);
  });

  it('asks several launchers, and is content when one of them knows', async () => {
    answer = (response) => {
      if (asked.length === 1) response.writeHead(404).end('there is no such node\n');
      else response.end('{"id":"0000000042"}');
    };
    const { code, out } = await world.run(
      'explain',
      'node',
      '42',
      '--launcher',
      url,
      '--launcher',
      url,
      '--format',
      'json',
    );
    expect(code).toBe(0);
    expect(JSON.parse(out.printed)).toEqual([{ id: '0000000042' }]);
    expect(asked.map((request) => request.url)).toEqual(['/explain/node/0000000042', '/explain/node/0000000042']);
    expect(asked[0]?.headers.accept).toBe('application/json');
  });

  it('says so when nobody knows it', async () => {
    answer = (response) => response.writeHead(404).end('there is no label "x"\n');
    const { code, out } = await world.run('explain', 'label', 'x', '--launcher', url);
    expect(code).toBe(1);
    expect(out.noted).toContain('there is no label "x"');
  });

  it('says which launcher cannot be asked, why, and what to do', async () => {
    server.close();
    await once(server, 'close');
    const { code, out } = await world.run('explain', 'label', 'x', '--launcher', url);
    expect(code).toBe(1);
    expect(out.noted).toContain(`the launcher at ${url} cannot be asked`);
    expect(out.noted).toContain('ECONNREFUSED');
    expect(out.noted).toContain('--launcher URL');
  });

  it.each(['nonsense', 'file:///etc/passwd'])('refuses to ask %s', async (launcher) => {
    const { code, out } = await world.run('explain', 'label', 'x', '--launcher', launcher);
    expect(code).toBe(1);
    expect(out.noted).toContain('http://localhost:8005');
  });
});

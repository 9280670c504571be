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
  it('prints the answer of the launcher', async () => {
    answer = (response) => response.end('request 200-0000000007\n  Requested.\n');
    const { code, out } = await world.run('explain', 'request', '200-0000000007', '--launcher', url);
    expect([code, out.printed.trim()]).toEqual([0, 'request 200-0000000007\n  Requested.']);
    expect(asked[0]).toMatchObject({ url: '/explain/request/200-0000000007' });
  });

  it('finds the launchers in the registry, and reports those without an answer', async () => {
    answer = (response) => response.end('label small\n');
    await world.launcher({ host: '127.0.0.1', port: Number(new URL(url).port) });
    await world.launcher({ host: '127.0.0.1', port: 1 });
    const { code, out } = await world.run('explain', 'label', 'small');
    expect([code, out.printed.trim()]).toEqual([0, 'label small']);
    expect(out.noted).toContain('the launcher at http://127.0.0.1:1 cannot be asked: ');
  });

  it.each([[], [{ host: '127.0.0.1', port: 1 }]])(
    'answers from ZooKeeper alone without a launcher: %j',
    async (...webapps) => {
      for (const webapp of webapps) await world.launcher(webapp);
      await world.pool(['small']);
      const id = await world.request({ node_types: ['small', 'small'] });
      const { code, out } = await world.run('explain', 'request', id);
      expect([code, out.printed.split('\n').slice(0, 2)]).toEqual([
        0,
        [`request ${id}`, '  Waiting: cloud/main can serve it.'],
      ]);
      expect(out.noted).toContain('this is what ZooKeeper knows; the decisions of launchers are missing');
      const json: unknown = JSON.parse((await world.run('explain', 'request', id, '-o', 'json')).out.printed);
      expect(json).toMatchObject([{ kind: 'request', name: id, state: 'requested', pools: [{ pool: 'cloud/main' }] }]);
    },
  );

  it('rejects a subject that is unknown to launchers and ZooKeeper, with a suggestion', async () => {
    answer = (response) => response.writeHead(404).end('there is no label "smal"\n');
    await world.launcher({ host: '127.0.0.1', port: Number(new URL(url).port) });
    const { code, out } = await world.run('explain', 'label', 'smal');
    expect([code, out.printed]).toEqual([1, '']);
    expect(out.noted).toContain('there is no label "smal": did you mean "small"?');
  });

  it('escapes control characters in launchers’ answers', async () => {
    answer = (response) => response.end('label \u001b[2Jsmall\u009b\n  ok\n');
    const { out } = await world.run('explain', 'label', 'small', '--launcher', url);
    expect(out.printed).toBe('label  [2Jsmall \n  ok');
  });

  it('queries several launchers, and succeeds when one of them has an answer', async () => {
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

  it('reports an unknown object', async () => {
    answer = (response) => response.writeHead(404).end('there is no label "x"\n');
    const { code, out } = await world.run('explain', 'label', 'x', '--launcher', url);
    expect(code).toBe(1);
    expect(out.noted).toContain('there is no label "x"');
  });

  it('reports an unreachable launcher with the reason and a remedy', async () => {
    server.close();
    await once(server, 'close');
    const { code, out } = await world.run('explain', 'label', 'x', '--launcher', url);
    expect(code).toBe(1);
    expect(out.noted).toContain(`the launcher at ${url} cannot be asked`);
    expect(out.noted).toContain('ECONNREFUSED');
    expect(out.noted).toContain('--launcher URL');
  });

  it.each(['nonsense', 'file:///etc/passwd'])('rejects the launcher %s', async (launcher) => {
    const { code, out } = await world.run('explain', 'label', 'x', '--launcher', launcher);
    expect(code).toBe(1);
    expect(out.noted).toContain('http://localhost:8005');
  });
});

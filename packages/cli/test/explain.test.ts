/** `nodepool explain`, with launchers that answer and without. */

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
    answer = (response) => response.end('{"summary":"Requested."}');
    const { code, out } = await world.run('explain', 'request', '200-0000000007', '--launcher', url);
    expect([code, out.printed.trim()]).toEqual([0, 'request 200-0000000007\n  Requested.']);
    expect(asked[0]).toMatchObject({ url: '/explain/request/200-0000000007' });
  });

  it('finds the launchers in the registry, and reports those without an answer', async () => {
    answer = (response) => response.end('{"summary":"Served."}');
    await world.launcher({ host: '127.0.0.1', port: Number(new URL(url).port) });
    await world.launcher({ host: '127.0.0.1', port: 1 });
    const { code, out } = await world.run('explain', 'label', 'small');
    expect([code, out.printed]).toEqual([0, 'label small\n  Served.']);
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
    answer = (response) => response.end(JSON.stringify({ summary: 'a\u001b[2Jb\u009bc\nlabel forged' }));
    const { out } = await world.run('explain', 'label', 'small', '--launcher', url);
    expect(out.printed.split('\n')[1]).toBe('  a\\u001b[2Jb\\u009bc\\nlabel forged');
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

  it('prints what several launchers say once, and each pool as its own launcher describes it', async () => {
    const of = (launcher: number): object => {
      const last = world.clock.now() / 1000 - launcher;
      return {
        summary: launcher === 1 ? 'Pending. Last decision here: a/main: accepted.' : 'Pending.',
        facts: { state: 'pending' },
        pools: [
          { pool: 'a/main', launcher: 'nl1', own: launcher === 1, says: launcher === 1 ? 'works on it' : 'has it' },
          { pool: 'b/main', launcher: 'nl1', own: launcher === 2, says: launcher === 2 ? 'is full' : 'has it' },
          { pool: 'c/main', launcher: 'nl3', own: false, says: 'has it' },
        ],
        timeline: [
          { phase: launcher === 1 ? 'creating' : 'elsewhere', from: 1, seconds: 2, lasts: false, failed: true },
        ],
        decisions: [{ by: launcher === 1 ? 'a/main' : 'b/main', decision: 'saw it', first: last, last, times: 1 }],
      };
    };
    answer = (response) => response.end(JSON.stringify(of(asked.at(-1)?.url?.startsWith('/1/') === true ? 1 : 2)));
    const launchers = ['--launcher', `${url}/1`, '--launcher', `${url}/2`];
    const { out } = await world.run('explain', 'request', '200-1', ...launchers);
    expect(out.printed.split('\n').map((line) => line.trimEnd())).toEqual([
      'request 200-1',
      '  Pending. Last decision here: a/main: accepted.',
      '',
      'state: pending',
      '',
      'Answers of pools:',
      '  POOL    ANSWER       LAUNCHER',
      '  a/main  works on it  nl1',
      '  c/main  has it       nl3',
      '  b/main  is full      nl1',
      '',
      'Timeline:',
      '  FROM (UTC)           PHASE     DURATION  FAILED',
      '  1970-01-01 00:00:01  creating  2.00 s    yes',
      '',
      'Decisions:',
      '  AGE          BY      DECISION  TIMES  LAUNCHER',
      expect.stringMatching(/^ {2}00:00:00:02 {2}b\/main {2}saw it +1 +127.0.0.1:/),
      expect.stringMatching(/^ {2}00:00:00:01 {2}a\/main {2}saw it +1 +127.0.0.1:/),
    ]);
  });

  it('prints complete reasons on a narrow terminal', async () => {
    const says = 'the cloud has no image "debian"; it has: ubuntu and others';
    answer = (response) =>
      response.end(JSON.stringify({ pools: [{ pool: 'a/main', launcher: 'nl1', own: true, says }] }));
    world.terminal = { columns: 40, rows: 20 };
    expect((await world.run('explain', 'label', 'small', '--launcher', url)).out.printed).toContain(says);
  });

  it('names the launcher of a summary that says something else', async () => {
    answer = (response) => {
      const summary = asked.at(-1)?.url?.startsWith('/1/') === true ? 'Waits.' : 'Pending.';
      const decision = { by: 'a/main', decision: 'saw it', reason: null, first: 1, last: 1, times: 1 };
      response.end(JSON.stringify({ summary, decisions: [decision] }));
    };
    const launchers = ['--launcher', `${url}/1`, '--launcher', `${url}/2`];
    const { out } = await world.run('explain', 'request', '200-1', ...launchers);
    const [, summary, , ...others] = out.printed.split('\n').map((line) => line.trim());
    expect([summary, others[0], others[2]]).toEqual(['Waits.', 'Other launchers:', `${new URL(url).host}  Pending.`]);
  });

  it('recognizes another program at the web endpoint', async () => {
    answer = (response) => response.end('<h1>It works!</h1>');
    const { code, out } = await world.run('explain', 'label', 'small', '--launcher', url);
    expect([code, out.noted]).toEqual([
      1,
      `nodepool: the launcher at ${url} did not answer with JSON; is it another program?`,
    ]);
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
    expect(code).toBe(2);
    expect(out.noted).toContain('http://localhost:8005');
  });
});

import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { request, type ClientRequest, type IncomingMessage } from 'node:http';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { empty, PageServer } from '../src/index.js';

let server: PageServer;
let open: ClientRequest[];

beforeEach(async () => {
  open = [];
  server = new PageServer();
  await server.start();
  await empty(server);
});

afterEach(async () => {
  for (const each of open) each.destroy();
  await server.close();
});

interface Message {
  readonly time: number;
  readonly sections: Readonly<Record<string, unknown>>;
}

/** A viewer and the events that it has received. */
class Viewer {
  private text = '';
  private readonly listeners = new Set<() => void>();

  constructor(readonly response: IncomingMessage) {
    response.setEncoding('utf8');
    response.on('data', (chunk: string) => {
      this.text += chunk;
      for (const listener of this.listeners) listener();
    });
    // The server may close the connection before the end.
    response.on('error', () => undefined);
  }

  get messages(): Message[] {
    return [...this.text.matchAll(/^data: (.*)\n\n/gm)].map(([, data = '']) => JSON.parse(data) as Message);
  }

  /** Resolves with all messages when there are at least `count`. */
  async received(count: number): Promise<Message[]> {
    while (this.messages.length < count) {
      await new Promise<void>((resolve) => {
        const listener = (): void => {
          this.listeners.delete(listener);
          resolve();
        };
        this.listeners.add(listener);
      });
    }
    return this.messages;
  }
}

async function openViewer(view = 'overview'): Promise<Viewer> {
  return new Promise((resolve, reject) => {
    const sent = request(`${server.url}status/events?view=${encodeURIComponent(view)}`, (response) =>
      resolve(new Viewer(response)),
    );
    sent.on('error', reject);
    sent.end();
    open.push(sent);
  });
}

/** Requests the stream without reading it. Resolves once the answer has begun. */
async function openUnreadStream(): Promise<Socket> {
  const { hostname, port } = new URL(server.url);
  const socket = connect(Number(port), hostname);
  socket.on('error', () => undefined);
  socket.write('GET /status/events HTTP/1.1\r\nHost: nodepool\r\n\r\n');
  await once(socket, 'readable');
  return socket;
}

/** Resolves with true once the server has closed the connection. */
async function isClosed(socket: Socket): Promise<boolean> {
  socket.resume();
  if (!socket.destroyed) await once(socket, 'close');
  return socket.destroyed;
}

describe('the stream of the status page', () => {
  it('sends all sections first, and then the changed ones', async () => {
    const viewer = await openViewer();
    const [first] = await viewer.received(1);
    expect(Object.keys(first?.sections ?? {}).sort()).toEqual(
      [
        ...[
          'costs',
          'failures',
          'history',
          'labels',
          'launcher',
          'missing',
          'nodes',
          'problems',
          'providers',
          'reasons',
        ],
        ...['presentStep', 'requests', 'toNode'],
      ].sort(),
    );
    await server.put('requests/100-', { state: 'requested', state_time: server.now, node_types: ['small'] }, true);
    await server.clock.advance(1000);
    const [, second] = await viewer.received(2);
    expect(Object.keys(second?.sections ?? {}).sort()).toEqual([...['labels', 'launcher', 'reasons', 'requests']]);
    expect(second?.time).toBe(server.now);
    // The missing pool is a problem a little later, without another change.
    await server.clock.advance(10_000);
    const [, , heartbeat, later] = await viewer.received(4);
    expect(heartbeat?.sections).toEqual({});
    expect(Object.keys(later?.sections ?? {})).toEqual(expect.arrayContaining(['launcher', 'problems']));
  });

  it('does not repeat the history when a launch ends', async () => {
    const viewer = await openViewer();
    await viewer.received(1);
    const ended = server.clock.now();
    const attempt = { node: '1', number: 1, pool: 'cloud/main', label: 'small', offer: '', ended, error: undefined };
    server.recorder.timelines.events.attempted.emit({ provider: 'cloud', attempt });
    await server.clock.advance(1000);
    const [, second] = await viewer.received(2);
    expect(Object.keys(second?.sections ?? {})).toEqual(['presentStep']);
    expect(second?.sections['presentStep']).toMatchObject([{ launches: 1, failures: 0 }]);
  });

  it('sends an empty message every five seconds if nothing changes', async () => {
    const viewer = await openViewer();
    await viewer.received(1);
    await server.clock.advance(5000);
    const [, second] = await viewer.received(2);
    expect(second?.sections).toEqual({});
    expect(viewer.messages).toHaveLength(2);
  });

  it('computes nothing without viewers, and once for any number of viewers', async () => {
    let made = 0;
    Object.defineProperty(server, 'problems', { get: () => ((made += 1), []) });
    await server.clock.advance(60_000);
    expect(made).toBe(0);
    const viewers = [await openViewer(), await openViewer(), await openViewer()];
    for (const viewer of viewers) await viewer.received(1);
    expect(made).toBe(1);
    await server.clock.advance(3000);
    expect(made).toBe(4);
  });

  it('sends the requested view', async () => {
    await server.put('nodes/', { state: 'ready', state_time: server.now, provider: 'cloud', type: ['small'] }, true);
    const [nodes] = await (await openViewer('nodes?state=ready')).received(1);
    expect(nodes?.sections).toMatchObject({ paging: { matching: 1 }, missing: false, launcher: { nodes: 1 } });
    const [node] = await (await openViewer('node/0000000007')).received(1);
    expect(node?.sections).toMatchObject({ missing: true });
  });

  it('refuses unknown views, and unknown parameters of a view', async () => {
    expect((await openViewer('secrets')).response.statusCode).toBe(404);
    expect((await openViewer('node')).response.statusCode).toBe(404);
    expect((await openViewer('nodes?colour=red')).response.statusCode).toBe(400);
    expect((await openViewer('nodes?state=ready&state=used')).response.statusCode).toBe(400);
    expect((await openViewer('x'.repeat(3000))).response.statusCode).toBe(400);
  });

  it('ends with the web endpoint', async () => {
    const viewer = await openViewer();
    await viewer.received(1);
    const ended = new Promise((resolve) => viewer.response.on('close', resolve));
    await server.stop();
    await ended;
    expect(viewer.response.destroyed).toBe(true);
  });

  it('refuses the viewer above the limit, which can poll instead', async () => {
    const viewers = await Promise.all(Array.from({ length: 100 }, () => openViewer()));
    await Promise.all(viewers.map((viewer) => viewer.received(1)));
    const refused = await openViewer();
    expect(refused.response.statusCode).toBe(503);
    const answer = (await (await fetch(`${server.url}status/now`)).json()) as Message;
    expect(answer.sections).toHaveProperty('requests');
  });

  it('serves new viewers although a hundred viewers never read', async () => {
    const silent = await Promise.all(Array.from({ length: 100 }, openUnreadStream));
    await server.clock.advance(10_000);
    const viewers = [await openViewer(), await openViewer()];
    for (const viewer of viewers) expect((await viewer.received(1))[0]?.sections).toHaveProperty('requests');
    expect(await Promise.all(silent.slice(0, 2).map(isClosed))).toEqual([true, true]);
    expect(silent[2]?.destroyed).toBe(false);
    for (const socket of silent) socket.destroy();
  });

  it('computes the answer to polling viewers at most once a second', async () => {
    let made = 0;
    Object.defineProperty(server, 'problems', { get: () => ((made += 1), []) });
    const ask = (): Promise<Response> => fetch(`${server.url}status/now`);
    await Promise.all([ask(), ask(), ask()]);
    expect(made).toBe(1);
    await server.clock.advance(1000);
    await ask();
    expect(made).toBe(2);
  });
});

describe('the files of the status page', () => {
  it('have a policy that allows only their own origin, and an ETag', async () => {
    const response = await fetch(server.url);
    expect(response.headers.get('content-type')).toBe('text/html; charset=UTF-8');
    expect(response.headers.get('content-security-policy')).toContain("default-src 'none'; script-src 'self'");
    const again = await fetch(server.url, { headers: { 'If-None-Match': response.headers.get('etag') ?? '' } });
    expect(again.status).toBe(304);
  });

  it('are the only files below /status', async () => {
    expect((await fetch(`${server.url}status/app.js`)).status).toBe(200);
    for (const name of ['nothing.js', '..%2Findex.js', '%2e%2e%2fpackage.json', 'app.d.ts']) {
      expect((await fetch(`${server.url}status/${name}`)).status).toBe(404);
    }
  });
});

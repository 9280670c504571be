/** The client at servers that answer late, wrongly or not at all. */

import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { openConnection } from '../../src/client/connection.js';
import { connect, type ClientOptions, type ZooKeeper } from '../../src/index.js';
import {
  answer,
  FakeServer,
  message,
  PASSWORD,
  SESSION_ID,
  writeStat,
  type FakeConnection,
  type Received,
} from './fake-server.js';
import { errorOf, eventOf, turn } from './helpers.js';

const GET = 4;
const SET = 5;
const SET_WATCHES = 101;
const SET_WATCHES_2 = 105;
const PING = 11;
const CLOSE = -11;
const PING_XID = -2;
const SET_WATCHES_XID = -8;
const THROTTLED = -127;

let server: FakeServer;
let clients: ZooKeeper[];

beforeEach(async () => {
  server = await FakeServer.listen();
  clients = [];
});

afterEach(async () => {
  await server.close();
  await Promise.all(clients.map((client) => client.close()));
});

function client(options: Partial<ClientOptions> = {}): ZooKeeper {
  const made = connect({ servers: server.address, connectTimeoutMs: 5000, reconnectDelayMs: [1, 2], ...options });
  clients.push(made);
  return made;
}

/** Returns a client with a session at the fake server. */
async function pair(options?: Partial<ClientOptions>): Promise<{ zk: ZooKeeper; peer: FakeConnection }> {
  const zk = client(options);
  const peer = await server.session();
  await zk.connected();
  return { zk, peer };
}

function replyToGet(peer: FakeConnection, { xid }: Received, text: string, zxid = 7n): void {
  peer.socket.write(getAnswer(xid, text, zxid));
}

function getAnswer(xid: number, text: string, zxid = 7n): Buffer {
  return answer(xid, zxid, 0, (writer) => {
    writer.buffer(Buffer.from(text));
    writeStat(writer, 3);
  });
}

describe('the client', () => {
  it('parses answers that arrive byte by byte', async () => {
    const { zk, peer } = await pair();
    peer.socket.setNoDelay(true);
    const got = zk.get('/a');
    for (const byte of getAnswer((await peer.next()).xid, 'hello')) {
      peer.socket.write(Buffer.of(byte));
      await turn();
    }
    expect(Buffer.from((await got).data).toString()).toBe('hello');
    expect((await got).stat.version).toBe(3);
  });

  it('drops the connection and fails the pending call on an answer to an unknown request', async () => {
    const { zk, peer } = await pair();
    const warned = eventOf(zk, 'warning');
    const error = errorOf(zk.get('/a'));
    const { xid } = await peer.next();
    peer.reply(xid + 5, 7n, 0);
    expect(await error).toMatchObject({ code: 'protocol', outcome: 'not-applied' });
    expect((await warned)[0].message).toContain(`answered request ${xid + 5}`);
    await peer.closed();
    await server.session();
    await eventOf(zk, 'resumed');
    expect(zk.session?.id).toBe(SESSION_ID);
  });

  it('drops the connection on an answer without a request', async () => {
    const { zk, peer } = await pair();
    const warned = eventOf(zk, 'warning');
    peer.reply(99, 7n, 0);
    expect((await warned)[0]).toMatchObject({ code: 'protocol' });
  });

  it('reports a short answer as unreadable for a read, and as an unknown outcome for a write', async () => {
    const { zk, peer } = await pair();
    const read = errorOf(zk.get('/a'));
    peer.reply((await peer.next()).xid, 7n, 0, (writer) => writer.int(1000));
    expect(await read).toMatchObject({ code: 'protocol' });
    const next = await server.session();
    const write = errorOf(zk.set('/a', Buffer.of(1)));
    next.reply((await next.next()).xid, 7n, 0);
    expect(await write).toMatchObject({ code: 'outcome-unknown', cause: { code: 'protocol' } });
  });

  it('fails a call whose answer is too large without a retry', async () => {
    const { zk, peer } = await pair({ maxAnswerBytes: 100 });
    const error = errorOf(zk.get('/a'));
    replyToGet(peer, await peer.next(), 'x'.repeat(100));
    expect(await error).toMatchObject({ code: 'protocol', message: expect.stringContaining('at most 100') });
  });

  it('tries another connection after garbage', async () => {
    const zk = client();
    const warned = eventOf(zk, 'warning');
    (await server.connection()).socket.write('HTTP/1.1 400 Bad Request\r\n\r\n');
    expect((await warned)[0]).toMatchObject({ code: 'protocol' });
    await server.session();
    expect((await zk.connected()).id).toBe(SESSION_ID);
  });

  it('tries another connection when the server sends nothing', async () => {
    const other = await FakeServer.listen();
    const zk = client({ servers: [server.address, other.address], connectTimeoutMs: 50 });
    const warned = eventOf(zk, 'warning');
    const silent = await Promise.race([server.connection(), other.connection()]);
    expect((await warned)[0].message).toContain('no session was confirmed within 50 ms');
    await silent.closed();
    const peer = await Promise.race([server.session(), other.session()]);
    await zk.connected();
    peer.socket.destroy();
    await other.close();
  });

  it('drops a silent connection before the session expires', async () => {
    const zk = client({ sessionTimeoutMs: 600 });
    const peer = await server.session();
    const session = await zk.connected();
    const [warning] = await eventOf(zk, 'warning');
    expect(warning.message).toMatch(/no byte arrived for/);
    expect([zk.state, session.confirmed, session.lost.aborted]).toEqual(['suspended', false, false]);
    await peer.closed();
    await server.session();
    await eventOf(zk, 'resumed');
    expect(zk.session).toBe(session);
  });
});

describe('a connection', () => {
  it('that was closed while a message was handled passes on none of the messages behind it', async () => {
    const [ip, port] = server.address.split(':') as [string, string];
    const received: string[] = [];
    const connection = openConnection({ ip, host: ip, port: Number(port) }, undefined, 100, {
      onOpen: () => undefined,
      onBytes: () => undefined,
      onFrame: (bytes, start, end) => {
        received.push(bytes.toString('utf8', start, end));
        connection.destroy();
      },
      onEnd: () => undefined,
    });
    const peer = await server.connection();
    peer.socket.write(Buffer.concat(['a', 'b'].map((text) => message((writer) => writer.bytes(Buffer.from(text))))));
    await peer.closed();
    expect(received).toEqual(['a']);
  });
});

describe('a connection that is lost', () => {
  it('is followed by one that resumes the session with the last seen transaction', async () => {
    const { zk, peer } = await pair();
    const got = zk.get('/a');
    replyToGet(peer, await peer.next(), 'x', 42n);
    await got;
    peer.socket.destroy();
    const request = await (await server.connection()).connectRequest();
    expect(request).toMatchObject({ sessionId: SESSION_ID, lastZxid: 42n });
    expect(request.password.equals(PASSWORD)).toBe(true);
  });

  it('leaves the outcome of sent writes unknown, and repeats reads', async () => {
    const { zk, peer } = await pair();
    const write = errorOf(zk.set('/a', Buffer.of(1)));
    const got = zk.get('/b');
    expect([(await peer.next()).opcode, (await peer.next()).opcode]).toEqual([SET, GET]);
    peer.socket.destroy();
    expect(await write).toMatchObject({ code: 'outcome-unknown', outcome: 'unknown', operation: 'set', path: '/a' });
    const next = await server.session();
    const again = await next.next();
    expect([again.opcode, again.body.text()]).toEqual([GET, '/b']);
    replyToGet(next, again, 'late');
    expect(Buffer.from((await got).data).toString()).toBe('late');
  });

  it('keeps the order of unsent calls behind repeated reads', async () => {
    const { zk, peer } = await pair();
    const calls = [zk.get('/1')];
    await peer.next();
    const suspended = eventOf(zk, 'state');
    peer.socket.destroy();
    await suspended;
    calls.push(zk.get('/2'), zk.get('/3'));
    const next = await server.session();
    for (const path of ['/1', '/2', '/3']) {
      const request = await next.next();
      expect(request.body.text()).toBe(path);
      replyToGet(next, request, path);
    }
    expect((await Promise.all(calls)).map(({ data }) => Buffer.from(data).toString())).toEqual(['/1', '/2', '/3']);
  });

  it('is followed by setting the watches again before other requests', async () => {
    const { zk, peer } = await pair();
    const got = zk.get('/one', { watch: () => undefined });
    replyToGet(peer, await peer.next(), 'x', 42n);
    await got;
    peer.socket.destroy();
    const late = zk.get('/late');
    const next = await server.session();
    const { xid, opcode, body } = await next.next();
    expect([xid, opcode, body.long()]).toEqual([SET_WATCHES_XID, SET_WATCHES, 42n]);
    expect([body.texts(), body.texts(), body.texts()]).toEqual([['/one'], [], []]);
    replyToGet(next, await next.next(), 'x');
    await late;
  });

  it('sets persistent watches again with their mode, and notifies their listeners once confirmed', async () => {
    const { zk, peer } = await pair({ chroot: '/root' });
    const resets: string[] = [];
    zk.watch('/tree', 'persistent-recursive', { onEvent: () => undefined, onReset: () => resets.push('tree') });
    zk.watch('/', 'persistent', { onEvent: () => undefined, onReset: () => resets.push('root') });
    await peer.next();
    peer.socket.destroy();
    const next = await server.session();
    const { opcode, body } = await next.next();
    body.long();
    const lists = Array.from({ length: 5 }, () => body.texts());
    expect([opcode, lists]).toEqual([SET_WATCHES_2, [[], [], [], ['/root'], ['/root/tree']]]);
    expect(resets).toEqual([]);
    next.reply(SET_WATCHES_XID, 7n, 0);
    const got = zk.get('/x');
    replyToGet(next, await next.next(), 'x');
    await got;
    expect(resets).toEqual(['tree', 'root']);
  });

  it('is replaced by another one if the server does not set the watches again', async () => {
    const { zk, peer } = await pair();
    const events: string[] = [];
    zk.watch('/tree', 'persistent-recursive', { onEvent: () => undefined, onReset: () => events.push('reset') });
    peer.reply((await peer.next()).xid, 7n, 0);
    const got = zk.get('/one', { watch: ({ type }) => events.push(type) });
    replyToGet(peer, await peer.next(), 'x', 42n);
    await got;
    peer.socket.destroy();
    const throttled = await server.session();
    await throttled.next();
    const warned = eventOf(zk, 'warning', ({ message }) => message.includes('watches'));
    throttled.reply(SET_WATCHES_XID, 43n, THROTTLED);
    expect((await warned)[0]).toMatchObject({ code: 'connection-lost', cause: { code: 'throttled' } });

    const next = await server.session();
    const { opcode, body } = await next.next();
    expect([opcode, body.long(), body.texts()]).toEqual([SET_WATCHES_2, 42n, ['/one']]);
    expect(events).toEqual(['reset']);
    next.reply(SET_WATCHES_XID, 43n, 0);
    const read = zk.get('/x');
    replyToGet(next, await next.next(), 'x');
    await read;
    expect(events).toEqual(['reset', 'reset']);
  });
});

describe('a session', () => {
  it('that the server reports as expired is replaced, and the new one starts without a last transaction', async () => {
    const { zk, peer } = await pair();
    const got = zk.get('/a', { watch: (event) => events.push(event.type) });
    const events: string[] = [];
    replyToGet(peer, await peer.next(), 'x', 42n);
    await got;
    const old = zk.session;
    const lost = eventOf(zk, 'lost');
    peer.socket.destroy();
    const refused = await server.connection();
    await refused.connectRequest();
    refused.grant(0, 0n);
    const [session, error] = await lost;
    expect(session).toBe(old);
    expect([error.code, session.lost.aborted, session.confirmed, zk.state]).toEqual([
      'session-lost',
      true,
      false,
      'connecting',
    ]);
    expect(events).toEqual(['watch-removed']);
    const request = await (await server.connection()).handshake();
    expect([request.sessionId, request.lastZxid]).toEqual([0n, 0n]);
    expect(await zk.connected()).not.toBe(session);
  });

  it('is lost by the client’s own clock while no server can be reached', async () => {
    const { zk, peer } = await pair({ sessionTimeoutMs: 300 });
    const { session } = zk;
    const lost = eventOf(zk, 'lost');
    await server.close();
    peer.socket.destroy();
    const [, error] = await lost;
    expect(error.message).toContain('no server has confirmed it');
    expect([session?.lost.aborted, zk.session, zk.state]).toEqual([true, undefined, 'connecting']);
  });

  it('is kept alive by pings when the server is silent for longer than the timeout', async () => {
    const { zk, peer } = await pair({ sessionTimeoutMs: 900 });
    const { session } = zk;
    // One ping per third of the timeout.
    for (let count = 0; count < 4; count++) {
      const { xid, opcode } = await peer.next();
      expect([xid, opcode]).toEqual([PING_XID, PING]);
      peer.reply(PING_XID, 7n, 0);
    }
    expect([zk.session === session, session?.confirmed, zk.counters.connects]).toEqual([true, true, 1]);
  });

  it('is rejected when the server resumes a different one', async () => {
    const { zk, peer } = await pair();
    peer.socket.destroy();
    const other = await server.connection();
    const warned = eventOf(zk, 'warning', (error) => error.message.includes('another session'));
    await other.connectRequest();
    other.grant(10_000, 99n);
    expect((await warned)[0]).toMatchObject({ code: 'protocol' });
  });

  it('is not opened with rejected credentials, which closes the client', async () => {
    const zk = client({ auth: [{ scheme: 'digest', auth: 'user:wrong' }] });
    const peer = await server.session();
    const pending = errorOf(zk.get('/a'));
    const closed = eventOf(zk, 'state', (state) => state === 'closed');
    const { opcode, xid, body } = await peer.next();
    expect([opcode, xid, body.int(), body.text(), body.buffer().toString()]).toEqual([
      100,
      -4,
      0,
      'digest',
      'user:wrong',
    ]);
    peer.reply(xid, 0n, -115);
    await closed;
    expect(await pending).toMatchObject({ code: 'auth-failed' });
    expect(await errorOf(zk.get('/b'))).toMatchObject({ code: 'auth-failed' });
  });

  it('is closed at the server when the client closes, and pending calls fail', async () => {
    const { zk, peer } = await pair();
    const session = zk.session;
    const read = errorOf(zk.get('/a'));
    const write = errorOf(zk.set('/a', Buffer.of(1)));
    await peer.next();
    const unsent = errorOf(zk.set('/b', Buffer.of(1)));
    const closed = zk.close();
    expect([(await read).code, (await write).code, (await unsent).code]).toEqual([
      'closed',
      'outcome-unknown',
      'closed',
    ]);
    expect([session?.lost.aborted, zk.state, zk.session]).toEqual([true, 'closed', undefined]);
    await peer.next();
    const closeRequest = await peer.next();
    expect(closeRequest.opcode).toBe(CLOSE);
    peer.reply(closeRequest.xid, 8n, 0);
    await closed;
    await zk.close();
  });
});

describe('a call', () => {
  it('reports a timeout before and after it was sent', async () => {
    const { zk, peer } = await pair();
    const [read, write] = [
      errorOf(zk.get('/a', { timeoutMs: 20 })),
      errorOf(zk.set('/a', Buffer.of(1), { timeoutMs: 20 })),
    ];
    expect(await read).toMatchObject({
      code: 'timeout',
      path: '/a',
      message: expect.stringContaining('for the answer'),
    });
    expect(await write).toMatchObject({ code: 'outcome-unknown', cause: { code: 'timeout' } });
    const suspended = eventOf(zk, 'state');
    peer.socket.destroy();
    await suspended;
    const unsent = await errorOf(zk.set('/a', Buffer.of(1), { timeoutMs: 20 }));
    expect(unsent).toMatchObject({ code: 'timeout', outcome: 'not-applied' });
    expect(unsent.message).toContain('last problem: ');
  });

  it('that timed out does not affect the answers of other calls', async () => {
    const { zk, peer } = await pair();
    const early = errorOf(zk.get('/early', { timeoutMs: 20 }));
    const late = zk.get('/late');
    const [first, second] = [await peer.next(), await peer.next()];
    await early;
    replyToGet(peer, first, 'early');
    replyToGet(peer, second, 'late');
    expect(Buffer.from((await late).data).toString()).toBe('late');
  });

  it('is never sent when it is aborted before that; an aborted write that was sent has an unknown outcome', async () => {
    const { zk, peer } = await pair();
    const controller = new AbortController();
    const sent = errorOf(zk.set('/sent', Buffer.of(1), { signal: controller.signal }));
    await peer.next();
    const unsent = errorOf(zk.set('/unsent', Buffer.of(1), { signal: controller.signal }));
    controller.abort(new Error('enough'));
    expect(await unsent).toMatchObject({ code: 'aborted', outcome: 'not-applied', cause: { message: 'enough' } });
    expect(await sent).toMatchObject({ code: 'outcome-unknown' });
    void zk.get('/next').catch(() => undefined);
    expect((await peer.next()).body.text()).toBe('/next');
  });

  it('fails when the session that it is bound to is lost', async () => {
    const { zk, peer } = await pair({ sessionTimeoutMs: 300 });
    const suspended = eventOf(zk, 'state');
    peer.socket.destroy();
    await suspended;
    const error = await errorOf(zk.create('/a', undefined, { signal: zk.session!.lost }));
    expect(error).toMatchObject({ code: 'session-lost', outcome: 'not-applied' });
  });

  it('with an invalid path or a too large request is rejected before it is sent', async () => {
    const { zk, peer } = await pair();
    for (const path of ['', 'a', '/a/', '//', '/a/../b', '/\u0000', '/\u{1f600}']) {
      expect(await errorOf(zk.get(path))).toMatchObject({ code: 'invalid-argument' });
    }
    const tooLarge = await errorOf(zk.set('/a', Buffer.alloc(0xfffff)));
    expect(tooLarge).toMatchObject({ code: 'invalid-argument', operation: 'set', path: '/a' });
    expect(tooLarge.message).toMatch(/has 1048597 bytes/);
    void zk.get('/next').catch(() => undefined);
    expect((await peer.next()).body.text()).toBe('/next');
    expect([zk.counters.requests, zk.counters.writes, zk.counters.inFlight]).toEqual([{ get: 1 }, 0, 1]);
  });
});

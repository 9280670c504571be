/** Side connections and the change of servers, on fake servers. */

import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { connect, type ClientOptions, type ConnectionState, type ZooKeeper } from '../../src/index.js';
import { FakeServer, PASSWORD, SESSION_ID, writeStat, type FakeConnection } from './fake-server.js';
import { errorOf, eventOf } from './helpers.js';

const CLOSE = -11;

let server: FakeServer;
let other: FakeServer;
let clients: ZooKeeper[];

beforeEach(async () => {
  [server, other] = await Promise.all([FakeServer.listen(), FakeServer.listen()]);
  clients = [];
});

afterEach(async () => {
  await Promise.all([server.close(), other.close()]);
  await Promise.all(clients.map((client) => client.close()));
});

async function pair(options: Partial<ClientOptions> = {}): Promise<{ zk: ZooKeeper; peer: FakeConnection }> {
  const zk = connect({ servers: server.address, connectTimeoutMs: 5000, reconnectDelayMs: [1, 2], ...options });
  clients.push(zk);
  const peer = await server.session();
  await zk.connected();
  return { zk, peer };
}

async function answerGet(peer: FakeConnection): Promise<void> {
  peer.reply((await peer.next()).xid, 7n, 0, (writer) => {
    writer.buffer(Buffer.from('x'));
    writeStat(writer, 3);
  });
}

/** Expires the session by the client's clock. Returns the client's requests once the server is reachable again. */
async function abandonSession(zk: ZooKeeper, peer: FakeConnection): Promise<FakeConnection> {
  const lost = eventOf(zk, 'lost');
  // Connection attempts get no answer until the session has expired.
  peer.socket.destroy();
  const silent = await server.connection();
  await lost;
  await silent.closed();
  const fresh = await server.connection();
  expect((await fresh.connectRequest()).sessionId).toBe(0n);
  fresh.grant(10_000, SESSION_ID + 1n);
  return fresh;
}

describe('a session that expired by the client’s own clock', () => {
  it('is closed over a separate connection once there is another session', async () => {
    const { zk, peer } = await pair({ sessionTimeoutMs: 200 });
    const fresh = await abandonSession(zk, peer);
    const closing = await server.connection();
    const request = await closing.connectRequest();
    expect([request.sessionId, request.password.equals(PASSWORD)]).toEqual([SESSION_ID, true]);
    closing.grant(10_000, SESSION_ID);
    const closeRequest = await closing.next();
    expect(closeRequest.opcode).toBe(CLOSE);
    closing.reply(closeRequest.xid, 8n, 0);
    await closing.closed();
    const got = zk.get('/a');
    await answerGet(fresh);
    await got;
    expect(zk.session?.id).toBe(SESSION_ID + 1n);
  });

  it('is not closed when the server has expired it too', async () => {
    const { zk, peer } = await pair({ sessionTimeoutMs: 200 });
    await abandonSession(zk, peer);
    const closing = await server.connection();
    await closing.connectRequest();
    closing.grant(0, 0n);
    await closing.closed();
    expect(zk.state).toBe('connected');
  });

  it('is closed with a limited number of retries', async () => {
    const { zk, peer } = await pair({ sessionTimeoutMs: 200 });
    let present = await abandonSession(zk, peer);
    for (let attempt = 1; attempt <= 3; attempt++) {
      const closing = await server.connection();
      expect((await closing.connectRequest()).sessionId).toBe(SESSION_ID);
      closing.socket.destroy();
      await closing.closed();
      const resumed = eventOf(zk, 'resumed');
      present.socket.destroy();
      present = await server.session(10_000);
      await resumed;
    }
    const got = zk.get('/a');
    await answerGet(present);
    await got;
    present.socket.destroy();
    expect((await (await server.connection()).connectRequest()).sessionId).toBe(SESSION_ID + 1n);
  });
});

describe('a new list of servers', () => {
  it('without the present server moves the client after its pending calls are answered', async () => {
    const { zk, peer } = await pair();
    const { session } = zk;
    const states: ConnectionState[] = [];
    const warnings: Error[] = [];
    zk.on('state', (state) => states.push(state));
    zk.on('warning', (warning) => warnings.push(warning));
    const write = zk.set('/a', Buffer.of(1));
    const asked = await peer.next();
    zk.updateServers(other.address);
    const late = zk.get('/late');
    peer.reply(asked.xid, 9n, 0, (writer) => writeStat(writer, 4));
    expect((await write).version).toBe(4);
    await peer.closed();
    const next = await other.session();
    await answerGet(next);
    await late;
    expect([zk.session === session, states, warnings]).toEqual([true, ['suspended', 'connected'], []]);
  });

  it('with the present server changes nothing until the connection is lost', async () => {
    const { zk, peer } = await pair();
    zk.updateServers([server.address, other.address]);
    const got = zk.get('/a');
    await answerGet(peer);
    await got;
    await server.close();
    await other.session();
    await eventOf(zk, 'resumed');
    server = await FakeServer.listen();
  });

  it('is used by a client that is still connecting', async () => {
    const zk = connect({ servers: 'localhost:1', reconnectDelayMs: [1, 2] });
    clients.push(zk);
    await eventOf(zk, 'warning');
    zk.updateServers([server.address]);
    await server.session();
    expect((await zk.connected()).id).toBe(SESSION_ID);
  });

  it('replaces a connection attempt that gets no answer', async () => {
    const zk = connect({ servers: server.address, reconnectDelayMs: [1, 2], connectTimeoutMs: 100_000 });
    clients.push(zk);
    const silent = await server.connection();
    zk.updateServers(other.address);
    await silent.closed();
    await other.session();
    await zk.connected();
  });

  it('that is invalid or has another chroot is rejected', async () => {
    const { zk, peer } = await pair({ chroot: '/root' });
    expect(() => zk.updateServers('')).toThrow('names no server');
    expect(() => zk.updateServers('a:1:2')).toThrow('expected host, host:port');
    expect(() => zk.updateServers(`${other.address}/elsewhere`)).toThrow('the chroot cannot be changed from /root');
    zk.updateServers(`${server.address}/root`);
    const got = zk.get('/a');
    await answerGet(peer);
    await got;
  });
});

describe('a read-only server', () => {
  it('is not accepted by a client without the read-only option', async () => {
    const zk = connect({ servers: server.address, reconnectDelayMs: [1, 2] });
    clients.push(zk);
    const warned = eventOf(zk, 'warning');
    const peer = await server.connection();
    await peer.connectRequest();
    peer.grant(10_000, SESSION_ID, true);
    expect((await warned)[0]).toMatchObject({ code: 'not-read-only' });
    await peer.closed();
  });

  it('is used with the read-only flag, and left for a connection to a writable server', async () => {
    const zk = connect({ servers: server.address, reconnectDelayMs: [1, 2], readOnly: true });
    clients.push(zk);
    const peer = await server.connection();
    expect((await peer.connectRequest()).readOnly).toBe(true);
    peer.grant(10_000, SESSION_ID, true);
    expect((await zk.connected()).readOnly).toBe(true);
    const refused = await server.connection();
    expect(await refused.connectRequest()).toMatchObject({ readOnly: false, sessionId: 0n });
    refused.socket.destroy();
    const search = await server.connection();
    expect(await search.connectRequest()).toMatchObject({ readOnly: false, sessionId: 0n });
    const read = zk.get('/a');
    await peer.next();
    search.grant(10_000, SESSION_ID + 1n);
    // The client repeats the unanswered read.
    await answerGet(search);
    await read;
    await peer.closed();
    expect([zk.session?.id, zk.session?.readOnly, zk.counters.connects]).toEqual([SESSION_ID + 1n, false, 2]);
    search.socket.destroy();
    expect(await (await server.connection()).connectRequest()).toMatchObject({ readOnly: false });
  });

  it('is not probed after the client is closed', async () => {
    const zk = connect({ servers: server.address, reconnectDelayMs: [1, 2], readOnly: true });
    const peer = await server.connection();
    await peer.connectRequest();
    peer.grant(10_000, SESSION_ID, true);
    await zk.connected();
    const search = await server.connection();
    const closed = zk.close();
    await search.closed();
    peer.reply((await peer.next()).xid, 0n, 0);
    await closed;
    expect(await errorOf(zk.get('/'))).toMatchObject({ code: 'closed' });
  });
});

/** Old servers: they refuse unknown requests and close the connection. */

import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { treeCache, connect, type ClientOptions, type WatchListener, type ZooKeeper } from '../../src/index.js';
import { FakeServer, writeStat, type FakeConnection } from './fake-server.js';
import { errorOf, eventOf } from './helpers.js';

const GET = 4;
const SET_WATCHES = 101;
const SET_WATCHES_2 = 105;
const ADD_WATCH = 106;
const SET_WATCHES_XID = -8;
const UNIMPLEMENTED = -6;

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

async function pair(options: Partial<ClientOptions> = {}): Promise<{ zk: ZooKeeper; peer: FakeConnection }> {
  const zk = connect({ servers: server.address, connectTimeoutMs: 5000, reconnectDelayMs: [1, 2], ...options });
  clients.push(zk);
  const peer = await server.session();
  await zk.connected();
  return { zk, peer };
}

async function answerGet(peer: FakeConnection): Promise<void> {
  const { xid, opcode } = await peer.next();
  expect(opcode).toBe(GET);
  peer.reply(xid, 7n, 0, (writer) => {
    writer.buffer(Buffer.from('x'));
    writeStat(writer, 3);
  });
}

function log(): { received: string[]; listener: WatchListener } {
  const received: string[] = [];
  const listener: WatchListener = {
    onEvent: ({ type, path }) => received.push(`${type} ${path}`),
    onReset: () => received.push('reset'),
    onError: ({ code, message }) => received.push(`${code}: ${message}`),
  };
  return { received, listener };
}

const TOO_OLD = 'this server does not support persistent watches; ZooKeeper 3.6 or newer is needed';

describe('a server older than 3.6', () => {
  it('rejects a persistent watch; one-shot watches still work, also on the next connection', async () => {
    const { zk, peer } = await pair();
    const got = zk.get('/once', { watch: () => undefined });
    await answerGet(peer);
    await got;
    const { received, listener } = log();
    zk.watch('/p', 'persistent', listener);
    const { xid, opcode } = await peer.next();
    expect(opcode).toBe(ADD_WATCH);
    peer.reply(xid, 7n, UNIMPLEMENTED);
    peer.socket.end();
    const next = await server.session();
    const again = await next.next();
    expect([again.opcode, again.body.long(), again.body.texts()]).toEqual([SET_WATCHES, 7n, ['/once']]);
    expect(received).toEqual([`unimplemented: watch /p: ${TOO_OLD}`]);
  });

  it('rejects persistent watches of a client that comes from a newer server', async () => {
    const { zk, peer } = await pair();
    const { received, listener } = log();
    zk.watch('/p', 'persistent-recursive', listener);
    peer.reply((await peer.next()).xid, 7n, 0);
    const got = zk.get('/once', { watch: () => undefined });
    await answerGet(peer);
    await got;
    peer.socket.destroy();
    const old = await server.session();
    expect((await old.next()).opcode).toBe(SET_WATCHES_2);
    old.reply(SET_WATCHES_XID, 7n, UNIMPLEMENTED);
    const next = await server.session();
    const again = await next.next();
    expect([again.opcode, again.body.long(), again.body.texts()]).toEqual([SET_WATCHES, 7n, ['/once']]);
    expect(received).toEqual(['reset', `unimplemented: watch: ${TOO_OLD}`]);
  });

  it('gets a one-shot watch that relied on the rejected persistent one', async () => {
    const { zk, peer } = await pair();
    const { received, listener } = log();
    const events: string[] = [];
    zk.watch('/p', 'persistent', listener);
    const read = zk.get('/p', { watch: ({ type }) => events.push(type) });
    const added = await peer.next();
    peer.reply(added.xid, 7n, UNIMPLEMENTED);
    const { xid, body } = await peer.next();
    expect([body.text(), body.boolean()]).toEqual(['/p', false]);
    peer.reply(xid, 9n, 0, (writer) => {
      writer.buffer(Buffer.from('x'));
      writeStat(writer, 3);
    });
    await read;
    const set = await peer.next();
    expect([set.opcode, set.body.long(), set.body.texts()]).toEqual([SET_WATCHES, 9n, ['/p']]);
    expect([received.length, events]).toEqual([1, []]);
  });

  it('causes a warning when the listener has no onError', async () => {
    const { zk, peer } = await pair();
    const warned = eventOf(zk, 'warning');
    zk.watch('/p', 'persistent', { onEvent: () => undefined });
    peer.reply((await peer.next()).xid, 7n, UNIMPLEMENTED);
    expect((await warned)[0]).toMatchObject({ code: 'unimplemented', path: '/p' });
  });

  it('makes a tree cache fail to become ready', async () => {
    const { zk, peer } = await pair();
    const tree = treeCache(zk, '/t', { onPut: () => undefined, onRemove: () => undefined });
    const ready = errorOf(tree.ready());
    peer.reply((await peer.next()).xid, 7n, UNIMPLEMENTED);
    expect(await ready).toMatchObject({ code: 'unimplemented' });
    expect(await errorOf(tree.ready())).toMatchObject({ code: 'unimplemented' });
    tree.close();
  });

  it.each([
    ['countDescendants', (zk: ZooKeeper) => zk.countDescendants('/')],
    ['ephemerals', (zk: ZooKeeper) => zk.ephemerals()],
    ['whoAmI', (zk: ZooKeeper) => zk.whoAmI()],
    ['readTransaction', (zk: ZooKeeper) => zk.readTransaction([{ type: 'get', path: '/' }])],
  ])('rejects %s, and other calls succeed', async (_name, call) => {
    const { zk, peer } = await pair();
    const refused = errorOf(call(zk));
    peer.reply((await peer.next()).xid, 7n, UNIMPLEMENTED);
    peer.socket.end();
    const read = zk.get('/a');
    await answerGet(await server.session());
    await read;
    expect(await refused).toMatchObject({ code: 'unimplemented', message: expect.stringContaining('too old') });
  });
});

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

function log(): { told: string[]; listener: WatchListener } {
  const told: string[] = [];
  const listener: WatchListener = {
    onEvent: ({ type, path }) => told.push(`${type} ${path}`),
    onReset: () => told.push('reset'),
    onError: ({ code, message }) => told.push(`${code}: ${message}`),
  };
  return { told, listener };
}

const TOO_OLD = 'this server does not support persistent watches; ZooKeeper 3.6 or newer is needed';

describe('a server older than 3.6', () => {
  it('refuses a persistent watch to its owner; one-shot watches go on, also on the next connection', async () => {
    const { zk, peer } = await pair();
    const got = zk.get('/once', { watch: () => undefined });
    await answerGet(peer);
    await got;
    const { told, listener } = log();
    zk.watch('/p', 'persistent', listener);
    const { xid, opcode } = await peer.next();
    expect(opcode).toBe(ADD_WATCH);
    peer.reply(xid, 7n, UNIMPLEMENTED);
    peer.socket.end();
    const next = await server.session();
    const again = await next.next();
    expect([again.opcode, again.body.long(), again.body.texts()]).toEqual([SET_WATCHES, 7n, ['/once']]);
    expect(told).toEqual([`unimplemented: watch /p: ${TOO_OLD}`]);
  });

  it('that is come to from a newer one does the same', async () => {
    const { zk, peer } = await pair();
    const { told, listener } = log();
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
    expect(told).toEqual(['reset', `unimplemented: watch: ${TOO_OLD}`]);
  });

  it('is asked for a watch by who relied on the persistent one that it refuses', async () => {
    const { zk, peer } = await pair();
    const { told, listener } = log();
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
    expect([told.length, events]).toEqual([1, []]);
  });

  it('makes a warning of it where the owner does not want to know', async () => {
    const { zk, peer } = await pair();
    const warned = eventOf(zk, 'warning');
    zk.watch('/p', 'persistent', { onEvent: () => undefined });
    peer.reply((await peer.next()).xid, 7n, UNIMPLEMENTED);
    expect((await warned)[0]).toMatchObject({ code: 'unimplemented', path: '/p' });
  });

  it('keeps a mirror from ever being ready, which says so', async () => {
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
  ])('refuses %s, and other calls go on', async (_name, call) => {
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

/** Requests of newer servers, and changes at run time, on a real server. */

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { startZooKeeper, type RunningZooKeeper } from '@nodepool/dev-zookeeper';
import {
  connect,
  lockRecipe,
  OverloadedError,
  type ClientOptions,
  type WatchEvent,
  type ZooKeeper,
} from '../../src/index.js';
import { bytes, textOf } from '../behaviour/harness.js';
import { FakeServer } from './fake-server.js';
import { errorOf, eventOf } from './helpers.js';

let server: RunningZooKeeper;
let clients: ZooKeeper[] = [];
let tests = 0;

beforeAll(async () => {
  server = await startZooKeeper({ tickTime: 500, settings: { extendedTypesEnabled: 'true' } });
});

afterAll(() => server.stop());

afterEach(async () => {
  await Promise.all(clients.map((client) => client.close()));
  clients = [];
});

/** Returns a connected client and a path for the test. */
async function client(options: Partial<ClientOptions> = {}): Promise<ZooKeeper> {
  const made = connect({ servers: server.servers, reconnectDelayMs: [20, 100], ...options });
  clients.push(made);
  await made.connected();
  return made;
}

async function clientAndPath(options?: Partial<ClientOptions>): Promise<{ zk: ZooKeeper; path: string }> {
  const zk = await client(options);
  const path = `/requests-${tests++}`;
  await zk.create(path, bytes('root'));
  return { zk, path };
}

describe('whoAmI', () => {
  it('returns the address and the names of credentials without passwords', async () => {
    const zk = await client({ auth: [{ scheme: 'digest', auth: 'me:secret' }] });
    await zk.addAuth('digest', 'you:hidden');
    expect(await zk.whoAmI()).toEqual(
      expect.arrayContaining([
        { scheme: 'ip', user: '127.0.0.1' },
        { scheme: 'digest', user: 'me' },
        { scheme: 'digest', user: 'you' },
      ]),
    );
  });
});

describe('credentials that are added at run time', () => {
  const acl = [{ permissions: 31, scheme: 'auth', id: '' }];

  it('give access, also on later connections', async () => {
    const owner = await clientAndPath({ auth: [{ scheme: 'digest', auth: 'me:secret' }] });
    await owner.zk.setAcl(owner.path, acl);
    const zk = await client();
    expect(await errorOf(zk.get(owner.path))).toMatchObject({ code: 'no-auth' });
    const added = zk.addAuth('digest', Buffer.from('me:secret'));
    expect(textOf((await zk.get(owner.path)).data)).toBe('root');
    await added;
    await server.kill('SIGKILL');
    await server.restart();
    expect(textOf((await zk.get(owner.path)).data)).toBe('root');
  });

  it('fail the call when the server rejects them; the client continues without them', async () => {
    const { zk, path } = await clientAndPath();
    const { session } = zk;
    expect(await errorOf(zk.addAuth('nonsense', 'x'))).toMatchObject({ code: 'auth-failed', operation: 'auth' });
    expect(textOf((await zk.get(path)).data)).toBe('root');
    expect([zk.session === session, zk.state]).toEqual([true, 'connected']);
  });

  it('wait for a connection until their deadline', async () => {
    const zk = connect({ servers: 'localhost:1' });
    clients.push(zk);
    expect(await errorOf(zk.addAuth('digest', 'me:secret', { timeoutMs: 5 }))).toMatchObject({ code: 'timeout' });
    const waiting = errorOf(zk.addAuth('digest', 'me:secret'));
    await zk.close();
    expect(await waiting).toMatchObject({ code: 'closed' });
  });
});

describe('a transaction of reads', () => {
  it('answers each read separately', async () => {
    const { zk, path } = await clientAndPath();
    await zk.create(`${path}/a`, bytes('x'));
    const results = await zk.readTransaction([
      { type: 'get', path: `${path}/a` },
      { type: 'children', path },
      { type: 'get', path: `${path}/nothing` },
      { type: 'children', path: `${path}/a` },
    ]);
    expect(results).toEqual([
      { type: 'get', data: Buffer.from('x'), stat: (await zk.get(`${path}/a`)).stat },
      { type: 'children', children: ['a'] },
      {
        type: 'error',
        error: expect.objectContaining({ code: 'no-node', path: `${path}/nothing`, operationIndex: 2 }),
      },
      { type: 'children', children: [] },
    ]);
    expect([await zk.readTransaction([]), zk.counters.requests['multiRead']]).toEqual([[], 2]);
  });

  it('with an invalid path is rejected', async () => {
    const zk = await client();
    const error = await errorOf(zk.readTransaction([{ type: 'get', path: 'a' }]));
    expect(error).toMatchObject({ code: 'invalid-argument', path: 'a' });
  });
});

describe('the list of descendants', () => {
  it('is counted at any depth', async () => {
    const { zk, path } = await clientAndPath();
    for (const name of ['a', 'a/b', 'a/b/c', 'd']) await zk.create(`${path}/${name}`);
    const within = await client({ chroot: path });
    expect(await Promise.all([zk.countDescendants(path), zk.countDescendants(`${path}/a/b/c`)])).toEqual([4, 0]);
    expect(await Promise.all([within.countDescendants('/'), within.countDescendants('/a')])).toEqual([4, 2]);
    expect(await errorOf(zk.countDescendants(`${path}/nothing`))).toMatchObject({ code: 'no-node' });
  });

  it('is filtered by the session that owns them', async () => {
    const { zk, path } = await clientAndPath();
    const within = await client({ chroot: path });
    await Promise.all([
      zk.create(`${path}/others`, undefined, { mode: 'ephemeral' }),
      within.create('/mine', undefined, { mode: 'ephemeral' }),
      within.create('/mine-too', undefined, { mode: 'ephemeral' }),
      within.create('/stays'),
    ]);
    expect([...(await within.ephemerals())].sort()).toEqual(['/mine', '/mine-too']);
    expect(await within.ephemerals('/mine-')).toEqual(['/mine-too']);
    expect(await zk.ephemerals(path)).toEqual([`${path}/others`]);
  });
});

describe('every create mode', () => {
  it('is possible in a transaction', async () => {
    const { zk, path } = await clientAndPath();
    const modes = [
      'persistent',
      'persistent-sequential',
      'ephemeral',
      'ephemeral-sequential',
      'container',
      'persistent-ttl',
      'persistent-sequential-ttl',
    ] as const;
    const results = await zk.transaction(
      modes.map((mode) => ({
        type: 'create' as const,
        path: `${path}/${mode}`,
        data: bytes(mode),
        options: mode.endsWith('ttl') ? { mode, ttlMs: 60_000 } : { mode },
      })),
    );
    const paths = results.map((result) => (result.type === 'create' ? result.path.slice(path.length + 1) : ''));
    expect(paths).toEqual(
      modes.map((mode, index) => (mode.includes('sequential') ? `${mode}000000000${index}` : mode)),
    );
    const owners = await Promise.all(paths.map(async (name) => (await zk.exists(`${path}/${name}`))?.ephemeralOwner));
    expect(owners.map((owner) => owner === zk.session?.id)).toEqual([false, false, true, true, false, false, false]);
  });
});

describe('a one-shot watch', () => {
  const received: string[] = [];
  const record = ({ type, path }: WatchEvent): void => void received.push(`${type} ${path}`);
  const countAtServer = async (): Promise<string> => (await server.fourLetterWord('wchs')).split('\n').at(-2) ?? '';

  beforeEach(() => void received.splice(0));

  it('is removed at the server, and its listener is notified', async () => {
    const { zk, path } = await clientAndPath();
    await zk.get(path, { watch: record });
    await zk.children(path, { watch: record });
    // Watches on data are counted.
    expect(await countAtServer()).toBe('Total watches:1');
    await zk.removeWatches(path, { kind: 'data' });
    expect([received, await countAtServer()]).toEqual([[`watch-removed ${path}`], 'Total watches:0']);
    await zk.set(path, bytes('unseen'));
    await zk.create(`${path}/child`);
    await zk.sync(path);
    expect(received).toEqual([`watch-removed ${path}`, `children ${path}`]);
    expect(await errorOf(zk.removeWatches(path))).toMatchObject({ code: 'no-watcher', path });
  });

  it('is removed for one listener, while another gets the event', async () => {
    const { zk, path } = await clientAndPath();
    const others: string[] = [];
    const other = ({ type }: WatchEvent): void => void others.push(type);
    await zk.get(path, { watch: record });
    await zk.get(path, { watch: other });
    await zk.removeWatches(path, { listener: record });
    await zk.set(path, bytes('seen'));
    expect([received, others]).toEqual([[`watch-removed ${path}`], ['changed']]);
  });

  it('that waits for a creation is removed as a data watch', async () => {
    const { zk, path } = await clientAndPath();
    await zk.exists(`${path}/a`, { watch: record });
    await zk.removeWatches(`${path}/a`, { kind: 'data' });
    await zk.create(`${path}/a`);
    expect(received).toEqual([`watch-removed ${path}/a`]);
  });

  it('that is set while an earlier one is being removed remains', async () => {
    const { zk, path } = await clientAndPath();
    await zk.get(path, { watch: record });
    const events: string[] = [];
    const read = zk.get(path, { watch: ({ type }) => events.push(type) });
    await zk.removeWatches(path, { listener: record });
    await read;
    await zk.set(path, bytes('seen'));
    expect(events).toEqual(['changed']);
  });

  it('of a lock on its contender is removed after the release', async () => {
    const { zk, path } = await clientAndPath();
    const locks = lockRecipe(zk, { identifier: 'a test' });
    for (let round = 0; round < 3; round += 1) {
      const lock = await locks.acquire(`${path}/lock`, { watchContender: true });
      await zk.sync(path);
      await zk.transaction([lock.releaseOp]);
      lock.released();
    }
    await zk.sync(path);
    expect(await countAtServer()).toBe('Total watches:0');
  });

  it('of a lock on the contender ahead is not set if that one was deleted meanwhile', async () => {
    const { zk, path } = await clientAndPath();
    const held = await lockRecipe(zk).acquire(`${path}/lock`);
    const racing = Object.create(zk) as ZooKeeper;
    racing.children = async (directory, options) => {
      const listing = await zk.children(directory, options);
      await held.release();
      return listing;
    };
    const lock = await lockRecipe(racing).acquire(`${path}/lock`);
    await lock.release();
    await zk.sync(path);
    expect(await countAtServer()).toBe('Total watches:0');
  });

  it('is not set again on another connection after its removal', async () => {
    const { zk, path } = await clientAndPath();
    await zk.get(path, { watch: record });
    const suspended = eventOf(zk, 'state', (state) => state === 'suspended');
    await server.kill('SIGKILL');
    await suspended;
    await zk.removeWatches(path);
    await server.restart();
    await zk.set(path, bytes('unseen'));
    expect([received, await countAtServer()]).toEqual([[`watch-removed ${path}`], 'Total watches:0']);
  });
});

describe('back-pressure', () => {
  it('is signalled at half of the limit, and calls above the limit are rejected', async () => {
    const { zk, path } = await clientAndPath({ maxPendingCalls: 10 });
    const calls = Array.from({ length: 5 }, () => zk.get(path));
    expect([zk.writable, zk.counters.pendingCalls]).toEqual([true, 5]);
    calls.push(...Array.from({ length: 5 }, () => zk.get(path)));
    expect(zk.writable).toBe(false);
    const refused = await errorOf(zk.set(path, bytes('x')));
    expect(refused).toBeInstanceOf(OverloadedError);
    expect(refused).toMatchObject({ code: 'overloaded', outcome: 'not-applied', operation: 'set', path });
    await zk.drained();
    expect(zk.writable).toBe(true);
    await Promise.all(calls);
    expect([zk.counters.pendingCalls, zk.counters.pendingBytes]).toEqual([0, 0]);
  });

  it('also limits bytes, but always admits one large request', async () => {
    const { zk, path } = await clientAndPath({ maxPendingBytes: 1000 });
    const large = zk.set(path, Buffer.alloc(5000));
    expect([zk.writable, zk.counters.pendingBytes > 5000]).toEqual([false, true]);
    expect(await errorOf(zk.get(path))).toMatchObject({ code: 'overloaded' });
    await zk.drained();
    await large;
    await zk.get(path);
  });

  it('ends for aborted calls, sent or not', async () => {
    const { zk, path } = await clientAndPath({ maxPendingCalls: 10 });
    const controller = new AbortController();
    const given = Array.from({ length: 10 }, () => errorOf(zk.get(path, { signal: controller.signal })));
    controller.abort();
    await Promise.all(given);
    expect([zk.counters.pendingCalls, zk.writable]).toEqual([0, true]);
    await server.pause();
    await Promise.all(Array.from({ length: 10 }, () => errorOf(zk.get(path, { timeoutMs: 50 }))));
    await server.continue();
    await zk.drained();
    await zk.get(path);
    expect([zk.counters.pendingCalls, zk.counters.pendingBytes]).toEqual([0, 0]);
  });

  it('remains during a lost connection', async () => {
    const { zk, path } = await clientAndPath({ maxPendingCalls: 100 });
    await server.pause();
    const calls = [
      ...Array.from({ length: 20 }, () => zk.get(path)),
      ...Array.from({ length: 20 }, () => zk.set(path, bytes('x'))),
    ];
    const outcomes = Promise.allSettled(calls);
    await new Promise((resolve) => setImmediate(resolve));
    await server.kill('SIGKILL');
    await server.restart();
    const codes = (await outcomes).map((outcome) =>
      outcome.status === 'fulfilled' ? 'ok' : (outcome.reason as { code: string }).code,
    );
    expect(codes.slice(0, 20)).toEqual(Array(20).fill('ok'));
    expect([zk.counters.pendingCalls, zk.counters.pendingBytes, zk.writable]).toEqual([0, 0, true]);
  });

  it('stops waiting when the client is closed', async () => {
    const zk = connect({ servers: 'localhost:1', maxPendingCalls: 1 });
    const read = errorOf(zk.get('/'));
    expect(await errorOf(zk.drained({ timeoutMs: 5 }))).toMatchObject({ code: 'timeout', operation: 'drained' });
    const waiting = errorOf(zk.drained());
    await zk.close();
    expect([(await waiting).code, (await read).code]).toEqual(['closed', 'closed']);
  });
});

describe('a server with an IPv6 address', () => {
  it('accepts connections', async () => {
    const fake = await FakeServer.listen('::1');
    const zk = connect({ servers: fake.address });
    clients.push(zk);
    await fake.session();
    expect(fake.address).toMatch(/^\[::1\]:\d+$/);
    expect((await zk.connected()).confirmed).toBe(true);
    await fake.close();
  });
});

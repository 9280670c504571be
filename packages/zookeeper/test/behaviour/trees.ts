/** Behaviour of tree caches on any ZooKeeper. */

import { describe, expect, it } from '@jest/globals';
import {
  Permission,
  treeCache,
  isZooKeeperError,
  type TreeCache,
  type TreeCacheSettings,
  type TreeNode,
  type ZooKeeper,
} from '../../src/index.js';
import { bytes, Collector, textOf, type Harness } from './harness.js';
import { seeded } from './seeded.js';

export function describeTrees(harness: Harness): void {
  describeMirror(harness);
  describeLoads(harness);
  describeWrites(harness);
  describeLateOutcomes(harness);
  describeStorms(harness);
}

interface ZooKeeperTreeCache {
  readonly tree: TreeCache;
  readonly log: Collector<string>;
}

function mirror(harness: Harness, zk: ZooKeeper, root: string, settings: TreeCacheSettings = {}): ZooKeeperTreeCache {
  const log = new Collector<string>();
  const tree = treeCache(
    zk,
    root,
    {
      onPut: (node, before) =>
        log.add(`${before === undefined ? 'new' : 'put'} ${node.path} ${textOf(node.data)}`.trim()),
      onRemove: (node) => log.add(`removed ${node.path}`),
      onComplete: (complete) => log.add(`complete: ${String(complete)}`),
    },
    { clock: harness.factory.clock, ...settings },
  );
  return { tree, log };
}

function describeMirror(harness: Harness): void {
  describe('tree caches', () => {
    it('read the existing znodes, then follow every change', async () => {
      await harness.zk.create(harness.path('a'), bytes('1'));
      await harness.zk.create(harness.path('a/b'), bytes('2'));
      const { tree, log } = mirror(harness, await harness.client(), harness.root);
      await tree.ready();
      expect([...log.items].sort()).toEqual([
        'complete: true',
        `new ${harness.root}`,
        `new ${harness.path('a')} 1`,
        `new ${harness.path('a/b')} 2`,
      ]);
      await harness.zk.set(harness.path('a'), bytes('1b'));
      await log.atLeast(5);
      await harness.zk.create(harness.path('c'), bytes('3'));
      await log.atLeast(6);
      await harness.zk.delete(harness.path('a/b'));
      await log.atLeast(7);
      expect(log.items.slice(4)).toEqual([
        `put ${harness.path('a')} 1b`,
        `new ${harness.path('c')} 3`,
        `removed ${harness.path('a/b')}`,
      ]);
      expect([...tree.children(harness.root)].sort()).toEqual(['a', 'c']);
      expect(tree.children(harness.path('a')).size).toBe(0);
      expect(tree.get(harness.path('a'))?.stat).toMatchObject({ version: 1, dataLength: 2 });
      tree.close();
    });

    it('are complete without a root, and follow its creation and deletion', async () => {
      const { tree, log } = mirror(harness, harness.zk, harness.path('later'));
      await tree.ready();
      expect(log.items).toEqual(['complete: true']);
      await harness.zk.create(harness.path('later'), bytes('x'));
      await harness.zk.create(harness.path('later/child'));
      await log.atLeast(3);
      await harness.zk.delete(harness.path('later/child'));
      await harness.zk.delete(harness.path('later'));
      await log.atLeast(5);
      expect(log.items.slice(1)).toEqual([
        `new ${harness.path('later')} x`,
        `new ${harness.path('later/child')}`,
        `removed ${harness.path('later/child')}`,
        `removed ${harness.path('later')}`,
      ]);
      tree.close();
    });

    it('only record the presence of znodes outside the filter, without reading them', async () => {
      await harness.zk.create(harness.path('n'), bytes('data'));
      await harness.zk.create(harness.path('n/lock'), bytes('not wanted'));
      const client = await harness.client();
      const { tree, log } = mirror(harness, client, harness.root, { wantsData: (path) => !path.includes('/lock') });
      await tree.ready();
      const reads = client.counters.requests['get'];
      await harness.zk.create(harness.path('n/lock/contender'), bytes('x'));
      await harness.zk.set(harness.path('n/lock/contender'), bytes('y'));
      await harness.zk.create(harness.path('n/z'), bytes('last'));
      await log.atLeast(6);
      expect([...tree.children(harness.path('n/lock'))]).toEqual(['contender']);
      expect(tree.get(harness.path('n/lock'))?.data).toHaveLength(0);
      expect(client.counters.requests['get']).toBe((reads ?? 0) + 1);
      tree.close();
    });

    it('are incomplete without a connection, and report only changed znodes afterwards', async () => {
      for (const name of ['same', 'changed', 'gone']) await harness.zk.create(harness.path(name), bytes('1'));
      const client = await harness.client();
      const { tree, log } = mirror(harness, client, harness.root);
      await tree.ready();
      const before = log.items.length;
      const suspended = new Promise<void>((resolve) =>
        client.on('state', (state) => state === 'suspended' && resolve()),
      );
      const resumed = harness.reconnect(client);
      await suspended;
      expect(tree.complete).toBe(false);
      await harness.zk.transaction([
        { type: 'set', path: harness.path('changed'), data: bytes('2') },
        { type: 'delete', path: harness.path('gone') },
        { type: 'create', path: harness.path('fresh'), data: bytes('3') },
      ]);
      await resumed;
      await tree.ready();
      await log.atLeast(before + 5);
      expect([...log.items.slice(before)].sort()).toEqual([
        'complete: false',
        'complete: true',
        `new ${harness.path('fresh')} 3`,
        `put ${harness.path('changed')} 2`,
        `removed ${harness.path('gone')}`,
      ]);
      tree.close();
    });

    it('continue in the next session', async () => {
      const client = await harness.client({ sessionTimeoutMs: 2000 });
      const { tree, log } = mirror(harness, client, harness.root);
      await tree.ready();
      await harness.expire(client);
      await harness.zk.create(harness.path('a'));
      await tree.ready();
      await log.atLeast(5);
      expect(tree.get(harness.path('a'))).toBeDefined();
      tree.close();
    });

    it('report nothing after they are closed', async () => {
      const { tree, log } = mirror(harness, harness.zk, harness.root);
      await tree.ready();
      tree.close();
      await harness.zk.create(harness.path('a'));
      await harness.zk.sync(harness.root);
      expect(log.items).toEqual([`new ${harness.root}`, 'complete: true', 'complete: false']);
    });

    it('stop waiting at the deadline', async () => {
      const { tree } = mirror(harness, harness.zk, harness.root);
      tree.close();
      await expect(tree.ready({ timeoutMs: 10 })).rejects.toMatchObject({ code: 'timeout' });
    });

    it('stop waiting when the client is closed', async () => {
      const client = await harness.client();
      const { tree } = mirror(harness, client, harness.root);
      const early = tree.ready();
      const closing = client.close();
      await expect(early).rejects.toMatchObject({ code: 'closed' });
      await closing;
      await expect(tree.ready()).rejects.toMatchObject({ code: 'closed' });
      tree.close();
    });
  });
}

function describeLoads(harness: Harness): void {
  describe('loads of tree caches', () => {
    const names = Array.from({ length: 100 }, (_, index) => `n${index}`);

    it('read many znodes per request, and do not list those without children', async () => {
      await harness.zk.transaction(
        names.flatMap((name) =>
          ['', '/lock', '/lock/contender'].map((below) => ({ type: 'create', path: harness.path(name + below) })),
        ),
      );
      const client = await harness.client();
      const { tree } = mirror(harness, client, harness.root, {
        wantsData: (path) => !path.includes('/lock'),
        isLeaf: (path) => path.endsWith('/contender'),
      });
      await tree.ready();
      for (const name of names) expect([...tree.children(harness.path(`${name}/lock`))]).toEqual(['contender']);
      const { requests, bytesReceived } = client.counters;
      const reads = Object.values(requests).reduce((sum, count) => sum + count, 0);
      expect(reads).toBeLessThan(30);
      expect(bytesReceived).toBeLessThan(names.length * 300);
      tree.close();
    });

    it('report a new znode once its descendants are known', async () => {
      for (const name of ['a', 'a/lock', 'a/lock/contender', 'b']) {
        await harness.zk.create(harness.path(name), bytes(name));
      }
      const { tree, log } = mirror(harness, harness.zk, harness.root, {
        wantsData: (path) => /\/[ab]$/.test(path),
        isLeaf: (path) => path.endsWith('/contender'),
      });
      await tree.ready();
      const reported = (name: string): number => log.items.findIndex((item) => item.startsWith(`new ${name}`));
      expect(reported(harness.path('a/lock/contender'))).toBeLessThan(reported(harness.path('a a')));
      expect(reported(harness.path('b b'))).toBeGreaterThan(0);
      tree.close();
    });

    it('succeed if the client refuses an answer with many znodes as too large', async () => {
      const data = Buffer.alloc(5000);
      await harness.zk.transaction(names.map((name) => ({ type: 'create', path: harness.path(name), data })));
      const client = await harness.client({ maxAnswerBytes: 20_000 });
      const { tree } = mirror(harness, client, harness.root, { onWarning: () => undefined });
      await tree.ready();
      for (const name of names) expect(tree.get(harness.path(name))?.data).toHaveLength(data.length);
      tree.close();
    });

    it('hold back no znode because a child cannot be read', async () => {
      await harness.zk.create(harness.path('a'), bytes('1'));
      const reader = await harness.client();
      await harness.zk.create(harness.path('a/secret'), bytes('2'), {
        acl: [{ permissions: Permission.all, scheme: 'ip', id: '192.0.2.1' }],
      });
      const { tree, log } = mirror(harness, reader, harness.root, { onWarning: () => undefined });
      await log.atLeast(2);
      expect([...log.items].sort()).toEqual([`new ${harness.root}`, `new ${harness.path('a')} 1`]);
      expect(tree.complete).toBe(false);
      tree.close();
    });
  });
}

function describeWrites(harness: Harness): void {
  describe('tree caches with writes of their own client', () => {
    it('apply a reported write without reading the znode', async () => {
      const path = harness.path('a');
      const client = await harness.client();
      const { tree, log } = mirror(harness, client, harness.root);
      await tree.ready();
      const reads = client.counters.requests['get'];

      const creation = tree.expect([path]);
      const { stat } = await client.create(path, bytes('1'));
      creation.applied([{ path, node: { data: bytes('1'), stat } }]);
      expect(tree.get(path)).toMatchObject({ stat });

      const change = tree.expect([path]);
      const changed = await client.set(path, bytes('2'), { version: 0 });
      change.applied([{ path, node: { data: bytes('2'), stat: changed } }]);
      expect(tree.get(path)?.stat.version).toBe(1);

      const deletion = tree.expect([path]);
      await client.delete(path, { version: 1 });
      deletion.applied([{ path, node: undefined }]);
      expect(tree.get(path)).toBeUndefined();

      await client.sync(harness.root);
      expect(client.counters.requests['get']).toBe(reads);
      expect(log.items.slice(2)).toEqual([`new ${path} 1`, `put ${path} 2`, `removed ${path}`]);
      tree.close();
    });

    it('apply the writes of a transaction in any order, once per path', async () => {
      const paths = ['one', 'two', 'three'].map((name) => harness.path(name));
      for (const path of paths) await harness.zk.create(path);
      const client = await harness.client();
      const { tree, log } = mirror(harness, client, harness.root);
      await tree.ready();
      const before = log.items.length;
      const reads = client.counters.requests['get'];
      const expectation = tree.expect([...paths, ...paths]);
      const data = bytes('ours');
      const results = await client.transaction(paths.map((path) => ({ type: 'set', path, data })));
      const [one, two, three] = results.map((result, index) => {
        if (result.type !== 'set') throw new Error(result.type);
        return { path: paths[index]!, node: { data, stat: result.stat } };
      });
      const other = { path: '/elsewhere', node: undefined };
      expectation.applied([three!, other, two!, two!, one!, three!, other]);
      expectation.unknown();
      await client.sync(harness.root);
      expect(log.items.slice(before)).toEqual([three!, two!, one!].map(({ path }) => `put ${path} ours`));
      expect(client.counters.requests['get']).toBe(reads);
      tree.close();
    });

    it.each([
      ['is announced and reported twice', 2, 2, ['first', 'last']],
      ['is announced twice, and only its last state is reported', 2, 1, ['last']],
      ['is announced once and reported twice', 1, 2, ['first', 'last']],
      ['is announced and reported once', 1, 1, ['last']],
      ['is not announced', 0, 0, ['last']],
    ])(
      'hold the last data of a znode that a transaction writes twice, if it %s',
      async (_case, announced, reported, puts) => {
        const path = harness.path('a');
        await harness.zk.create(path, bytes('0'));
        const client = await harness.client();
        const { tree, log } = mirror(harness, client, harness.root);
        await tree.ready();
        const before = log.items.length;
        const expectation = tree.expect(Array.from({ length: announced }, () => path));
        const texts = ['first', 'last'];
        const results = await client.transaction(texts.map((text) => ({ type: 'set', path, data: bytes(text) })));
        const written = results.map((result, index) => {
          if (result.type !== 'set') throw new Error(result.type);
          return { path, node: { data: bytes(texts[index]!), stat: result.stat } };
        });
        expectation.applied(reported === 1 ? written.slice(-1) : written.slice(0, reported));
        // The first answer arrives after the cache has sent its read, the second one after the answer to the read.
        await client.sync(path);
        await client.sync(path);
        expect(log.items.slice(before)).toEqual(puts.map((text) => `put ${path} ${text}`));
        expect(tree.get(path)).toMatchObject({ stat: { version: 2 } });
        tree.close();
      },
    );

    it('read the znode of a write with unknown outcome', async () => {
      const path = harness.path('a');
      await harness.zk.create(path, bytes('1'));
      const client = await harness.client();
      const { tree, log } = mirror(harness, client, harness.root);
      await tree.ready();
      const expectation = tree.expect([path]);
      await harness.zk.set(path, bytes('theirs'));
      await client.sync(path);
      await expect(client.set(path, bytes('ours'), { version: 0 })).rejects.toMatchObject({ code: 'bad-version' });
      expectation.unknown();
      await log.atLeast(4);
      expect(textOf(tree.get(path)!.data)).toBe('theirs');
      tree.close();
    });

    it('read an announced path that only another client changed', async () => {
      const [one, two] = [harness.path('one'), harness.path('two')];
      await harness.zk.create(one, bytes('1'));
      await harness.zk.create(two, bytes('1'));
      const client = await harness.client();
      const { tree, log } = mirror(harness, client, harness.root);
      await tree.ready();
      const before = log.items.length;
      const expectation = tree.expect([one, two]);
      await harness.zk.set(two, bytes('theirs'));
      await client.sync(two);
      const stat = await client.set(one, bytes('ours'));
      expectation.applied([{ path: one, node: { data: bytes('ours'), stat } }]);
      await log.atLeast(before + 2);
      expect([textOf(tree.get(one)!.data), textOf(tree.get(two)!.data)]).toEqual(['ours', 'theirs']);
      tree.close();
    });
  });
}

function describeLateOutcomes(harness: Harness): void {
  describe('tree caches with late reports of writes', () => {
    it('do not return to an older version', async () => {
      const path = harness.path('a');
      const { stat: first } = await harness.zk.create(path, bytes('0'));
      const client = await harness.client();
      const { tree, log } = mirror(harness, client, harness.root);
      await tree.ready();
      const [one, two] = [tree.expect([path]), tree.expect([path])];
      const before = log.items.length;
      const stats = await Promise.all([
        client.set(path, bytes('1'), { version: first.version }),
        client.set(path, bytes('2')),
      ]);
      two.applied([{ path, node: { data: bytes('2'), stat: stats[1] } }]);
      one.applied([{ path, node: { data: bytes('1'), stat: stats[0] } }]);
      await client.sync(path);
      expect(log.items.slice(before)).toEqual([`put ${path} 2`]);
      tree.close();
    });

    it('do not restore a znode that another client deleted meanwhile', async () => {
      const path = harness.path('a');
      const client = await harness.client();
      const { tree, log } = mirror(harness, client, harness.root);
      await tree.ready();
      const before = log.items.length;
      const [one, two] = [tree.expect([path]), tree.expect([path])];
      const { stat } = await client.create(path, bytes('ours'));
      await harness.zk.delete(path);
      await client.sync(path);
      one.applied([{ path, node: { data: bytes('ours'), stat } }]);
      await expect(client.set(path, bytes('too late'))).rejects.toMatchObject({ code: 'no-node' });
      two.unknown();
      await client.sync(path);
      expect(log.items.slice(before)).toEqual([]);
      tree.close();
    });
  });
}

/** The expected final state of a cache. */
async function contentOf(zk: ZooKeeper, path: string): Promise<string[]> {
  const { data, stat } = await zk.get(path);
  const { children } = await zk.children(path);
  const below = await Promise.all([...children].sort().map((name) => contentOf(zk, `${path}/${name}`)));
  return [`${path} ${textOf(data)} ${stat.czxid} ${stat.mzxid} ${stat.version}`, ...below.flat()].sort();
}

function contentOfTree(tree: TreeCache, path: string): string[] {
  const node: TreeNode | undefined = tree.get(path);
  const below = [...tree.children(path)].map((name) => contentOfTree(tree, `${path}/${name}`));
  const own =
    node === undefined
      ? []
      : [`${path} ${textOf(node.data)} ${node.stat.czxid} ${node.stat.mzxid} ${node.stat.version}`];
  return [...own, ...below.flat()].sort();
}

/** One random operation, announced to the cache or not. */
async function runRandomOperation(
  client: ZooKeeper,
  tree: TreeCache,
  path: string,
  random: () => number,
): Promise<void> {
  const expected = random() < 0.5 ? tree.expect([path]) : undefined;
  const data = bytes(String(Math.floor(random() * 1e6)));
  const kind = random();
  try {
    if (kind < 0.4) {
      const { stat } = await client.create(path, data);
      expected?.applied([{ path, node: { data, stat } }]);
    } else if (kind < 0.75) {
      const stat = await client.set(path, data);
      expected?.applied([{ path, node: { data, stat } }]);
    } else {
      await client.delete(path);
      expected?.applied([{ path, node: undefined }]);
    }
  } catch (error) {
    if (!isZooKeeperError(error)) throw error;
    expected?.unknown();
  }
}

function describeStorms(harness: Harness): void {
  describe('tree caches under random operations', () => {
    const storm = async (client: ZooKeeper, tree: TreeCache, random: () => number): Promise<void> => {
      const pick = (): string => {
        const parent = `n${Math.floor(random() * 6)}`;
        return harness.path(random() < 0.5 ? parent : `${parent}/m${Math.floor(random() * 3)}`);
      };
      for (let round = 0; round < 60; round++) {
        const operations = Array.from({ length: 1 + Math.floor(random() * 6) }, () =>
          runRandomOperation(client, tree, pick(), random),
        );
        await Promise.all(operations);
        if (random() < 0.04) await harness.reconnect(client);
      }
    };

    it.each([1, 2, 3, 4, 5, 6])('equal the server afterwards (seed %d)', async (seed) => {
      const random = seeded(seed);
      const clients = await Promise.all([harness.client(), harness.client(), harness.client()]);
      const pairs = clients.map((client) => ({ client, tree: mirror(harness, client, harness.root).tree }));
      await Promise.all(pairs.map(({ client, tree }) => storm(client, tree, random)));
      await harness.zk.sync(harness.root);
      const truth = await contentOf(harness.zk, harness.root);
      for (const { client, tree } of pairs) {
        await tree.ready();
        // An answer to this implies that all earlier requests were answered.
        for (let turn = 0; turn < 3; turn++) await client.sync(harness.root);
        expect(contentOfTree(tree, harness.root)).toEqual(truth);
        tree.close();
      }
    });
  });
}

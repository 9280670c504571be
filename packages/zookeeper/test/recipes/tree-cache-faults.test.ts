/** Tree caches under faults: their state and their notifications agree with the server. */
import { describe, expect, it } from '@jest/globals';
import { VirtualClock } from '@nodepool/core/testing';
import { treeCache, isZooKeeperError, type TreeCache, type ZooKeeper } from '../../src/index.js';
import { SimulatedZooKeeperServer } from '../../src/simulated/index.js';
import { textOf } from '../behaviour/harness.js';
import { seeded } from '../behaviour/seeded.js';

const ROOT = '/root';
const SEEDS = Array.from({ length: 60 }, (_, index) => index + 1);

interface Mirror {
  readonly client: ZooKeeper;
  readonly tree: TreeCache;
  /** The sum of the listener's notifications. */
  readonly reported: Map<string, string>;
}

const wantsData = (path: string): boolean => !path.includes('lock');

/** Every znode below the root, as the cache must hold it. */
function truthOf(server: SimulatedZooKeeperServer): Map<string, string> {
  const truth = new Map<string, string>();
  for (const [path, { data }] of server.dump()) {
    if (path.startsWith(ROOT)) truth.set(path, wantsData(path) ? textOf(data) : '');
  }
  return truth;
}

function mirrorOf(server: SimulatedZooKeeperServer, clock: VirtualClock, operationTimeoutMs = 20_000): Mirror {
  const client = server.connect({ sessionTimeoutMs: 8000, operationTimeoutMs });
  const reported = new Map<string, string>();
  const tree = treeCache(
    client,
    ROOT,
    {
      onPut: (node, before) => {
        expect(before === undefined ? undefined : textOf(before.data)).toBe(reported.get(node.path));
        reported.set(node.path, textOf(node.data));
      },
      onRemove: (node) => {
        expect(reported.delete(node.path)).toBe(true);
      },
    },
    { clock, wantsData, onWarning: () => undefined },
  );
  return { client, tree, reported };
}

async function runRandomOperation({ client, tree }: Mirror, random: () => number): Promise<void> {
  const parent = `${ROOT}/n${Math.floor(random() * 5)}`;
  const path = random() < 0.4 ? parent : `${parent}/${random() < 0.5 ? 'lock' : 'child'}`;
  const expected = random() < 0.6 ? tree.expect([path]) : undefined;
  const data = Buffer.from(String(Math.floor(random() * 1e6)));
  const kind = random();
  try {
    if (kind < 0.45) {
      const { stat } = await client.create(path, data);
      expected?.applied([{ path, node: { data, stat } }]);
    } else if (kind < 0.75) {
      const stat = await client.set(path, data);
      expected?.applied([{ path, node: { data, stat } }]);
      const node = tree.get(path);
      if (expected !== undefined && tree.complete && wantsData(path) && node !== undefined) {
        expect(node.stat.mzxid).toBeGreaterThanOrEqual(stat.mzxid);
      }
    } else {
      await client.delete(path);
      expected?.applied([{ path, node: undefined }]);
    }
  } catch (error) {
    if (!isZooKeeperError(error)) throw error;
    expected?.unknown();
  }
}

function injectFault(server: SimulatedZooKeeperServer, { client }: Mirror, random: () => number): void {
  const kind = random();
  if (kind < 0.25) server.disconnect(client);
  else if (kind < 0.4) server.partition(client, random() < 0.5 ? 'cut' : 'silent');
  else if (kind < 0.65) server.heal(client);
  else if (kind < 0.75) server.expireSession(client);
  else if (kind < 0.85) server.loseNextWrite(client, random() < 0.5 ? 'before-applied' : 'after-applied');
  else if (kind < 0.95) server.setLag(client, Math.floor(random() * 300));
  else server.restart();
}

describe('tree caches under faults', () => {
  it.each(SEEDS)('equal the server after the last fault (seed %d)', async (seed) => {
    const random = seeded(seed);
    const clock = new VirtualClock();
    const server = new SimulatedZooKeeperServer({ clock, latencyMs: () => Math.floor(random() * 8) });
    const mirrors = [mirrorOf(server, clock), mirrorOf(server, clock), mirrorOf(server, clock)];
    const operations: Promise<void>[] = [];
    const [first] = mirrors;
    operations.push(first!.client.create(ROOT).then(() => undefined));
    let snapshot = server.snapshot();
    for (let round = 0; round < 150; round++) {
      for (const mirror of mirrors) {
        const count = Math.floor(random() * 4);
        for (let index = 0; index < count; index++) operations.push(runRandomOperation(mirror, random));
        if (random() < 0.06) injectFault(server, mirror, random);
      }
      if (round === 50) snapshot = server.snapshot();
      if (round === 100 && seed % 5 === 0) server.restore(snapshot);
      await clock.advance(Math.floor(random() * 400));
    }
    for (const { client } of mirrors) {
      server.heal(client);
      server.setLag(client, 0);
    }
    await clock.advance(60_000);
    await Promise.all(operations);
    await clock.advance(10_000);

    const truth = truthOf(server);
    for (const { client, tree, reported } of mirrors) {
      expect(tree.complete).toBe(true);
      expect([...reported].sort()).toEqual([...truth].sort());
      for (const path of truth.keys()) {
        expect(textOf(tree.get(path)!.data)).toBe(truth.get(path));
        const names = [...truth.keys()].filter((other) => other.slice(0, other.lastIndexOf('/')) === path);
        expect([...tree.children(path)].sort()).toEqual(names.map((name) => name.slice(path.length + 1)).sort());
      }
      tree.close();
      const closed = client.close();
      await clock.advance(1000);
      await closed;
    }
  });
});

describe('tree caches during their initial load', () => {
  it.each(['before', 'after'])(
    'contain znodes that are created or deleted at any moment, %s their own reads',
    async (when) => {
      for (let moment = 0; moment <= 40; moment++) {
        const clock = new VirtualClock();
        const server = new SimulatedZooKeeperServer({ clock, latencyMs: 3 });
        const writers = Array.from({ length: 4 }, () => server.connect());
        await clock.advance(100);
        const setUp = writers[0]!.transaction(
          ['', '/a', '/a/lock', '/a/lock/one', '/a/lock/two', '/a/child', '/b'].map((name) => ({
            type: 'create',
            path: ROOT + name,
            data: Buffer.from(name),
          })),
        );
        await clock.advance(100);
        await setUp;

        const writes: Promise<unknown>[] = [];
        const write = (...operations: (() => Promise<unknown>)[]): void => {
          for (const operation of operations) writes.push(operation());
        };
        const [one, two, three, four] = writers;
        const atOnce = (): void => {
          write(
            () => one!.delete(`${ROOT}/a/lock/one`),
            () => two!.create(`${ROOT}/a/lock/three`),
            () => three!.delete(`${ROOT}/a/child`),
            () => four!.create(`${ROOT}/b/child`, Buffer.from('new')),
            () => four!.set(`${ROOT}/b`, Buffer.from('changed')),
          );
        };
        // Requests of the same millisecond arrive in the order of their sending.
        clock.schedule(moment, when === 'before' ? atOnce : () => clock.schedule(0, atOnce));
        const { client, tree, reported } = mirrorOf(server, clock);
        await clock.advance(100);
        await Promise.all(writes);
        expect(tree.complete).toBe(true);
        expect({ moment, reported: [...reported].sort() }).toEqual({ moment, reported: [...truthOf(server)].sort() });
        tree.close();
        const closed = Promise.all([client, ...writers].map((each) => each.close()));
        await clock.advance(100);
        await closed;
      }
    },
  );
});

describe('tree caches that lose their connection', () => {
  it.each(['while they load', 'when the znodes are created'])(
    'do not retain znodes that are deleted meanwhile, %s',
    async (when) => {
      for (let moment = 0; moment <= 40; moment++) {
        const clock = new VirtualClock();
        const server = new SimulatedZooKeeperServer({ clock, latencyMs: 3 });
        const writer = server.connect();
        const paths = ['/a', '/a/lock', '/a/lock/one', '/a/child'].map((name) => ROOT + name);
        const root = writer.create(ROOT);
        await clock.advance(100);
        await root;
        const early = when === 'while they load' ? undefined : mirrorOf(server, clock);
        await clock.advance(100);
        const created = Promise.all(paths.map((path) => writer.create(path)));
        if (early === undefined) await clock.advance(100);
        const { client, tree, reported } = early ?? mirrorOf(server, clock);
        await clock.advance(moment);
        server.partition(client);
        await clock.advance(100);
        await created;
        const deleted = Promise.all(paths.toReversed().map((path) => writer.delete(path)));
        await clock.advance(100);
        await deleted;
        server.heal(client);
        await clock.advance(10_000);
        expect(tree.complete).toBe(true);
        expect({ moment, reported: [...reported] }).toEqual({ moment, reported: [[ROOT, '']] });
        tree.close();
        const closed = Promise.all([client.close(), writer.close()]);
        await clock.advance(100);
        await closed;
      }
    },
  );
});

describe('tree caches whose load takes longer than a call may', () => {
  it.each(['changed', 'deleted'])('become complete if a znode is %s before it is read again', async (how) => {
    const clock = new VirtualClock();
    const server = new SimulatedZooKeeperServer({ clock, latencyMs: 1 });
    const writer = server.connect();
    const setUp = Promise.all([ROOT, `${ROOT}/one`, `${ROOT}/two`].map((path) => writer.create(path)));
    await clock.advance(100);
    await setUp;
    const { client, tree, reported } = mirrorOf(server, clock, 1000);
    await clock.advance(8);
    server.setLag(client, 1500);
    await clock.advance(1500);
    expect(tree.complete).toBe(false);
    server.setLag(client, 0);
    const path = `${ROOT}/one`;
    const change = how === 'deleted' ? writer.delete(path) : writer.set(path, Buffer.from('changed'));
    await clock.advance(60_000);
    await change;
    expect(tree.complete).toBe(true);
    expect([...reported].sort()).toEqual([...truthOf(server)].sort());
    tree.close();
    const closed = Promise.all([client.close(), writer.close()]);
    await clock.advance(100);
    await closed;
  });
});

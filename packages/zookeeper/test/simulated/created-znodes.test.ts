/** Znodes that the client of a tree cache has created under names chosen by the server. */
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { VirtualClock } from '@nodepool/core/testing';
import { treeCache, type TreeCache, type ZooKeeper } from '../../src/index.js';
import { SimulatedZooKeeperServer } from '../../src/simulated/index.js';
import { bytes } from '../behaviour/harness.js';

const PATH = '/app/node-0000000000';

let clock: VirtualClock;
let client: ZooKeeper;
let other: ZooKeeper;
let tree: TreeCache;
let log: string[];
/** Transit times of the next messages, milliseconds; 0 for further ones. */
let delays: number[];

beforeEach(async () => {
  clock = new VirtualClock();
  delays = [];
  const server = new SimulatedZooKeeperServer({ clock, latencyMs: () => delays.shift() ?? 0 });
  client = server.connect();
  other = server.connect();
  void client.create('/app');
  log = [];
  tree = treeCache(
    client,
    '/app',
    {
      onPut: ({ path, data }, before) =>
        log.push(`${before === undefined ? 'new' : 'put'} ${path} ${Buffer.from(data).toString()}`.trim()),
      onRemove: ({ path }) => log.push(`removed ${path}`),
    },
    { clock },
  );
  await clock.advance(0);
  expect([tree.complete, other.state]).toEqual([true, 'connected']);
  log = [];
});

afterEach(async () => {
  tree.close();
  const closing = Promise.all([client.close(), other.close()]);
  await clock.advance(60_000);
  await closing;
});

/** Creates a znode and passes it to the cache, as the caller of the creation does. */
function create(): void {
  void client
    .create('/app/node-', bytes('1'), { mode: 'persistent-sequential' })
    .then(({ path, stat }) => tree.created(path, { data: bytes('1'), stat }));
}

describe('a created znode', () => {
  it('is cached without a read', async () => {
    const reads = client.counters.requests['get'];
    create();
    await clock.advance(0);
    expect(log).toEqual([`new ${PATH} 1`]);
    expect(client.counters.requests['get']).toBe(reads);
  });

  it('is read if another client changes it in the same moment', async () => {
    create();
    void other.set(PATH, bytes('2'));
    await clock.advance(0);
    expect(log).toEqual([`new ${PATH} 1`, `put ${PATH} 2`]);
  });

  it('is not kept if another client deletes it in the same moment', async () => {
    create();
    void other.delete(PATH);
    await clock.advance(0);
    expect(tree.get(PATH)).toBeUndefined();
  });

  it('is not kept if the deletion arrives with the answer, and the event of the creation before', async () => {
    // Both requests, the event, and the answer.
    delays = [0, 0, 0, 5];
    create();
    void other.delete(PATH);
    await clock.advance(4);
    expect(client.counters.requests['get']).toBe(2);
    await clock.advance(1);
    expect(tree.get(PATH)).toBeUndefined();
  });

  it('follows the later changes of other clients', async () => {
    create();
    await clock.advance(0);
    void other.set(PATH, bytes('2'));
    await clock.advance(0);
    void other.delete(PATH);
    await clock.advance(0);
    expect(log).toEqual([`new ${PATH} 1`, `put ${PATH} 2`, `removed ${PATH}`]);
  });
});

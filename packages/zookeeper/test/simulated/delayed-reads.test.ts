/** Reads of a tree cache that wait for further changes, and reads that share a request. */
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { VirtualClock } from '@nodepool/core/testing';
import { treeCache, type TreeCache, type ZooKeeper } from '../../src/index.js';
import { SimulatedZooKeeperServer } from '../../src/simulated/index.js';
import { bytes } from '../behaviour/harness.js';

let clock: VirtualClock;
let server: SimulatedZooKeeperServer;
let client: ZooKeeper;
let other: ZooKeeper;
let tree: TreeCache;
let log: string[];
/** Paths of deleted znodes whose last entry may lack changes. */
let stale: string[];
/** Delays of reads by path, milliseconds. */
let delays: Map<string, number>;

beforeEach(async () => {
  clock = new VirtualClock();
  delays = new Map();
  log = [];
  stale = [];
  server = new SimulatedZooKeeperServer({ clock, latencyMs: () => 1 });
  client = server.connect();
  other = server.connect();
  void client.create('/app');
  tree = treeCache(
    client,
    '/app',
    {
      onPut: ({ path, data }) => log.push(`${path} ${Buffer.from(data).toString()}`.trim()),
      onRemove: ({ path }, isCurrent) => {
        log.push(`removed ${path}`);
        if (!isCurrent) stale.push(path);
      },
    },
    { clock, readDelayMs: (path) => delays.get(path) ?? 0 },
  );
  await clock.advance(10);
  expect(tree.complete).toBe(true);
  log = [];
});

afterEach(async () => {
  tree.close();
  const closing = Promise.all([client.close(), other.close()]);
  await clock.advance(60_000);
  await closing;
});

/** Another client writes the data one after the other. */
async function write(path: string, ...contents: readonly string[]): Promise<void> {
  for (const content of contents) {
    void other.set(path, bytes(content));
    await clock.advance(5);
  }
}

async function create(path: string): Promise<void> {
  void other.create(path, bytes('new'));
  await clock.advance(5);
}

it('one read follows all changes within the delay', async () => {
  await create('/app/a');
  delays.set('/app/a', 100);
  await write('/app/a', '1', '2', '3');
  expect(log).toEqual(['/app/a new']);
  await clock.advance(100);
  expect(log).toEqual(['/app/a new', '/app/a 3']);
});

it('no read follows a deletion within the delay', async () => {
  await create('/app/a');
  delays.set('/app/a', 100);
  await write('/app/a', '1');
  void other.delete('/app/a');
  await clock.advance(1000);
  expect(log).toEqual(['/app/a new', 'removed /app/a']);
});

it('the listener learns whether changes before a deletion were not read', async () => {
  for (const path of ['/app/read', '/app/delayed', '/app/in-flight', '/app/own', '/app/missed']) await create(path);
  delays.set('/app/delayed', 100);
  await write('/app/read', '1');
  await write('/app/delayed', '1');
  void other.delete('/app/read');
  void other.delete('/app/delayed');
  void other.set('/app/in-flight', bytes('1'));
  void other.delete('/app/in-flight');
  await clock.advance(10);
  expect(stale).toEqual(['/app/delayed', '/app/in-flight']);

  const own = tree.expect(['/app/own']);
  await Promise.all([client.delete('/app/own'), clock.advance(10)]);
  own.applied([{ path: '/app/own', node: undefined }]);
  expect(stale).toHaveLength(2);

  await create('/app/contested');
  const contested = tree.expect(['/app/contested']);
  void other.set('/app/contested', bytes('1'));
  void other.delete('/app/contested');
  await clock.advance(10);
  contested.unknown();
  expect(stale.splice(2)).toEqual(['/app/contested']);

  server.partition(client);
  void other.delete('/app/missed');
  await clock.advance(10);
  server.heal(client);
  await clock.advance(10_000);
  expect(stale.slice(2)).toEqual(['/app/missed']);
});

it('a refresh ends all delays', async () => {
  await create('/app/a');
  delays.set('/app/a', 100);
  await write('/app/a', '1');
  const refreshed = tree.refresh();
  expect(refreshed).toBeDefined();
  await clock.advance(5);
  await refreshed;
  expect([log.at(-1), tree.refresh()]).toEqual(['/app/a 1', undefined]);
  await clock.advance(1000);
  expect(log).toEqual(['/app/a new', '/app/a 1']);
});

it('a question about missing znodes ends the delays of their reads only', async () => {
  await create('/app/a');
  for (const path of ['/app/a', '/app/b']) delays.set(path, 100);
  await write('/app/a', '1');
  await create('/app/b');
  expect(log).toEqual(['/app/a new']);
  const read = tree.pendingReads(() => true);
  await clock.advance(5);
  await read;
  expect(log).toEqual(['/app/a new', '/app/b new']);
});

it('the delay of one read ends when it may end', async () => {
  await create('/app/a');
  delays.set('/app/a', 100);
  await write('/app/a', '1');
  delays.delete('/app/a');
  const read = tree.pendingRead('/app/a');
  await clock.advance(5);
  await read;
  expect([log.at(-1), tree.pendingRead('/app/a')]).toEqual(['/app/a 1', undefined]);
});

it('reads of the same moment share a request', async () => {
  const total = (): number => Object.values(client.counters.requests).reduce((sum, count) => sum + count, 0);
  const before = total();
  const paths = Array.from({ length: 70 }, (_, index) => `/app/${String(index).padStart(2, '0')}`);
  void other.transaction(paths.map((path) => ({ type: 'create', path, data: bytes('1') })));
  await clock.advance(10);
  expect(log).toHaveLength(70);
  expect(total() - before).toBe(3);
});

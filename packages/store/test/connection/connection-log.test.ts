/** The log lines of an outage of ZooKeeper, on a simulated server. */

import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { SimulatedZooKeeperServer } from '@nodepool/zookeeper/simulated';
import { VirtualClock, seededRandom } from '@nodepool/core/testing';
import type { ZooKeeper } from '@nodepool/zookeeper';
import { openStore } from '@nodepool/store';
import { silentLogger, type LogFields, type Logger } from '@nodepool/core';
import { logConnection } from '../../src/connection/connection-log.js';

interface Line {
  readonly level: string;
  readonly message: string;
  readonly fields: LogFields;
}

let clock: VirtualClock;
let server: SimulatedZooKeeperServer;
let zooKeeper: ZooKeeper;
let lines: Line[];
let log: Logger;

beforeEach(() => {
  clock = new VirtualClock();
  server = new SimulatedZooKeeperServer({ clock });
  lines = [];
  const at =
    (level: string) =>
    (message: string, fields: LogFields = {}): void =>
      void lines.push({ level, message, fields });
  log = { ...silentLogger, info: at('info'), warn: at('warn'), named: () => log, with: () => log };
  zooKeeper = server.connect({ sessionTimeoutMs: 30_000, operationTimeoutMs: 5000 });
  logConnection(zooKeeper, clock, log);
});

afterEach(async () => {
  const closing = zooKeeper.close();
  await clock.advance(60_000);
  await closing;
});

const loggedLines = (): string[] => lines.splice(0).map(({ level, message }) => `${level}: ${message}`);

it('one line reports that the ZooKeeper connection was lost, and one that it is back, in any session', async () => {
  await clock.advance(1000);
  expect(loggedLines()).toEqual(['info: ZooKeeper is connected']);
  for (const [outageMs, session] of [
    [3000, 'the same'],
    [120_000, 'new'],
  ] as const) {
    server.stop();
    await clock.advance(outageMs);
    server.start();
    await clock.advance(10_000);
    expect(lines.at(-1)?.fields).toMatchObject({ session });
    expect(loggedLines()).toEqual([
      'warn: ZooKeeper cannot be reached; work in progress waits for it',
      'info: ZooKeeper is connected again',
    ]);
  }
});

it('an outage of hours is reported every ten minutes', async () => {
  await clock.advance(1000);
  loggedLines();
  server.stop();
  await clock.advance(3_600_000);
  expect(loggedLines()).toHaveLength(6);
  server.start();
});

it('concurrent failures of hundreds of reads are one line', async () => {
  const store = openStore(zooKeeper, { clock, random: seededRandom(1), identifier: 'test', log });
  const other = server.connect();
  store.start();
  await clock.advance(1000);
  const paths = Array.from({ length: 400 }, (_, index) => `/nodepool/nodes/${String(index).padStart(10, '0')}`);
  const created = Promise.all(paths.map((path) => other.create(path, Buffer.from('{"state":"ready"}'))));
  await clock.advance(1000);
  await created;
  expect(store.nodes.size).toBe(400);
  lines = [];
  // Answers take longer than the time limit of a call.
  server.setLag(zooKeeper, 6000);
  const changed = Promise.all(paths.map((path) => other.set(path, Buffer.from('{"state":"used"}'))));
  await clock.advance(25_000);
  await changed;
  expect(loggedLines()).toEqual(['warn: ZooKeeper cannot be read; cached records may be stale until it can']);
  server.setLag(zooKeeper, 0);
  await clock.advance(60_000);
  expect(loggedLines()).toEqual(['info: ZooKeeper is read again']);
  expect(new Set([...store.nodes.all()].map(({ node }) => node.state))).toEqual(new Set(['used']));
  store.close();
  const closing = other.close();
  await clock.advance(1000);
  await closing;
});

/** The send window and its effect on the session, with a server in memory and a virtual clock. */

import { afterEach, describe, expect, it } from '@jest/globals';
import { VirtualClock } from '@nodepool/core/testing';
import type { ZooKeeper } from '../../src/index.js';
import { clientInMemory, type Peer } from '../hostile/peer.js';
import { answer, writeStat } from './fake-server.js';

const PING_XID = -2;
const CLOSE_XID = 0;
const SESSION_MS = 4000;
const DATA = Buffer.alloc(4096);
/** Milliseconds: longer than any of these servers needs. */
const LONG_TIMEOUT = { timeoutMs: 1_000_000 };

let zk: ZooKeeper;
let clock: VirtualClock;
let peer: Peer;
/** Number of answered requests. */
let served: number;
let mostInFlight: number;

async function start(): Promise<void> {
  clock = new VirtualClock();
  const made = clientInMemory({
    clock,
    sessionTimeoutMs: SESSION_MS,
    maxPendingBytes: 2 ** 30,
    reconnectDelayMs: [1, 1],
  });
  zk = made.zk;
  served = 0;
  mostInFlight = 0;
  peer = await made.nextPeer();
  peer.establish(SESSION_MS);
  await zk.connected();
}

/** Answers the oldest `count` requests. */
function serve(count: number): void {
  mostInFlight = Math.max(mostInFlight, peer.xids.length - served);
  for (let left = count; left > 0 && served < peer.xids.length && !peer.ended; left--) {
    const xid = peer.xids[served++] ?? 0;
    peer.feed(answer(xid, 1n, 0, xid > 0 ? (writer) => writeStat(writer, 0) : undefined));
  }
}

/** Makes the server answer `count` requests each `everyMs`. */
function serveAtRate(count: number, everyMs: number): void {
  clock.schedule(everyMs, () => {
    serve(count);
    if (!peer.ended) serveAtRate(count, everyMs);
  });
}

afterEach(async () => {
  const closing = zk.close();
  if (!peer.ended) peer.feed(answer(CLOSE_XID, 1n, 0));
  await closing;
});

describe('a burst of 20,000 writes of 4 kB', () => {
  it.each([
    { name: 'a fast server', count: 100, everyMs: 10 },
    { name: 'a slow server', count: 1, everyMs: 10 },
    { name: 'a server that repeatedly stalls for half a second', count: 200, everyMs: 500 },
  ])('does not expire the session with $name', async ({ count, everyMs }) => {
    await start();
    const { session } = zk;
    const writes = Array.from({ length: 20_000 }, () => zk.set('/a', DATA, LONG_TIMEOUT));
    serveAtRate(count, everyMs);
    await clock.runUntil(() => zk.counters.pendingCalls === 0 || session?.lost.aborted === true);
    expect(session?.lost.aborted).toBe(false);
    await Promise.all(writes);
    expect([zk.counters.writes, zk.counters.connects, mostInFlight <= 1000]).toEqual([20_000, 1, true]);
  });

  it('leaves only the few sent writes of unknown outcome when the connection is lost', async () => {
    await start();
    const outcomes = Promise.allSettled(Array.from({ length: 20_000 }, () => zk.set('/a', DATA, { timeoutMs: 100 })));
    serveAtRate(1, 10);
    await clock.advance(50);
    peer.end();
    await clock.advance(1000);
    const codes = (await outcomes).map((outcome) =>
      outcome.status === 'fulfilled' ? 'ok' : (outcome.reason as { code: string }).code,
    );
    const count = (wanted: string): number => codes.filter((code) => code === wanted).length;
    expect(count('ok')).toBeGreaterThan(0);
    expect(count('outcome-unknown')).toBeLessThan(100);
    expect(count('ok') + count('outcome-unknown') + count('timeout')).toBe(20_000);
  });
});

it('a request larger than the window is sent when no other one is in flight', async () => {
  await start();
  const small = zk.set('/a', DATA);
  const large = zk.set('/b', Buffer.alloc(500_000));
  await clock.settle();
  expect(peer.xids).toHaveLength(1);
  serve(1);
  await clock.settle();
  expect(peer.xids).toHaveLength(2);
  serve(1);
  await Promise.all([small, large]);
});

describe('a ping', () => {
  it('is sent before queued requests, also while another ping is unanswered', async () => {
    await start();
    const writes = Promise.allSettled(Array.from({ length: 1000 }, () => zk.set('/a', DATA)));
    await clock.advance(SESSION_MS / 3 + 1);
    expect(peer.xids.filter((xid) => xid === PING_XID)).toHaveLength(1);
    expect(peer.xids.length).toBeLessThan(100);
    serve(1);
    await clock.advance(SESSION_MS / 3 + 1);
    expect(peer.xids.filter((xid) => xid === PING_XID)).toHaveLength(2);
    while (zk.counters.pendingCalls > 0) {
      serve(1000);
      await clock.advance(0);
    }
    expect((await writes).every(({ status }) => status === 'fulfilled')).toBe(true);
  });
});

describe('the number of a request', () => {
  it('is one more than that of the request before, also beyond 16 bits', async () => {
    await start();
    for (let block = 0; block < 70; block += 1) {
      const writes = Promise.all(Array.from({ length: 1000 }, () => zk.set('/a', Buffer.alloc(0), LONG_TIMEOUT)));
      while (zk.counters.pendingCalls > 0) {
        await clock.settle();
        serve(1000);
      }
      await writes;
    }
    expect(peer.xids).toEqual(Array.from({ length: 70_000 }, (_, index) => index + 1));
  });
});

describe('a large answer that arrives in small pieces', () => {
  it('keeps its connection as long as bytes arrive', async () => {
    await start();
    const got = zk.get('/large');
    await clock.settle();
    const bytes = answer(peer.xids[0] ?? 0, 1n, 0, (writer) => {
      writer.buffer(Buffer.alloc(3000));
      writeStat(writer, 0);
    });
    for (let offset = 0; offset < bytes.length; offset += 100) {
      await clock.advance(120);
      peer.feed(bytes.subarray(offset, offset + 100));
    }
    expect([(await got).data.length, zk.counters.connects, zk.state]).toEqual([3000, 1, 'connected']);
  });
});

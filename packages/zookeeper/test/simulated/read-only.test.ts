/** The simulated server in read-only mode, and the client's reaction. */

import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { VirtualClock } from '@nodepool/core/testing';
import type { WatchEvent, ZooKeeper } from '../../src/index.js';
import { SimulatedZooKeeperServer, type SimulatedClientOptions } from '../../src/simulated/index.js';

let clock: VirtualClock;
let server: SimulatedZooKeeperServer;
let clients: ZooKeeper[];

beforeEach(() => {
  clock = new VirtualClock();
  server = new SimulatedZooKeeperServer({ clock });
  clients = [];
});

afterEach(async () => {
  server.setReadOnly(false);
  const closing = Promise.all(clients.map((client) => client.close()));
  await clock.advance(60_000);
  await closing;
});

function client(options?: SimulatedClientOptions): ZooKeeper {
  const made = server.connect(options);
  clients.push(made);
  return made;
}

async function codeOf(promise: Promise<unknown>): Promise<string> {
  const code = promise.then(
    () => 'ok',
    (error: unknown) => (error as { code: string }).code,
  );
  await clock.advance(0);
  return code;
}

describe('a read-only server', () => {
  it('opens a read-only session for a client that allows it, and none for others', async () => {
    server.setReadOnly(true);
    const [lenient, strict] = [client({ readOnly: true }), client()];
    await clock.advance(1000);
    expect([lenient.session?.readOnly, strict.session]).toEqual([true, undefined]);
    expect(await codeOf(lenient.get('/'))).toBe('ok');
    for (const write of [
      lenient.create('/a'),
      lenient.delete('/a'),
      lenient.set('/a', Buffer.of(1)),
      lenient.sync('/'),
      lenient.transaction([{ type: 'check', path: '/' }]),
    ]) {
      expect(await codeOf(write)).toBe('not-read-only');
    }
    expect([...server.dump().keys()].includes('/a')).toBe(false);
  });

  it('is left for a writable one; one-shot watches end with the session', async () => {
    server.setReadOnly(true);
    const zk = client({ readOnly: true });
    const persistent: string[] = [];
    zk.watch('/', 'persistent', {
      onEvent: ({ type, path }) => persistent.push(`${type} ${path}`),
      onReset: () => persistent.push('reset'),
    });
    await clock.advance(1000);
    const received: WatchEvent[] = [];
    const { session } = zk;
    expect(await codeOf(zk.children('/', { watch: (event) => received.push(event) }))).toBe('ok');
    server.setReadOnly(false);
    await clock.advance(5000);
    expect([session?.lost.aborted, zk.session?.readOnly, zk.state]).toEqual([true, false, 'connected']);
    expect(received).toEqual([{ type: 'watch-removed', path: '/' }]);
    expect(await codeOf(zk.create('/a'))).toBe('ok');
    expect(persistent).toEqual(['reset', 'reset', 'children /']);
    expect(server.liveSessions).toHaveLength(1);
  });

  it('does not expire writable sessions, nor serve them', async () => {
    const zk = client({ sessionTimeoutMs: 10_000 });
    await clock.advance(0);
    const { session } = zk;
    expect(await codeOf(zk.create('/e', undefined, { mode: 'ephemeral' }))).toBe('ok');
    server.setReadOnly(true);
    await clock.advance(8000);
    expect([zk.state, zk.session === session]).toEqual(['suspended', true]);
    server.setReadOnly(false);
    await clock.advance(5000);
    expect([zk.state, zk.session === session, server.dump().has('/e')]).toEqual(['connected', true, true]);
  });
});

describe('a session that expired by the client’s own clock', () => {
  it('is closed at the server once that is reachable, which deletes its ephemerals', async () => {
    const zk = client({ sessionTimeoutMs: 10_000 });
    await clock.advance(0);
    expect(await codeOf(zk.create('/e', undefined, { mode: 'ephemeral' }))).toBe('ok');
    const old = zk.session?.id;
    // No session expires while the server is stopped; afterwards each has its full timeout.
    server.stop();
    await clock.advance(20_000);
    expect(zk.session).toBeUndefined();
    server.start();
    await clock.advance(2500);
    expect([zk.state, zk.session?.id === old]).toEqual(['connected', false]);
    expect(server.dump().has('/e')).toBe(false);
    expect(server.liveSessions.map(({ id }) => id)).toEqual([zk.session?.id]);
  });

  it('is closed when the client closes before the server is reachable', async () => {
    const zk = client({ sessionTimeoutMs: 10_000 });
    await clock.advance(0);
    server.stop();
    await clock.advance(20_000);
    const closed = zk.close();
    await clock.advance(0);
    await closed;
    server.start();
    await clock.advance(100_000);
    expect(server.liveSessions).toEqual([]);
  });
});

/** A server that has lost its quorum, and serves reads to clients that accept it. */

import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { startZooKeeper, type RunningZooKeeper } from '@nodepool/dev-zookeeper';
import { connect, type ClientOptions, type ZooKeeper } from '../../src/index.js';
import { bytes } from '../behaviour/harness.js';
import { errorOf, eventOf } from './helpers.js';

let ensemble: RunningZooKeeper;
let clients: ZooKeeper[] = [];

beforeAll(async () => {
  ensemble = await startZooKeeper({
    ensembleSize: 3,
    tickTime: 250,
    javaOptions: ['-Dreadonlymode.enabled=true'],
    // Without a quorum, only local sessions can be created.
    settings: { localSessionsEnabled: 'true', localSessionsUpgradingEnabled: 'true' },
  });
});

afterAll(() => ensemble.stop());

afterEach(async () => {
  await Promise.all(clients.map((client) => client.close()));
  clients = [];
});

function client(options: Partial<ClientOptions> = {}): ZooKeeper {
  const made = connect({ servers: ensemble.servers, reconnectDelayMs: [20, 100], ...options });
  clients.push(made);
  return made;
}

describe('a server without quorum', () => {
  it('serves a client that allows read-only mode, until the client finds a server with quorum', async () => {
    const writer = client();
    await writer.create('/kept', bytes('kept'));
    await writer.close();
    await Promise.all([ensemble.kill('SIGKILL', 0), ensemble.kill('SIGKILL', 1)]);
    // The last server may act as part of a quorum for a moment.
    const zk = client({ readOnly: true, sessionTimeoutMs: 5000 });
    const [session] = await eventOf(zk, 'session', (made) => made.readOnly);
    expect([zk.session === session, session.confirmed, zk.state]).toEqual([true, true, 'connected']);
    expect(Buffer.from((await zk.get('/kept')).data).toString()).toBe('kept');
    const refused = await errorOf(zk.set('/kept', bytes('changed')));
    expect(refused).toMatchObject({ code: 'not-read-only', outcome: 'not-applied', path: '/kept' });

    const strict = client();
    expect(await errorOf(strict.connected({ timeoutMs: 500 }))).toMatchObject({ code: 'timeout' });

    // On a busy machine, other read-only sessions may come between the first one and this.
    const next = eventOf(zk, 'session', (made) => !made.readOnly).then(([made]) => [
      made.readOnly,
      zk.session === made,
      session.lost.aborted,
    ]);
    await Promise.all([ensemble.restart(0), ensemble.restart(1)]);
    expect(await next).toEqual([false, true, true]);
    expect((await zk.set('/kept', bytes('changed'))).version).toBe(1);
    expect((await strict.connected()).readOnly).toBe(false);
  });

  it('does not get a writable session, which waits for the quorum until it expires', async () => {
    const zk = client({ readOnly: true, sessionTimeoutMs: 2000 });
    const session = await zk.connected();
    expect(session.readOnly).toBe(false);
    const readOnly = eventOf(zk, 'session', (made) => made.readOnly);
    const writable = readOnly.then(() => eventOf(zk, 'session', (made) => !made.readOnly));
    await Promise.all([ensemble.kill('SIGKILL', 0), ensemble.kill('SIGKILL', 2)]);
    await readOnly;
    expect(session.lost.aborted).toBe(true);
    await zk.get('/');
    await Promise.all([ensemble.restart(0), ensemble.restart(2)]);
    await writable;
  });
});

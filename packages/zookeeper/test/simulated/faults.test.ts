/** Faults of the simulated server, as its clients see them. */
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { VirtualClock } from '@nodepool/core/testing';
import type { ConnectionState, ZooKeeper } from '../../src/index.js';
import { SimulatedZooKeeperServer, type SimulatedClientOptions } from '../../src/simulated/index.js';
import { bytes } from '../behaviour/harness.js';

let clock: VirtualClock;
let server: SimulatedZooKeeperServer;
let clients: ZooKeeper[];

beforeEach(() => {
  clock = new VirtualClock();
  server = new SimulatedZooKeeperServer({ clock });
  clients = [];
});

afterEach(async () => {
  server.start();
  const closing = Promise.all(clients.map((client) => client.close()));
  await clock.advance(60_000);
  await closing;
});

async function connected(options?: SimulatedClientOptions): Promise<ZooKeeper> {
  const client = server.connect(options);
  clients.push(client);
  const session = client.connected();
  await clock.advance(0);
  await session;
  return client;
}

/** Returns the outcome of a promise so far, after `ms`. */
async function after<T>(ms: number, promise: Promise<T>): Promise<T | string> {
  let outcome: T | string = 'pending';
  promise.then(
    (value) => {
      outcome = value;
    },
    (error: unknown) => {
      outcome = error instanceof Error && 'code' in error ? String(error.code) : String(error);
    },
  );
  await clock.advance(ms);
  return outcome;
}

describe('a client that is closed by a listener', () => {
  it.each(['lost', 'state', 'signal'] as const)('of the loss of its session (%s) stays closed', async (by) => {
    const client = await connected();
    const states: ConnectionState[] = [];
    const close = (): void => void client.close();
    if (by === 'lost') client.on('lost', close);
    if (by === 'signal') client.session?.lost.addEventListener('abort', close);
    client.on('state', (state) => {
      states.push(state);
      if (by === 'state' && state === 'connecting') close();
    });
    server.expireSession(client);
    await clock.advance(60_000);
    expect([client.state, states.at(-1), states.filter((state) => state === 'closed')]).toEqual([
      'closed',
      'closed',
      ['closed'],
    ]);
  });
});

describe('a partition', () => {
  it('suspends the client, which resumes its session when the partition ends in time', async () => {
    const client = await connected({ sessionTimeoutMs: 10_000 });
    const states: ConnectionState[] = [];
    client.on('state', (state) => states.push(state));
    const { session } = client;
    server.partition(client);
    const read = client.exists('/');
    expect(await after(5000, read)).toBe('pending');
    expect([client.state, session?.confirmed]).toEqual(['suspended', false]);
    server.heal(client);
    expect(await after(3000, read)).toMatchObject({ version: 0 });
    expect(client.session).toBe(session);
    expect(states).toEqual(['suspended', 'connected']);
  });

  it('expires the session when it lasts longer, at the client before the server', async () => {
    const client = await connected({ sessionTimeoutMs: 10_000 });
    await after(0, client.create('/e', undefined, { mode: 'ephemeral' }));
    const lost = client.session?.lost;
    server.partition(client);
    await clock.advance(10_000);
    expect([lost?.aborted, server.dump().has('/e'), client.state]).toEqual([true, true, 'connecting']);
    await clock.advance(2000);
    expect(server.dump().has('/e')).toBe(false);
    server.heal(client);
    await clock.advance(5000);
    expect([client.state, client.session === undefined]).toEqual(['connected', false]);
  });

  it('without any traffic is noticed by the client after two thirds of the session timeout', async () => {
    const client = await connected({ sessionTimeoutMs: 9000 });
    server.partition(client, 'silent');
    await clock.advance(5999);
    expect(client.state).toBe('connected');
    await clock.advance(3000);
    expect(client.state).not.toBe('connected');
  });

  it('without any traffic only delays pending calls when it ends in time', async () => {
    const client = await connected({ sessionTimeoutMs: 9000 });
    const { session } = client;
    server.partition(client, 'silent');
    const created = client.create('/a');
    expect(await after(2000, created)).toBe('pending');
    expect(server.dump().has('/a')).toBe(false);
    server.heal(client);
    expect(await after(0, created)).toMatchObject({ path: '/a' });
    expect(client.session).toBe(session);
  });
});

describe('a write that is lost with its connection', () => {
  it.each([
    ['before-applied', false],
    ['after-applied', true],
  ] as const)('%s is of unknown outcome', async (when, applied) => {
    const client = await connected();
    server.loseNextWrite(client, when, (request) => request.type === 'create' && request.path === '/a');
    expect(await after(0, client.create('/other'))).toMatchObject({ path: '/other' });
    const create = client.create('/a');
    const read = client.exists('/other');
    expect(await after(5000, create)).toBe('outcome-unknown');
    expect(await after(0, read)).toMatchObject({ version: 0 });
    expect(server.dump().has('/a')).toBe(applied);
    expect(client.state).toBe('connected');
  });
});

describe('the simulated server', () => {
  it('keeps sessions and their ephemerals while it is stopped', async () => {
    const client = await connected({ sessionTimeoutMs: 40_000 });
    await after(0, client.create('/e', undefined, { mode: 'ephemeral' }));
    const { session } = client;
    server.stop();
    await clock.advance(30_000);
    expect([client.state, server.dump().has('/e')]).toEqual(['suspended', true]);
    server.start();
    await clock.advance(5000);
    expect([client.state, client.session === session, server.dump().has('/e')]).toEqual(['connected', true, true]);
  });

  it('gives all sessions their full timeout after a restart, then expires those without a client', async () => {
    const client = await connected({ sessionTimeoutMs: 10_000 });
    await after(0, client.create('/e', undefined, { mode: 'ephemeral' }));
    server.partition(client);
    server.stop();
    await clock.advance(60_000);
    server.start();
    await clock.advance(9000);
    expect(server.liveSessions).toMatchObject([{ connected: false }]);
    await clock.advance(4000);
    expect([server.liveSessions, server.dump().has('/e')]).toEqual([[], false]);
    server.heal(client);
  });

  it('gives its clients new sessions after it was reset to an older state', async () => {
    const client = await connected({ sessionTimeoutMs: 10_000 });
    await after(0, client.create('/a', bytes('old')));
    const snapshot = server.snapshot();
    await after(0, client.set('/a', bytes('new')));
    await after(0, client.create('/b'));
    const { session } = client;
    server.restore(snapshot);
    await clock.advance(30_000);
    expect([client.state, session?.lost.aborted]).toEqual(['connected', true]);
    expect([...server.dump().keys()]).not.toContain('/b');
    expect(await after(0, client.get('/a'))).toMatchObject({ stat: { version: 0 } });
  });

  it('answers a lagging client late, with events in order', async () => {
    const [client, other] = [await connected(), await connected()];
    const log: string[] = [];
    client.watch('/', 'persistent-recursive', { onEvent: ({ type, path }) => log.push(`${type} ${path}`) });
    await clock.advance(0);
    server.setLag(client, 500);
    await after(0, other.create('/a'));
    await after(0, other.create('/b'));
    void client.exists('/a').then(() => log.push('answer'));
    await clock.advance(499);
    expect(log).toEqual([]);
    await clock.advance(1);
    expect(log).toEqual(['created /a', 'created /b', 'answer']);
  });

  it('deletes containers that became empty, not those that never had a child', async () => {
    const client = await connected();
    await after(0, client.create('/used', undefined, { mode: 'container' }));
    await after(0, client.create('/unused', undefined, { mode: 'container' }));
    await after(0, client.create('/used/child'));
    await clock.advance(120_000);
    expect(server.dump().has('/used')).toBe(true);
    await after(0, client.delete('/used/child'));
    await clock.advance(120_000);
    expect([server.dump().has('/used'), server.dump().has('/unused')]).toEqual([false, true]);
  });

  it('deletes unused TTL znodes when they are enabled', async () => {
    server = new SimulatedZooKeeperServer({ clock, ttlNodes: true });
    const client = await connected();
    await after(0, client.create('/t', undefined, { mode: 'persistent-ttl', ttlMs: 90_000 }));
    await clock.advance(61_000);
    expect(server.dump().has('/t')).toBe(true);
    await clock.advance(120_000);
    expect(server.dump().has('/t')).toBe(false);
  });

  it('notifies checkers of every change right after it was applied', async () => {
    const client = await connected();
    const seen: string[] = [];
    const stop = server.onCommit((changes, zxid) => {
      expect(zxid).toBe(server.lastZxid);
      seen.push(changes.map(({ type, path }) => `${type} ${path}`).join(', '));
    });
    await after(
      0,
      client.transaction([
        { type: 'create', path: '/a' },
        { type: 'create', path: '/a/b' },
      ]),
    );
    stop();
    await after(0, client.create('/c'));
    expect(seen).toEqual(['created /a, created /a/b']);
  });

  it('replays a run exactly', async () => {
    const run = async (): Promise<string> => {
      const itsClock = new VirtualClock();
      let count = 0;
      const itsServer = new SimulatedZooKeeperServer({ clock: itsClock, latencyMs: () => (count++ * 7) % 13 });
      const trace: string[] = [];
      itsServer.onCommit((changes, zxid) => {
        trace.push(`${itsClock.monotonic()} ${zxid} ${changes.map(({ path }) => path).join(' ')}`);
      });
      const writers = [0, 1, 2].map((writer) => {
        const client = itsServer.connect();
        const write = async (): Promise<void> => {
          for (let index = 0; index < 20; index++) {
            await client.create(`/w${writer}-`, undefined, { mode: 'ephemeral-sequential' });
            if (index === 10) itsServer.disconnect(client);
          }
          await client.close();
        };
        return write();
      });
      await itsClock.advance(60_000);
      await Promise.all(writers);
      return trace.join('\n');
    };
    const first = await run();
    expect(first.split('\n').length).toBeGreaterThan(60);
    expect(await run()).toBe(first);
  });
});

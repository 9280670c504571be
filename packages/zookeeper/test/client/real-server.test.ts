/** The client on real servers that are restarted, stopped and continued. */

import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { startZooKeeper, type RunningZooKeeper } from '@nodepool/dev-zookeeper';
import { connect, type ClientOptions, type WatchEvent, type ZooKeeper } from '../../src/index.js';
import { bytes, textOf } from '../behaviour/harness.js';
import { errorOf, eventOf, turn } from './helpers.js';

let server: RunningZooKeeper;
let clients: ZooKeeper[] = [];

/**
 * Limits that a busy machine does not reach. A starting server can ignore an attempt to connect; the client retries.
 */
const LONG_SESSION_MS = 120_000;
const LONG_TIMEOUTS = { sessionTimeoutMs: LONG_SESSION_MS, operationTimeoutMs: 600_000, connectTimeoutMs: 5000 };
const settings = { maxSessionTimeout: LONG_SESSION_MS };

beforeAll(async () => {
  // Short ticks allow short sessions (from 2 ticks).
  server = await startZooKeeper({ tickTime: 500, settings: { ...settings, extendedTypesEnabled: 'true' } });
});

afterAll(() => server.stop());

afterEach(async () => {
  await Promise.all(clients.map((client) => client.close()));
  clients = [];
});

async function client(options: Partial<ClientOptions> = {}): Promise<ZooKeeper> {
  const made = connect({ servers: server.servers, ...LONG_TIMEOUTS, reconnectDelayMs: [20, 100], ...options });
  clients.push(made);
  await made.connected();
  return made;
}

describe('a burst of writes', () => {
  it('keeps the session and is applied completely', async () => {
    const zk = await client({ maxPendingBytes: 2 ** 30 });
    const { session } = zk;
    await zk.create('/burst');
    const data = Buffer.alloc(4096);
    let mostInFlight = 0;
    const writes = Array.from({ length: 5000 }, async (_, index) => {
      await zk.create(`/burst/${index}`, data);
      mostInFlight = Math.max(mostInFlight, zk.counters.inFlight);
    });
    await Promise.all(writes);
    expect([zk.session === session, zk.counters.connects, mostInFlight <= 1000]).toEqual([true, 1, true]);
    expect((await zk.children('/burst')).children).toHaveLength(5000);
  });
});

describe('the client, while a server is restarted', () => {
  it('queues calls, resumes the session with its ephemerals, and sets watches again', async () => {
    const [zk, other] = [await client(), await client()];
    await zk.create('/restart', bytes('before'));
    await zk.create('/restart-ephemeral', undefined, { mode: 'ephemeral' });
    const { session } = zk;
    const received = new Promise<WatchEvent>((resolve) => void zk.get('/restart', { watch: resolve }));
    await zk.sync('/');
    const suspended = [eventOf(zk, 'state'), eventOf(other, 'state')];
    await server.kill('SIGKILL');
    await Promise.all(suspended);
    expect([zk.state, session?.confirmed]).toEqual(['suspended', false]);
    const created = zk.create('/restart-created', bytes('waited'));
    await server.restart();
    expect((await created).path).toBe('/restart-created');
    expect([zk.session === session, session?.confirmed, session?.lost.aborted]).toEqual([true, true, false]);
    expect((await other.exists('/restart-ephemeral'))?.ephemeralOwner).toBe(session?.id);
    await other.set('/restart', bytes('after'));
    expect(await received).toEqual({ type: 'changed', path: '/restart' });
  });

  it('reports an unanswered write as of unknown outcome, and repeats a read', async () => {
    const zk = await client();
    await zk.create('/unanswered', bytes('before'));
    await server.pause();
    const write = errorOf(zk.set('/unanswered', bytes('after')));
    const read = zk.get('/unanswered');
    await turn();
    expect([zk.counters.requests['set'], zk.counters.inFlight]).toEqual([1, 2]);
    await server.kill('SIGKILL');
    expect(await write).toMatchObject({ code: 'outcome-unknown', operation: 'set', path: '/unanswered' });
    await server.restart();
    expect(['before', 'after']).toContain(textOf((await read).data));
  });

  it('ends each of many calls over several restarts with a result or one of its own errors', async () => {
    const zk = await client();
    await zk.create('/busy', bytes('0'));
    let restarting = true;
    const codes = new Set<string>();
    let answered = 0;
    const busy = (async () => {
      while (restarting) {
        const calls = [zk.get('/busy'), zk.set('/busy', bytes('1')), zk.exists('/nothing'), zk.children('/')];
        for (const outcome of await Promise.allSettled(calls)) {
          if (outcome.status === 'fulfilled') answered++;
          else codes.add((outcome.reason as { code: string }).code);
        }
      }
    })();
    for (let round = 0; round < 3; round++) {
      await server.kill('SIGKILL');
      await server.restart();
      await zk.connected();
    }
    restarting = false;
    await busy;
    expect(answered).toBeGreaterThan(0);
    expect([...codes].filter((code) => code !== 'outcome-unknown')).toEqual([]);
    expect(zk.counters.inFlight).toBe(0);
  });
});

describe('a session', () => {
  it('expires by the client’s own clock when the server hangs, and is replaced afterwards', async () => {
    const [zk, other] = [await client({ sessionTimeoutMs: 1000 }), await client()];
    await zk.create('/hang', undefined, { mode: 'ephemeral' });
    const gone = new Promise<WatchEvent>((resolve) => void other.exists('/hang', { watch: resolve }));
    await other.sync('/');
    const lost = eventOf(zk, 'lost');
    await server.pause();
    const [session, error] = await lost;
    expect(error).toMatchObject({ code: 'session-lost' });
    expect([session.lost.aborted, session.timeoutMs, zk.session]).toEqual([true, 1000, undefined]);
    await server.continue();
    const next = await zk.connected();
    expect(next.id).not.toBe(session.id);
    expect((await gone).type).toBe('deleted');
  });

  it('that expired at the server while the client was disconnected is reported as lost once', async () => {
    const zk = await client({ sessionTimeoutMs: 1000 });
    const losses: unknown[] = [];
    zk.on('lost', (session) => losses.push(session.id));
    const first = zk.session;
    const suspended = eventOf(zk, 'state');
    await server.kill('SIGKILL');
    await suspended;
    await eventOf(zk, 'lost');
    await server.restart();
    expect((await zk.connected()).id).not.toBe(first?.id);
    expect(losses).toEqual([first?.id]);
  });

  it('has the timeout that the server grants', async () => {
    const zk = await client({ sessionTimeoutMs: 2 * LONG_SESSION_MS });
    expect(zk.session?.timeoutMs).toBe(LONG_SESSION_MS);
  });
});

describe('a real server', () => {
  it('answers a thousand concurrent calls each with its own result', async () => {
    const zk = await client();
    await zk.create('/many');
    const names = Array.from({ length: 1000 }, (_, index) => `/many/${index}`);
    await Promise.all(names.map((path) => zk.create(path, bytes(path))));
    const answers = await Promise.all(names.map((path) => zk.get(path)));
    expect(answers.map(({ data }) => textOf(data))).toEqual(names);
    const { requests, writes, connects } = zk.counters;
    expect([requests['create'], requests['get'], writes, connects]).toEqual([1001, 1000, 1001, 1]);
  });

  it('rejects a too large request without effect on other calls', async () => {
    const zk = await client();
    const [refused, created] = [errorOf(zk.create('/large', Buffer.alloc(2 ** 20))), zk.create('/small')];
    expect(await refused).toMatchObject({ code: 'invalid-argument', path: '/large' });
    await created;
    await zk.create('/just-fits', Buffer.alloc(0xfffff - 200));
    expect(zk.counters.connects).toBe(1);
  });

  it('enforces an access control list', async () => {
    const owner = await client({ auth: [{ scheme: 'digest', auth: 'me:secret' }] });
    const stranger = await client();
    await owner.create('/mine', bytes('x'), { acl: [{ permissions: 31, scheme: 'auth', id: '' }] });
    expect(await errorOf(stranger.get('/mine'))).toMatchObject({ code: 'no-auth' });
    expect(textOf((await owner.get('/mine')).data)).toBe('x');
    expect((await owner.getAcl('/mine')).acl).toMatchObject([{ permissions: 31, scheme: 'digest' }]);
    await owner.setAcl('/mine', [{ permissions: 31, scheme: 'world', id: 'anyone' }], { version: 0 });
    expect(textOf((await stranger.get('/mine')).data)).toBe('x');
  });

  it('rejects an unknown authentication scheme, which closes the client', async () => {
    const zk = connect({ servers: server.servers, auth: [{ scheme: 'nonsense', auth: '' }] });
    await eventOf(zk, 'state', (state) => state === 'closed');
    expect(await errorOf(zk.connected())).toMatchObject({ code: 'auth-failed' });
  });

  it('creates containers and znodes with a time to live', async () => {
    const zk = await client();
    await zk.create('/container', undefined, { mode: 'container' });
    const ttl = await zk.create('/ttl-', bytes('x'), { mode: 'persistent-sequential-ttl', ttlMs: 60_000 });
    expect(ttl.path).toMatch(/^\/ttl-\d{10}$/);
    expect(await errorOf(zk.create('/ttl', undefined, { mode: 'persistent-ttl' }))).toMatchObject({
      code: 'invalid-argument',
    });
  });
});

describe('a server with TLS', () => {
  let secure: RunningZooKeeper;
  let wrong: RunningZooKeeper;

  beforeAll(async () => {
    [secure, wrong] = await Promise.all([startZooKeeper({ tls: true, settings }), startZooKeeper({ tls: true })]);
  });

  afterAll(() => Promise.all([secure.stop(), wrong.stop()]));

  it('accepts a client with a certificate, also after a lost connection', async () => {
    const zk = await client({ servers: secure.tlsServers!, tls: secure.tls! });
    await zk.create('/tls', bytes('x'.repeat(500_000)));
    expect((await zk.get('/tls')).data.length).toBe(500_000);
    const { session } = zk;
    await secure.kill('SIGKILL');
    await secure.restart();
    expect((await zk.get('/tls')).stat.version).toBe(0);
    expect(zk.session).toBe(session);
  });

  it('with a certificate of another authority is rejected by the client, with that reason', async () => {
    const zk = connect({ servers: secure.tlsServers!, tls: { ...secure.tls!, ca: wrong.tls!.ca } });
    clients.push(zk);
    await eventOf(zk, 'warning');
    const error = await errorOf(zk.connected({ timeoutMs: 10 }));
    expect(error).toMatchObject({ code: 'timeout', message: expect.stringMatching(/certificate|signature/) });
    expect(zk.counters.connects).toBe(0);
  });

  it('grants no session to a client without a certificate', async () => {
    const zk = connect({ servers: secure.tlsServers!, tls: { ca: secure.tls!.ca } });
    clients.push(zk);
    const [warning] = await eventOf(zk, 'warning');
    expect(warning).toMatchObject({ code: 'connection-lost' });
    expect(zk.session).toBeUndefined();
  });

  it('is not contacted when a certificate file is missing; the error names the file', async () => {
    const zk = connect({ servers: secure.tlsServers!, tls: { ca: '/nonexistent/ca.pem' } });
    clients.push(zk);
    const [warning] = await eventOf(zk, 'warning');
    expect(warning).toMatchObject({
      code: 'invalid-argument',
      message: expect.stringContaining('/nonexistent/ca.pem'),
    });
  });
});

describe('an ensemble of three servers', () => {
  let ensemble: RunningZooKeeper;

  beforeAll(async () => {
    ensemble = await startZooKeeper({ ensembleSize: 3, tickTime: 500, settings });
  });

  afterAll(() => ensemble.stop());

  it('preserves session and data when the leader dies', async () => {
    const zk = await client({ servers: ensemble.servers });
    await zk.create('/survivor', bytes('x'), { mode: 'ephemeral' });
    const { session } = zk;
    const leader = await ensemble.leader();
    await ensemble.kill('SIGKILL', leader);
    // The calls are in flight on a failing connection, or wait for the next one.
    const set = await zk.set('/survivor', bytes('y')).catch(() => zk.set('/survivor', bytes('y')));
    expect(set.version).toBeGreaterThan(0);
    expect([zk.session === session, session?.lost.aborted]).toEqual([true, false]);
    await ensemble.restart(leader);
  });

  it('transfers the session from a hanging server to another one, which sends the missed events', async () => {
    const leader = await ensemble.leader();
    const all = ensemble.servers.split(',');
    const hanging = all.findIndex((_server, index) => index !== leader);
    const others = all.filter((_server, index) => index !== hanging);
    // The random source keeps the order, so the first server is the one that will hang.
    const random = { next: () => 0 };
    const zk = await client({ servers: [all[hanging]!, ...others], sessionTimeoutMs: 12_000, random });
    const other = await client({ servers: others });
    await zk.create('/missed');
    const received = new Promise<WatchEvent>((resolve) => void zk.get('/missed', { watch: resolve }));
    await zk.sync('/');
    const { session } = zk;
    const resumed = eventOf(zk, 'resumed');
    await ensemble.pause(hanging);
    await other.set('/missed', bytes('while it hung'));
    await resumed;
    expect(zk.session).toBe(session);
    expect(await received).toEqual({ type: 'changed', path: '/missed' });
    await ensemble.continue(hanging);
  });
});

/** The client on real servers that are restarted, stopped and continued. */

import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { startZooKeeper, type RunningZooKeeper } from '@nodepool/dev-zookeeper';
import { connect, type ClientOptions, type WatchEvent, type ZooKeeper } from '../../src/index.js';
import { errorOf, eventOf, turn } from './helpers.js';

let server: RunningZooKeeper;
let clients: ZooKeeper[] = [];

/**
 * Limits that a busy machine does not reach. A starting server can ignore an attempt to connect; the client retries.
 */
const LONG_SESSION_MS = 120_000;
const PATIENCE = { sessionTimeoutMs: LONG_SESSION_MS, operationTimeoutMs: 600_000, connectTimeoutMs: 5000 };
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
  const made = connect({ servers: server.servers, ...PATIENCE, reconnectDelayMs: [20, 100], ...options });
  clients.push(made);
  await made.connected();
  return made;
}

describe('a burst of writes', () => {
  it('keeps the session, and is applied as a whole', async () => {
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

const bytes = (text: string): Uint8Array => Buffer.from(text);
const textOf = (data: Uint8Array): string => Buffer.from(data).toString();

describe('while a server is restarted', () => {
  it('calls wait, the session is resumed, its ephemerals stay, and watches are set again', async () => {
    const [zk, other] = [await client(), await client()];
    await zk.create('/restart', bytes('before'));
    await zk.create('/restart-ephemeral', undefined, { mode: 'ephemeral' });
    const { session } = zk;
    const told = new Promise<WatchEvent>((resolve) => void zk.get('/restart', { watch: resolve }));
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
    expect(await told).toEqual({ type: 'changed', path: '/restart' });
  });

  it('a write that it did not answer is of unknown outcome, a read is answered afterwards', async () => {
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

  it('a call every moment, over several restarts, ends in its result or an error of its own', async () => {
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
  it('is lost by our own clock when the server hangs for longer than it, and replaced when it goes on', async () => {
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

  it('that expired at the server while we were away is reported as lost, once', async () => {
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

  it('gets the timeout that the server grants', async () => {
    const zk = await client({ sessionTimeoutMs: 2 * LONG_SESSION_MS });
    expect(zk.session?.timeoutMs).toBe(LONG_SESSION_MS);
  });
});

describe('on a real server', () => {
  it('a thousand calls at once are answered each with its own result', async () => {
    const zk = await client();
    await zk.create('/many');
    const names = Array.from({ length: 1000 }, (_, index) => `/many/${index}`);
    await Promise.all(names.map((path) => zk.create(path, bytes(path))));
    const answers = await Promise.all(names.map((path) => zk.get(path)));
    expect(answers.map(({ data }) => textOf(data))).toEqual(names);
    const { requests, writes, connects } = zk.counters;
    expect([requests['create'], requests['get'], writes, connects]).toEqual([1001, 1000, 1001, 1]);
  });

  it('a request that is too large is refused, and nothing else suffers', async () => {
    const zk = await client();
    const [refused, created] = [errorOf(zk.create('/large', Buffer.alloc(2 ** 20))), zk.create('/small')];
    expect(await refused).toMatchObject({ code: 'invalid-argument', path: '/large' });
    await created;
    await zk.create('/just-fits', Buffer.alloc(0xfffff - 200));
    expect(zk.counters.connects).toBe(1);
  });

  it('an access control list of our own keeps others out', async () => {
    const owner = await client({ auth: [{ scheme: 'digest', auth: 'me:secret' }] });
    const stranger = await client();
    await owner.create('/mine', bytes('x'), { acl: [{ permissions: 31, scheme: 'auth', id: '' }] });
    expect(await errorOf(stranger.get('/mine'))).toMatchObject({ code: 'no-auth' });
    expect(textOf((await owner.get('/mine')).data)).toBe('x');
    expect((await owner.getAcl('/mine')).acl).toMatchObject([{ permissions: 31, scheme: 'digest' }]);
    await owner.setAcl('/mine', [{ permissions: 31, scheme: 'world', id: 'anyone' }], { version: 0 });
    expect(textOf((await stranger.get('/mine')).data)).toBe('x');
  });

  it('a scheme that it does not know makes the client give up', async () => {
    const zk = connect({ servers: server.servers, auth: [{ scheme: 'nonsense', auth: '' }] });
    await eventOf(zk, 'state', (state) => state === 'closed');
    expect(await errorOf(zk.connected())).toMatchObject({ code: 'auth-failed' });
  });

  it('containers and znodes with a time to live are made', async () => {
    const zk = await client();
    await zk.create('/container', undefined, { mode: 'container' });
    const ttl = await zk.create('/ttl-', bytes('x'), { mode: 'persistent-sequential-ttl', ttlMs: 60_000 });
    expect(ttl.path).toMatch(/^\/ttl-\d{10}$/);
    expect(await errorOf(zk.create('/ttl', undefined, { mode: 'persistent-ttl' }))).toMatchObject({
      code: 'invalid-argument',
    });
  });
});

describe('with TLS', () => {
  let secure: RunningZooKeeper;
  let wrong: RunningZooKeeper;

  beforeAll(async () => {
    [secure, wrong] = await Promise.all([startZooKeeper({ tls: true, settings }), startZooKeeper({ tls: true })]);
  });

  afterAll(() => Promise.all([secure.stop(), wrong.stop()]));

  it('a client with a certificate is served, also after the connection was lost', async () => {
    const zk = await client({ servers: secure.tlsServers!, tls: secure.tls! });
    await zk.create('/tls', bytes('x'.repeat(500_000)));
    expect((await zk.get('/tls')).data.length).toBe(500_000);
    const { session } = zk;
    await secure.kill('SIGKILL');
    await secure.restart();
    expect((await zk.get('/tls')).stat.version).toBe(0);
    expect(zk.session).toBe(session);
  });

  it('a server whose certificate another authority signed is refused, and the error says so', async () => {
    const zk = connect({ servers: secure.tlsServers!, tls: { ...secure.tls!, ca: wrong.tls!.ca } });
    clients.push(zk);
    await eventOf(zk, 'warning');
    const error = await errorOf(zk.connected({ timeoutMs: 10 }));
    expect(error).toMatchObject({ code: 'timeout', message: expect.stringMatching(/certificate|signature/) });
    expect(zk.counters.connects).toBe(0);
  });

  it('a client without a certificate gets no session', async () => {
    const zk = connect({ servers: secure.tlsServers!, tls: { ca: secure.tls!.ca } });
    clients.push(zk);
    const [warning] = await eventOf(zk, 'warning');
    expect(warning).toMatchObject({ code: 'connection-lost' });
    expect(zk.session).toBeUndefined();
  });

  it('a file that is not there is named', async () => {
    const zk = connect({ servers: secure.tlsServers!, tls: { ca: '/nonexistent/ca.pem' } });
    clients.push(zk);
    const [warning] = await eventOf(zk, 'warning');
    expect(warning).toMatchObject({
      code: 'invalid-argument',
      message: expect.stringContaining('/nonexistent/ca.pem'),
    });
  });
});

describe('with an ensemble of three', () => {
  let ensemble: RunningZooKeeper;

  beforeAll(async () => {
    ensemble = await startZooKeeper({ ensembleSize: 3, tickTime: 500, settings });
  });

  afterAll(() => ensemble.stop());

  it('the session survives the death of the leader, and what was written is there', async () => {
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

  it('a server that hangs is left for another within the session, and watches tell of what was missed', async () => {
    const leader = await ensemble.leader();
    const all = ensemble.servers.split(',');
    const hanging = all.findIndex((_server, index) => index !== leader);
    const others = all.filter((_server, index) => index !== hanging);
    // The random source keeps the order, so the first server is the one that will hang.
    const random = { next: () => 0 };
    const zk = await client({ servers: [all[hanging]!, ...others], sessionTimeoutMs: 12_000, random });
    const other = await client({ servers: others });
    await zk.create('/missed');
    const told = new Promise<WatchEvent>((resolve) => void zk.get('/missed', { watch: resolve }));
    await zk.sync('/');
    const { session } = zk;
    const resumed = eventOf(zk, 'resumed');
    await ensemble.pause(hanging);
    await other.set('/missed', bytes('while it hung'));
    await resumed;
    expect(zk.session).toBe(session);
    expect(await told).toEqual({ type: 'changed', path: '/missed' });
    await ensemble.continue(hanging);
  });
});

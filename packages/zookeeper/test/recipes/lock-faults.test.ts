/** Locks when connections, answers and sessions are lost at critical moments: no contender is left behind. */
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { VirtualClock } from '@nodepool/core/testing';
import { election, lockRecipe, type HeldLock, type Locks, type ZooKeeper } from '../../src/index.js';
import { SimulatedZooKeeperServer } from '../../src/simulated/index.js';

let clock: VirtualClock;
let server: SimulatedZooKeeperServer;
let client: ZooKeeper;
let other: ZooKeeper;
let locks: Locks;
let otherLocks: Locks;

beforeEach(async () => {
  clock = new VirtualClock();
  server = new SimulatedZooKeeperServer({ clock, latencyMs: 1 });
  client = server.connect({ sessionTimeoutMs: 10_000 });
  other = server.connect({ sessionTimeoutMs: 10_000 });
  let count = 0;
  const random = { uuidHex: (): string => String(count++).padStart(32, '0') };
  locks = lockRecipe(client, { clock, random });
  otherLocks = lockRecipe(other, { clock, random });
  await clock.advance(100);
});

afterEach(async () => {
  const closing = Promise.all([client.close(), other.close()]);
  await clock.advance(60_000);
  await closing;
});

/** Advances the clock until the promise settles. */
async function settled<T>(promise: Promise<T>): Promise<T> {
  let done = false;
  const finish = (): void => {
    done = true;
  };
  promise.then(finish, finish);
  expect(await clock.runUntil(() => done, 120_000)).toBe(true);
  return promise;
}

/** Lets the session expire before the calls of this turn are sent; the next session sends them and gets no answer. */
async function nextSessionSends(): Promise<void> {
  server.partition(client);
  await clock.advance(15_000);
  server.loseNextWrite(client, 'after-applied');
  server.heal(client);
}

const contenders = (path = '/lock/'): string[] => [...server.dump().keys()].filter((znode) => znode.startsWith(path));
const isContender = (request: { readonly type: string; readonly path?: string }): boolean =>
  request.type === 'create' && request.path?.includes('__lock__') === true;

describe('acquire', () => {
  it.each(['before-applied', 'after-applied'] as const)(
    'acquires once when the connection is lost with the creation %s',
    async (when) => {
      await settled(client.create('/lock'));
      server.loseNextWrite(client, when, isContender);
      const lock = await settled(locks.acquire('/lock'));
      expect(contenders()).toEqual([lock.contender]);
      await settled(lock.release());
      expect(contenders()).toEqual([]);
    },
  );

  it('acquires with the next session if the contender’s session expires before its creation is known', async () => {
    await settled(client.create('/lock'));
    const create = client.create.bind(client);
    let created: string | undefined;
    client.create = async (path, data, options) => {
      const answer = await create(path, data, options);
      if (created !== undefined) return answer;
      created = answer.path;
      server.partition(client);
      await new Promise<void>((resolve) => clock.schedule(15_000, resolve));
      server.heal(client);
      await client.connected();
      return answer;
    };
    const lock = await settled(locks.acquire('/lock'));
    expect(lock.contender).not.toBe(created);
    expect(contenders()).toEqual([lock.contender]);
    expect(lock.lost.aborted).toBe(false);
  });

  it('deletes the contender after an abort while the connection is suspended', async () => {
    const held = await settled(otherLocks.acquire('/lock'));
    const controller = new AbortController();
    const waiting = locks.acquire('/lock', { signal: controller.signal });
    await clock.advance(100);
    expect(contenders()).toHaveLength(2);
    server.partition(client);
    const reason = new Error('enough');
    controller.abort(reason);
    await expect(settled(waiting)).rejects.toBe(reason);
    expect([locks.removals, contenders().length]).toEqual([1, 2]);
    server.heal(client);
    await settled(locks.idle());
    expect(contenders()).toEqual([held.contender]);
  });

  it('leaves no contender when it is aborted before the answer to its creation', async () => {
    await settled(client.create('/lock'));
    const controller = new AbortController();
    const waiting = locks.acquire('/lock', { signal: controller.signal });
    await clock.runNext();
    controller.abort(new Error('enough'));
    await expect(settled(waiting)).rejects.toThrow('enough');
    await settled(locks.idle());
    await clock.advance(100);
    expect(contenders()).toEqual([]);
  });

  it('leaves no contender when it is aborted after the next session created it', async () => {
    await settled(client.create('/lock'));
    const controller = new AbortController();
    const waiting = locks.acquire('/lock', { signal: controller.signal });
    await nextSessionSends();
    expect(await clock.runUntil(() => contenders().length > 0, 60_000)).toBe(true);
    controller.abort(new Error('enough'));
    await expect(settled(waiting)).rejects.toThrow('enough');
    await settled(locks.idle());
    expect(contenders()).toEqual([]);
  });

  it('fails when the session is lost while it waits', async () => {
    const held = await settled(otherLocks.acquire('/lock'));
    const waiting = locks.acquire('/lock');
    await clock.advance(100);
    server.expireSession(client);
    await expect(settled(waiting)).rejects.toMatchObject({ code: 'session-lost' });
    await settled(locks.idle());
    expect(contenders()).toEqual([held.contender]);
  });

  it('releases the lock despite a lost connection and a lost answer', async () => {
    const lock = await settled(locks.acquire('/lock'));
    server.partition(client);
    const released = lock.release();
    await clock.advance(2000);
    expect(lock.lost.aborted).toBe(true);
    server.loseNextWrite(client, 'before-applied');
    server.heal(client);
    await settled(released);
    expect(contenders()).toEqual([]);
  });

  it('needs no release when the session is lost', async () => {
    const lock = await settled(locks.acquire('/lock'));
    server.partition(client);
    const released = lock.release();
    await settled(released);
    expect(clock.monotonic()).toBeLessThanOrEqual(11_000);
    expect(locks.removals).toBe(0);
  });

  it('lets only the first contender pass its fence, with any losses', async () => {
    const clients = Array.from({ length: 5 }, () => server.connect({ sessionTimeoutMs: 4000 }));
    let rounds = 0;
    let writes = 0;
    const sequenceOf = (name: string): string => name.slice(-10);
    server.onCommit((changes) => {
      const written = changes.find(({ path }) => path.startsWith('/written-'));
      if (written === undefined) return;
      writes++;
      const first = contenders().map(sequenceOf).sort()[0];
      expect(sequenceOf(written.path)).toBe(first);
    });
    const work = async (zk: ZooKeeper, index: number): Promise<void> => {
      const own = lockRecipe(zk, { clock });
      for (let round = 0; round < 12; round++) {
        const lock = await own.acquire('/lock').catch(() => undefined);
        rounds++;
        if ((index + round) % 3 === 0) server.loseNextWrite(zk, round % 2 === 0 ? 'before-applied' : 'after-applied');
        if ((index + round) % 7 === 0) server.expireSession(zk);
        if (lock === undefined) continue;
        await zk
          .transaction([lock.fence, { type: 'create', path: `/written-${lock.contender.split('/').at(-1) ?? ''}` }])
          .catch(() => undefined);
        await lock.release();
      }
      await own.idle();
      await zk.close();
    };
    await settled(Promise.all(clients.map(work)));
    expect(rounds).toBe(60);
    expect(writes).toBeGreaterThan(10);
    expect(contenders()).toEqual([]);
  });
});

describe('tryAcquire', () => {
  it.each(['before-applied', 'after-applied'] as const)(
    'releases the lock when the answer is lost %s',
    async (when) => {
      server.loseNextWrite(client, when);
      const attempt = locks.tryAcquire('/lock', { exists: false });
      await expect(settled(attempt)).rejects.toMatchObject({ code: 'outcome-unknown' });
      await settled(locks.idle());
      expect(contenders()).toEqual([]);
      expect(await settled(otherLocks.tryAcquire('/lock'))).toBeDefined();
    },
  );

  it('releases the lock that the next session acquired', async () => {
    const attempt = locks.tryAcquire('/lock', { exists: false });
    server.partition(client);
    await clock.advance(15_000);
    server.heal(client);
    await expect(settled(attempt)).rejects.toMatchObject({ code: 'outcome-unknown' });
    await settled(locks.idle());
    expect([...server.dump().keys()]).toContain('/lock');
    expect(contenders()).toEqual([]);
  });

  it('releases the lock that the next session acquired when the answer is lost', async () => {
    const attempt = locks.tryAcquire('/lock', { exists: false });
    await nextSessionSends();
    await expect(settled(attempt)).rejects.toMatchObject({ code: 'outcome-unknown' });
    await settled(locks.idle());
    expect([...server.dump().keys()]).toContain('/lock');
    expect(contenders()).toEqual([]);
  });

  it('fails at the deadline without a connection, and leaves no contender', async () => {
    server.partition(client);
    const attempt = locks.tryAcquire('/lock', { timeoutMs: 1000 });
    await expect(settled(attempt)).rejects.toMatchObject({ code: 'timeout' });
    server.heal(client);
    await clock.advance(5000);
    expect([...server.dump().keys()]).not.toContain('/lock');
  });
});

describe('the locks of a session', () => {
  it('are all lost with it, even those whose signal is read later', async () => {
    const held: HeldLock[] = [];
    for (const name of ['a', 'b', 'c']) held.push(await settled(locks.acquire(`/lock-${name}`)));
    const early = held[0]!.lost;
    const released = held[2]!;
    await settled(released.release());
    server.expireSession(client);
    await clock.advance(5000);
    expect([early.aborted, held[1]!.held]).toEqual([true, false]);
    expect(held[1]!.lost.reason).toMatchObject({ code: 'session-lost' });
    expect(released.lost.reason).toMatchObject({ code: 'aborted' });
  });
});

describe('an election', () => {
  it('elects the next leader when the present one hangs unnoticed', async () => {
    const terms: string[] = [];
    const one = election(client, '/office', { clock });
    const two = election(other, '/office', { clock });
    one.run((term) => {
      terms.push('one');
      term.addEventListener('abort', () => terms.push('one lost it'));
    });
    await clock.advance(100);
    two.run(() => {
      terms.push('two');
    });
    await clock.advance(100);
    server.partition(client, 'silent');
    await clock.advance(20_000);
    expect(terms).toEqual(['one', 'one lost it', 'two']);
    server.heal(client);
    await settled(Promise.all([one.close(), two.close()]));
    expect(contenders('/office/')).toEqual([]);
  });
});

/** Behaviour of locks and elections on any ZooKeeper. */

import { describe, expect, it } from '@jest/globals';
import { election, isZooKeeperError, lockHolder, lockRecipe, type Locks, type ZooKeeper } from '../../src/index.js';
import { bytes, Collector, textOf, type Harness } from './harness.js';

export function describeLocks(harness: Harness): void {
  const locksOf = (zk: ZooKeeper): Locks => lockRecipe(zk, { clock: harness.factory.clock, identifier: 'tester' });
  describeWaiting(harness, locksOf);
  describeTrying(harness, locksOf);
  describePersistent(harness, locksOf);
  describeElections(harness);
}

function describeWaiting(harness: Harness, locksOf: (zk: ZooKeeper) => Locks): void {
  describe('locks with acquire', () => {
    it('create a contender with a name that kazoo parses, and delete it on release', async () => {
      const lock = await locksOf(harness.zk).acquire(harness.path('deep/lock'));
      const { children } = await harness.zk.children(harness.path('deep/lock'));
      expect(children).toEqual([expect.stringMatching(/^[0-9a-f]{32}__lock__0000000000$/)]);
      expect(lock.contender).toBe(harness.path(`deep/lock/${children[0]}`));
      const { data, stat } = await harness.zk.get(lock.contender);
      expect([textOf(data), stat.ephemeralOwner]).toEqual(['tester', lock.session.id]);
      expect(lock.held).toBe(true);
      await lock.release();
      await lock.release();
      expect([lock.held, lock.lost.aborted]).toEqual([false, true]);
      expect((await harness.zk.children(harness.path('deep/lock'))).children).toEqual([]);
    });

    it('have one holder at a time, in the order of arrival', async () => {
      const clients = await Promise.all(Array.from({ length: 20 }, () => harness.client()));
      let holders = 0;
      const order: string[] = [];
      await Promise.all(
        clients.map(async (client) => {
          const locks = locksOf(client);
          for (let round = 0; round < 2; round++) {
            const lock = await locks.acquire(harness.path('lock'));
            holders++;
            expect(holders).toBe(1);
            order.push(lock.contender.slice(-10));
            await client.set(harness.root, bytes(lock.contender));
            holders--;
            await lock.release();
          }
        }),
      );
      expect(order).toEqual(Array.from({ length: 40 }, (_, index) => String(index).padStart(10, '0')));
    });

    it('order contenders by sequence number only, and ignore other children', async () => {
      await harness.zk.create(harness.path('lock'));
      await harness.zk.create(harness.path('lock/note'));
      const other = `${'f'.repeat(32)}__lock__`;
      const first = await harness.zk.create(harness.path(`lock/${other}`), undefined, { mode: 'ephemeral-sequential' });
      const got = new Collector<string>();
      const waiting = locksOf(harness.zk)
        .acquire(harness.path('lock'))
        .then((lock) => {
          got.add('locked');
          return lock;
        });
      await harness.zk.sync(harness.root);
      await harness.zk.sync(harness.root);
      expect(got.items).toEqual([]);
      await harness.zk.delete(first.path);
      await (await waiting).release();
    });

    it('stop waiting at the deadline or on abort, and leave no contender', async () => {
      const held = await locksOf(harness.zk).acquire(harness.path('lock'));
      const other = await harness.client();
      const locks = locksOf(other);
      await expect(locks.acquire(harness.path('lock'), { timeoutMs: 20 })).rejects.toMatchObject({ code: 'timeout' });
      const controller = new AbortController();
      const attempt = locks.acquire(harness.path('lock'), { signal: controller.signal });
      const reason = new Error('not needed any more');
      controller.abort(reason);
      await expect(attempt).rejects.toBe(reason);
      await locks.idle();
      expect((await other.children(harness.path('lock'))).children).toHaveLength(1);
      await held.release();
    });

    it('notify a holder that loses its session, and go to the next contender', async () => {
      const holder = await harness.client({ sessionTimeoutMs: 2000 });
      const held = await locksOf(holder).acquire(harness.path('lock'));
      const waiting = locksOf(harness.zk).acquire(harness.path('lock'));
      await harness.expire(holder);
      expect(held.lost.aborted).toBe(true);
      const lock = await waiting;
      await expect(holder.transaction([held.fence])).rejects.toMatchObject({ code: 'no-node' });
      await held.release();
      await harness.zk.transaction([lock.fence]);
      await lock.release();
    });

    it('skip a contender in the queue that was aborted', async () => {
      const [one, two, three] = [locksOf(harness.zk), locksOf(await harness.client()), locksOf(await harness.client())];
      const held = await one.acquire(harness.path('lock'));
      const controller = new AbortController();
      const second = two.acquire(harness.path('lock'), { signal: controller.signal }).catch(() => 'gave up');
      await harness.zk.sync(harness.root);
      const third = three.acquire(harness.path('lock'));
      controller.abort();
      expect(await second).toBe('gave up');
      await two.idle();
      await held.release();
      await (await third).release();
    });

    it('are lost when another client deletes a watched contender', async () => {
      const lock = await locksOf(harness.zk).acquire(harness.path('lock'), { watchContender: true });
      const lost = new Promise<void>((resolve) => lock.lost.addEventListener('abort', () => resolve()));
      await harness.zk.exists(lock.contender);
      await harness.zk.delete(lock.contender);
      await lost;
      expect(lock.lost.reason).toMatchObject({ code: 'no-node' });
    });

    it('can be released by an operation of a transaction', async () => {
      const lock = await locksOf(harness.zk).acquire(harness.path('lock'));
      await harness.zk.transaction([lock.fence, { type: 'create', path: harness.path('done') }, lock.releaseOp]);
      lock.released();
      await lock.release();
      expect((await harness.zk.children(harness.path('lock'))).children).toEqual([]);
    });
  });
}

function describeTrying(harness: Harness, locksOf: (zk: ZooKeeper) => Locks): void {
  describe('locks with tryAcquire', () => {
    it.each([undefined, true, false])(
      'are acquired when free, if the directory exists or not (announced: %s)',
      async (exists) => {
        const locks = locksOf(harness.zk);
        const options = exists === undefined ? {} : { exists };
        for (let round = 0; round < 3; round++) {
          const taken = await locks.tryAcquire(harness.path('a/lock'), options);
          expect(taken?.lock.contender).toMatch(/__lock__0000000000$/);
          await harness.zk.transaction([taken!.lock.fence]);
          await taken?.lock.release();
        }
      },
    );

    it('are not acquired while another client contends, and no contender remains', async () => {
      const held = await locksOf(harness.zk).acquire(harness.path('lock'));
      const other = locksOf(await harness.client());
      for (const exists of [true, false]) {
        expect(await other.tryAcquire(harness.path('lock'), { exists })).toBeUndefined();
      }
      expect((await harness.zk.children(harness.path('lock'))).children).toEqual([held.contender.split('/').at(-1)]);
      expect(other.removals).toBe(0);
    });

    it('are acquired by one of several concurrent clients', async () => {
      const clients = await Promise.all(Array.from({ length: 10 }, () => harness.client()));
      const taken = await Promise.all(clients.map((client) => locksOf(client).tryAcquire(harness.path('lock'))));
      expect(taken.filter((result) => result !== undefined)).toHaveLength(1);
    });

    it('apply further operations in the same transaction', async () => {
      await harness.zk.create(harness.path('record'), bytes('0'));
      const taken = await locksOf(harness.zk).tryAcquire(harness.path('lock'), {
        ops: [{ type: 'set', path: harness.path('record'), data: bytes('1'), version: 0 }],
      });
      expect(taken?.results).toEqual([{ type: 'set', stat: await harness.zk.exists(harness.path('record')) }]);
    });

    it('create nothing when one of the operations fails', async () => {
      const attempt = locksOf(harness.zk).tryAcquire(harness.path('record/lock'), {
        exists: false,
        ops: [
          { type: 'check', path: harness.root },
          { type: 'set', path: harness.path('record'), data: bytes('1'), version: 0 },
        ],
      });
      await expect(attempt).rejects.toMatchObject({ code: 'no-node', operationIndex: 1 });
      expect((await harness.zk.children(harness.root)).children).toEqual([]);
    });

    it('are acquired several at once, or none', async () => {
      const locks = locksOf(harness.zk);
      await harness.zk.create(harness.path('b'));
      const paths = ['a', 'b', 'c'].map((name) => ({ path: harness.path(name) }));
      const taken = await locks.tryAcquireAll(paths, {
        before: [{ type: 'create', path: harness.path('x') }],
        after: [{ type: 'set', path: harness.path('x'), data: bytes('after') }],
      });
      expect(taken?.locks.map(({ path }) => path)).toEqual(paths.map(({ path }) => path));
      expect([taken?.before[0]?.type, taken?.after[0]?.type]).toEqual(['create', 'set']);
      // The fence of each lock checks the contender of that lock.
      const directories = taken?.locks.map(({ contender }) => contender.replace(/\/[0-9a-f]{32}__lock__\d+$/, ''));
      expect(directories).toEqual(paths.map(({ path }) => path));
      await harness.zk.transaction(taken!.locks.map(({ fence }) => fence));
      expect(await locks.tryAcquireAll([{ path: harness.path('d') }, { path: harness.path('b') }])).toBeUndefined();
      expect(await harness.zk.exists(harness.path('d'))).toBeUndefined();
      await Promise.all(taken!.locks.map((lock) => lock.release()));
    });

    it('can be created below a znode that the same transaction creates', async () => {
      const path = harness.path('node');
      const taken = await locksOf(harness.zk).tryAcquireAll([{ path: `${path}/lock` }], {
        before: [{ type: 'create', path }],
      });
      expect(taken?.locks).toHaveLength(1);
    });

    it('report the operation after them that failed', async () => {
      const attempt = locksOf(harness.zk).tryAcquireAll([{ path: harness.path('lock') }], {
        before: [{ type: 'check', path: harness.root }],
        after: [{ type: 'check', path: harness.path('missing') }],
      });
      const error: unknown = await attempt.catch((reason: unknown) => reason);
      expect(isZooKeeperError(error, 'no-node') && error.operationIndex).toBe(1);
    });

    it('fail the fence after the lock went to another client', async () => {
      const first = await locksOf(harness.zk).tryAcquire(harness.path('lock'));
      await harness.zk.delete(first!.lock.contender);
      const second = await locksOf(await harness.client()).tryAcquire(harness.path('lock'));
      expect(second).toBeDefined();
      await expect(harness.zk.transaction([first!.lock.fence])).rejects.toMatchObject({ code: 'no-node' });
    });
  });
}

function describePersistent(harness: Harness, locksOf: (zk: ZooKeeper) => Locks): void {
  describe('persistent locks', () => {
    const path = (): string => harness.path('lock');

    it('survive their session, and a later process of their owner adopts them', async () => {
      const holder = await harness.client({ sessionTimeoutMs: 2000 });
      const taken = await locksOf(holder).tryAcquire(path(), { owner: 'service' });
      expect(taken?.lock).toMatchObject({ persistent: true, held: true });
      await harness.expire(holder);
      expect(taken?.lock.held).toBe(true);
      expect(await locksOf(harness.zk).tryAcquire(path())).toBeUndefined();
      expect(await lockHolder(harness.zk, path())).toMatchObject({
        contender: taken?.lock.contender,
        identifier: 'service',
        persistent: true,
        sessionId: 0n,
      });

      expect(await locksOf(harness.zk).adopt(path(), 'servic')).toBeUndefined();
      const adopted = await locksOf(harness.zk).adopt(path(), 'service');
      await harness.zk.transaction([adopted!.fence]);
      await adopted!.release();
      expect((await harness.zk.children(path())).children).toEqual([]);
      expect(await lockHolder(harness.zk, path())).toBeUndefined();
    });

    it('have one process at a time if each takes over, and a former one cannot release them', async () => {
      const [one, two] = [locksOf(harness.zk), locksOf(await harness.client())];
      const taken = await one.tryAcquire(path(), { owner: 'service', watchContender: true });
      const lost = new Promise<void>((resolve) => taken!.lock.lost.addEventListener('abort', () => resolve()));
      const adopted = await two.adopt(path(), 'service');
      await lost;
      expect(taken!.lock.lost.reason).toMatchObject({ code: 'bad-version' });
      await expect(harness.zk.transaction([taken!.lock.fence])).rejects.toMatchObject({ code: 'bad-version' });
      await expect(harness.zk.transaction([taken!.lock.releaseOp])).rejects.toMatchObject({ code: 'bad-version' });
      await taken!.lock.release();
      await one.idle();
      await harness.zk.transaction([adopted!.fence]);
      await adopted!.release();
    });

    it('can be shared, until one process releases them', async () => {
      const locks = locksOf(harness.zk);
      const taken = await locks.tryAcquire(path(), { owner: 'service' });
      const shared = await locks.adopt(path(), 'service', { takeOver: false, watchContender: true });
      await harness.zk.transaction([taken!.lock.fence, shared!.fence]);
      const lost = new Promise<void>((resolve) => shared!.lost.addEventListener('abort', () => resolve()));
      await taken!.lock.release();
      await lost;
      await shared!.release();
      expect(await locks.adopt(path(), 'service')).toBeUndefined();
    });

    it('are not adopted from an ephemeral contender with the name of the owner', async () => {
      const locks = locksOf(harness.zk);
      const held = await locks.acquire(path(), { identifier: 'service' });
      expect(await lockHolder(harness.zk, path())).toMatchObject({ identifier: 'service', persistent: false });
      expect(await locks.adopt(path(), 'service')).toBeUndefined();
      await harness.zk.transaction([held.fence]);
      await held.release();
    });

    it('are adopted before the contenders that wait for them', async () => {
      const locks = locksOf(harness.zk);
      const taken = await locks.tryAcquire(path(), { owner: 'service' });
      const waiting = locksOf(await harness.client()).acquire(path());
      const adopted = await locks.adopt(path(), 'service');
      expect(adopted?.contender).toBe(taken?.lock.contender);
      await adopted!.release();
      await (await waiting).release();
    });

    it('need an owner with a name', () => {
      expect(() => void locksOf(harness.zk).tryAcquireAll([{ path: path() }], { owner: '' })).toThrow(RangeError);
    });
  });
}

function describeElections(harness: Harness): void {
  describe('elections', () => {
    it('have one leader; the next contender follows when it resigns', async () => {
      const options = { clock: harness.factory.clock };
      const other = await harness.client();
      const terms = new Collector<string>();
      const one = election(harness.zk, harness.path('office'), options);
      one.run((term) => {
        terms.add('one');
        term.addEventListener('abort', () => terms.add('one left'));
      });
      await terms.atLeast(1);
      const two = election(other, harness.path('office'), options);
      two.run(() => terms.add('two'));
      expect([one.elected, two.elected]).toEqual([true, false]);
      await one.close();
      await terms.atLeast(3);
      expect([one.elected, two.elected]).toEqual([false, true]);
      expect(terms.items).toEqual(['one', 'one left', 'two']);
      await two.close();
      expect((await other.children(harness.path('office'))).children).toEqual([]);
    });

    it('continue after a lost session', async () => {
      const client = await harness.client({ sessionTimeoutMs: 2000 });
      const terms = new Collector<AbortSignal>();
      const candidate = election(client, harness.path('office'), { clock: harness.factory.clock });
      candidate.run(terms.add);
      const [first] = await terms.atLeast(1);
      await harness.expire(client);
      await terms.atLeast(2);
      expect([first?.aborted, terms.items[1]?.aborted]).toEqual([true, false]);
      await candidate.close();
    });

    it('continue after the leader’s function failed', async () => {
      const terms = new Collector<number>();
      const errors: unknown[] = [];
      const candidate = election(harness.zk, harness.path('office'), {
        clock: harness.factory.clock,
        retryMs: 10,
        onError: (error) => errors.push(error),
      });
      candidate.run(() => {
        terms.add(1);
        if (terms.items.length === 1) throw new Error('term failed');
      });
      await terms.atLeast(2);
      expect(errors).toEqual([new Error('term failed')]);
      await candidate.close();
    });
  });
}

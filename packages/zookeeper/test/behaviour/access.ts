/** Behaviour of access control: every permission against every operation, the schemes, and invalid lists. */

import { createHash } from 'node:crypto';
import { describe, expect, it } from '@jest/globals';
import { OPEN_ACL, Permission, type Acl } from '../../src/index.js';
import {
  bytes,
  Collector,
  EventLog,
  outcomeOf,
  type Harness,
  type Inabilities,
  type PlainHarness,
  type PlainZooKeeper,
} from './harness.js';

const ALICE = { scheme: 'digest', auth: 'alice:secret' };
const BOB = { scheme: 'digest', auth: 'bob:hidden' };

function digestOf(credentials: string): string {
  const [user = ''] = credentials.split(':');
  return `${user}:${createHash('sha1').update(credentials).digest('base64')}`;
}

const world = (permissions: number): Acl => ({ permissions, scheme: 'world', id: 'anyone' });
const digest = (permissions: number, credentials: string): Acl => ({
  permissions,
  scheme: 'digest',
  id: digestOf(credentials),
});

type PermissionName = Exclude<keyof typeof Permission, 'all'>;
const PERMISSIONS: readonly PermissionName[] = ['read', 'write', 'create', 'delete', 'admin'];

interface Demand {
  readonly name: string;
  /** One of these permissions suffices; an empty list requires none. */
  readonly anyOf: readonly PermissionName[];
  attempt(zk: PlainZooKeeper, path: string): Promise<unknown>;
}

/** Permissions that each operation requires on a znode with a child named `child`. */
const DEMANDS: readonly Demand[] = [
  { name: 'exists', anyOf: [], attempt: (zk, path) => zk.exists(path) },
  { name: 'sync', anyOf: [], attempt: (zk, path) => zk.sync(path) },
  { name: 'get', anyOf: ['read'], attempt: (zk, path) => zk.get(path) },
  { name: 'children', anyOf: ['read'], attempt: (zk, path) => zk.children(path) },
  { name: 'getAcl', anyOf: ['read', 'admin'], attempt: (zk, path) => zk.getAcl(path) },
  { name: 'set', anyOf: ['write'], attempt: (zk, path) => zk.set(path, bytes('x')) },
  { name: 'create of a child', anyOf: ['create'], attempt: (zk, path) => zk.create(`${path}/new`) },
  { name: 'delete of a child', anyOf: ['delete'], attempt: (zk, path) => zk.delete(`${path}/child`) },
  { name: 'setAcl', anyOf: ['admin'], attempt: (zk, path) => zk.setAcl(path, OPEN_ACL) },
];

const VERDICTS = PERMISSIONS.flatMap((permission) =>
  DEMANDS.map(({ name, anyOf, attempt }) => ({
    permission,
    name,
    attempt,
    verdict: anyOf.length === 0 || anyOf.includes(permission) ? 'ok' : 'no-auth',
  })),
);

const INVALID_LISTS: readonly (readonly [what: string, entry: Acl])[] = [
  ['an unknown scheme', { permissions: 31, scheme: 'unknown', id: 'x' }],
  ['an empty scheme', { permissions: 31, scheme: '', id: '' }],
  ['a world of somebody', { permissions: 31, scheme: 'world', id: 'somebody' }],
  ['a digest without a password', { permissions: 31, scheme: 'digest', id: 'alice' }],
  ['a digest of too many parts', { permissions: 31, scheme: 'digest', id: 'a:b:c' }],
  ['an address that is none', { permissions: 31, scheme: 'ip', id: 'localhost' }],
  ['a range that is too long', { permissions: 31, scheme: 'ip', id: '127.0.0.1/33' }],
  ['no credentials', { permissions: 31, scheme: 'auth', id: '' }],
];

/** Sets the lists on existing znodes, because not every client can set them at creation. */
export function describeAccess(harness: PlainHarness, unable: Inabilities = {}): void {
  const verdicts = VERDICTS.filter(
    ({ name, verdict }) => name !== 'getAcl' || verdict === 'ok' || unable.refusedGetAcl !== true,
  );

  describe('a znode that grants one permission', () => {
    it.each(verdicts)('$permission: $name ends with $verdict', async ({ permission, attempt, verdict }) => {
      await harness.zk.create(harness.path('a'), bytes(''));
      await harness.zk.create(harness.path('a/child'));
      await harness.zk.setAcl(harness.path('a'), [world(Permission[permission])]);
      // The leader checks writes against the old list until it has applied the change, and a follower may answer
      // earlier. Another write waits for the change.
      await harness.zk.create(harness.path('applied'));
      expect(await outcomeOf(attempt(harness.zk, harness.path('a')))).toBe(verdict);
    });

    it('and lacks the others for every client can be deleted by means of its parent', async () => {
      await harness.zk.create(harness.path('a'));
      await harness.zk.setAcl(harness.path('a'), [world(Permission.read)]);
      await harness.zk.delete(harness.path('a'));
      expect(await harness.zk.exists(harness.path('a'))).toBeUndefined();
    });
  });

  describe('an access control list', () => {
    it.each(INVALID_LISTS)('with %s is refused', async (_what, entry) => {
      await harness.zk.create(harness.path('a'));
      await expect(harness.zk.setAcl(harness.path('a'), [entry])).rejects.toMatchObject({ code: 'invalid-acl' });
      expect((await harness.zk.getAcl(harness.path('a'))).acl).toEqual(OPEN_ACL);
    });

    it.each([
      ['another world', [world(1)]],
      ['a digest', [digest(31, 'alice:secret'), world(31)]],
      ['an address', [{ permissions: 31, scheme: 'ip', id: '127.0.0.1' }]],
      ['a range', [{ permissions: 31, scheme: 'ip', id: '127.0.0.0/8' }]],
    ])('with %s is kept, in its order', async (_what, acl) => {
      await harness.zk.create(harness.path('a'));
      const stat = await harness.zk.setAcl(harness.path('a'), acl);
      expect(stat).toMatchObject({ aversion: 1, version: 0 });
      if (acl.some(({ permissions }) => permissions === 31)) {
        expect((await harness.zk.getAcl(harness.path('a'))).acl).toEqual(acl);
      }
    });

    it.each([
      ['127.0.0.1', 'ok'],
      ['127.0.0.1/32', 'ok'],
      ['127.0.0.0/8', 'ok'],
      ['0.0.0.0/0', 'ok'],
      ['126.0.0.0/7', 'ok'],
      ['127.0.0.2', 'no-auth'],
      ['127.0.0.2/32', 'no-auth'],
      ['10.0.0.0/8', 'no-auth'],
    ])('of the address %s lets a local client end with %s', async (id, outcome) => {
      await harness.zk.create(harness.path('a'));
      await harness.zk.setAcl(harness.path('a'), [{ permissions: 31, scheme: 'ip', id }]);
      await harness.zk.create(harness.path('applied'));
      expect(await outcomeOf(harness.zk.get(harness.path('a')))).toBe(outcome);
    });

    it('loses its doubles', async () => {
      await harness.zk.create(harness.path('a'));
      await harness.zk.setAcl(harness.path('a'), [world(31), world(31), world(1)]);
      expect((await harness.zk.getAcl(harness.path('a'))).acl).toEqual([world(31), world(1)]);
    });

    it('is not inherited', async () => {
      await harness.zk.create(harness.path('a'));
      await harness.zk.setAcl(harness.path('a'), [world(Permission.create | Permission.read)]);
      await harness.zk.create(harness.path('applied'));
      await harness.zk.create(harness.path('a/b'));
      expect((await harness.zk.getAcl(harness.path('a/b'))).acl).toEqual(OPEN_ACL);
    });
  });

  describe('credentials', () => {
    it('open what a digest protects, and those of other users do not', async () => {
      await harness.zk.create(harness.path('a'), bytes('x'));
      await harness.zk.setAcl(harness.path('a'), [digest(31, 'alice:secret')]);
      await harness.zk.create(harness.path('applied'));
      const [alice, bob] = [await harness.client({ auth: [ALICE] }), await harness.client({ auth: [BOB] })];
      expect(await outcomeOf(harness.zk.get(harness.path('a')))).toBe('no-auth');
      expect(await outcomeOf(bob.get(harness.path('a')))).toBe('no-auth');
      expect(await outcomeOf(alice.get(harness.path('a')))).toBe('ok');
      expect(await outcomeOf(alice.set(harness.path('a'), bytes('y')))).toBe('ok');
    });

    it('with another password are another’s', async () => {
      const wrong = await harness.client({ auth: [{ scheme: 'digest', auth: 'alice:guess' }] });
      await harness.zk.create(harness.path('a'));
      await harness.zk.setAcl(harness.path('a'), [digest(31, 'alice:secret')]);
      await harness.zk.create(harness.path('applied'));
      expect(await outcomeOf(wrong.get(harness.path('a')))).toBe('no-auth');
    });

    it('may be several', async () => {
      const both = await harness.client({ auth: [ALICE, BOB] });
      for (const [name, credentials] of [
        ['a', ALICE],
        ['b', BOB],
      ] as const) {
        await harness.zk.create(harness.path(name));
        await harness.zk.setAcl(harness.path(name), [digest(31, credentials.auth)]);
        await harness.zk.create(harness.path(`applied-${name}`));
        expect(await outcomeOf(both.get(harness.path(name)))).toBe('ok');
      }
    });

    it('are what the scheme "auth" stands for', async () => {
      const both = await harness.client({ auth: [ALICE, BOB] });
      await both.create(harness.path('a'));
      await both.setAcl(harness.path('a'), [{ permissions: 31, scheme: 'auth', id: '' }]);
      await harness.zk.create(harness.path('applied'));
      expect((await both.getAcl(harness.path('a'))).acl).toEqual([digest(31, ALICE.auth), digest(31, BOB.auth)]);
      expect(await outcomeOf(harness.zk.get(harness.path('a')))).toBe('no-auth');
    });

    it('of others are shown without their digests to who may not change the list', async () => {
      const alice = await harness.client({ auth: [ALICE] });
      await harness.zk.create(harness.path('a'));
      const acl = [digest(31, ALICE.auth), world(Permission.read)];
      await harness.zk.setAcl(harness.path('a'), acl);
      expect((await alice.getAcl(harness.path('a'))).acl).toEqual(acl);
      expect((await harness.zk.getAcl(harness.path('a'))).acl).toEqual([
        { ...acl[0], id: 'alice:x' },
        world(Permission.read),
      ]);
    });
  });
}

/** Tests for clients that set lists at creation and have transactions. */
export function describeAccessOfOurs(harness: Harness): void {
  describe('access control', () => {
    it.each(INVALID_LISTS)('refuses a creation with %s', async (_what, entry) => {
      expect(await outcomeOf(harness.zk.create(harness.path('a'), undefined, { acl: [entry] }))).toBe('invalid-acl');
      expect(await harness.zk.exists(harness.path('a'))).toBeUndefined();
    });

    it('names the operation of a transaction that it refuses', async () => {
      await harness.zk.create(harness.path('a'), bytes('kept'), { acl: [world(Permission.read)] });
      for (const [index, op] of (
        [
          { type: 'set', path: harness.path('a'), data: bytes('lost') },
          { type: 'create', path: harness.path('a/b') },
        ] as const
      ).entries()) {
        const free = { type: 'create', path: harness.path(`free-${index}`) } as const;
        await expect(harness.zk.transaction([free, op])).rejects.toMatchObject({ code: 'no-auth', operationIndex: 1 });
        expect(await harness.zk.exists(free.path)).toBeUndefined();
      }
    });

    it('lets a check of a transaction through only to who may read', async () => {
      await harness.zk.create(harness.path('a'), undefined, { acl: [world(Permission.write)] });
      expect(await outcomeOf(harness.zk.transaction([{ type: 'check', path: harness.path('a') }]))).toBe('no-auth');
    });

    // ZOOKEEPER-4799: servers since 3.8.4 and 3.9.2, and Debian's 3.8.0.
    it('keeps changes of what a client may not read from its watches, which they use up', async () => {
      const log = new EventLog();
      harness.zk.watch(harness.path('a'), 'persistent', log);
      await log.atLeast(1);
      const once = new Collector<string>();
      await harness.zk.exists(harness.path('b'), { watch: ({ type }) => once.add(type) });
      const acl = [world(Permission.all & ~Permission.read)];
      for (const name of ['a', 'b']) await harness.zk.create(harness.path(name), undefined, { acl });
      await harness.zk.set(harness.path('a'), bytes('secret'));
      for (const name of ['a', 'b']) await harness.zk.setAcl(harness.path(name), OPEN_ACL);
      for (const name of ['a', 'b']) await harness.zk.set(harness.path(name), bytes('open'));
      expect([log.items, once.items]).toEqual([['reset', `changed ${harness.path('a')}`], []]);
    });

    it('is lost with credentials of an unknown scheme: the client gives up', async () => {
      // The session may be created first, depending on timing.
      const asked = harness.client({ auth: [{ scheme: 'unknown', auth: 'x' }] }).then((zk) => zk.sync('/'));
      await expect(asked).rejects.toMatchObject({ code: 'auth-failed' });
    });

    it('holds for credentials on every connection', async () => {
      const alice = await harness.client({ auth: [ALICE] });
      await alice.create(harness.path('a'), undefined, { acl: [{ permissions: 31, scheme: 'auth', id: '' }] });
      await harness.reconnect(alice);
      expect(await outcomeOf(alice.get(harness.path('a')))).toBe('ok');
    });
  });
}

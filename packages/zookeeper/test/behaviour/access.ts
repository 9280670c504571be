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
  type ClientLimitations,
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

interface Operation {
  readonly name: string;
  /** One of these permissions suffices; an empty list requires none. */
  readonly anyOf: readonly PermissionName[];
  attempt(zk: PlainZooKeeper, path: string): Promise<unknown>;
}

/** Permissions that each operation requires on a znode with a child named `child`. */
const OPERATIONS: readonly Operation[] = [
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

const PERMISSION_CASES = PERMISSIONS.flatMap((permission) =>
  OPERATIONS.map(({ name, anyOf, attempt }) => ({
    permission,
    name,
    attempt,
    outcome: anyOf.length === 0 || anyOf.includes(permission) ? 'ok' : 'no-auth',
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
export function describeAccess(harness: PlainHarness, limitations: ClientLimitations = {}): void {
  const cases = PERMISSION_CASES.filter(
    ({ name, outcome }) => name !== 'getAcl' || outcome === 'ok' || limitations.refusedGetAcl !== true,
  );

  describe('a znode that grants one permission', () => {
    it.each(cases)(
      'with permission $permission only: $name ends with $outcome',
      async ({ permission, attempt, outcome }) => {
        await harness.zk.create(harness.path('a'), bytes(''));
        await harness.zk.create(harness.path('a/child'));
        await harness.zk.setAcl(harness.path('a'), [world(Permission[permission])]);
        // The leader checks writes against the old list until it has applied the change, and a follower may answer
        // earlier.
        await harness.applied();
        expect(await outcomeOf(attempt(harness.zk, harness.path('a')))).toBe(outcome);
      },
    );

    it('can be deleted without permissions on it if its parent allows deletion', async () => {
      await harness.zk.create(harness.path('a'));
      await harness.zk.setAcl(harness.path('a'), [world(Permission.read)]);
      await harness.zk.delete(harness.path('a'));
      expect(await harness.zk.exists(harness.path('a'))).toBeUndefined();
    });
  });

  describe('an access control list', () => {
    it.each(INVALID_LISTS)('with %s is rejected', async (_what, entry) => {
      await harness.zk.create(harness.path('a'));
      await expect(harness.zk.setAcl(harness.path('a'), [entry])).rejects.toMatchObject({ code: 'invalid-acl' });
      expect((await harness.zk.getAcl(harness.path('a'))).acl).toEqual(OPEN_ACL);
    });

    it.each([
      ['a second world entry', [world(1)]],
      ['a digest entry', [digest(31, 'alice:secret'), world(31)]],
      ['an address entry', [{ permissions: 31, scheme: 'ip', id: '127.0.0.1' }]],
      ['an address range entry', [{ permissions: 31, scheme: 'ip', id: '127.0.0.0/8' }]],
    ])('with %s is returned in the order in which it was written', async (_what, acl) => {
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
    ])('for the address %s: a read by a local client ends with %s', async (id, outcome) => {
      await harness.zk.create(harness.path('a'));
      await harness.zk.setAcl(harness.path('a'), [{ permissions: 31, scheme: 'ip', id }]);
      await harness.applied();
      expect(await outcomeOf(harness.zk.get(harness.path('a')))).toBe(outcome);
    });

    it('is stored without duplicates', async () => {
      await harness.zk.create(harness.path('a'));
      await harness.zk.setAcl(harness.path('a'), [world(31), world(31), world(1)]);
      expect((await harness.zk.getAcl(harness.path('a'))).acl).toEqual([world(31), world(1)]);
    });

    it('is not inherited by children', async () => {
      await harness.zk.create(harness.path('a'));
      await harness.zk.setAcl(harness.path('a'), [world(Permission.create | Permission.read)]);
      await harness.applied();
      await harness.zk.create(harness.path('a/b'));
      expect((await harness.zk.getAcl(harness.path('a/b'))).acl).toEqual(OPEN_ACL);
    });
  });

  describe('credentials', () => {
    it('give access to znodes that their digest protects; credentials of another user do not', async () => {
      await harness.zk.create(harness.path('a'), bytes('x'));
      await harness.zk.setAcl(harness.path('a'), [digest(31, 'alice:secret')]);
      await harness.applied();
      const [alice, bob] = [await harness.client({ auth: [ALICE] }), await harness.client({ auth: [BOB] })];
      expect(await outcomeOf(harness.zk.get(harness.path('a')))).toBe('no-auth');
      expect(await outcomeOf(bob.get(harness.path('a')))).toBe('no-auth');
      expect(await outcomeOf(alice.get(harness.path('a')))).toBe('ok');
      expect(await outcomeOf(alice.set(harness.path('a'), bytes('y')))).toBe('ok');
    });

    it('with another password give no access', async () => {
      const wrong = await harness.client({ auth: [{ scheme: 'digest', auth: 'alice:guess' }] });
      await harness.zk.create(harness.path('a'));
      await harness.zk.setAcl(harness.path('a'), [digest(31, 'alice:secret')]);
      await harness.applied();
      expect(await outcomeOf(wrong.get(harness.path('a')))).toBe('no-auth');
    });

    it('of several users can be used at the same time', async () => {
      const both = await harness.client({ auth: [ALICE, BOB] });
      for (const [name, credentials] of [
        ['a', ALICE],
        ['b', BOB],
      ] as const) {
        await harness.zk.create(harness.path(name));
        await harness.zk.setAcl(harness.path(name), [digest(31, credentials.auth)]);
        await harness.applied();
        expect(await outcomeOf(both.get(harness.path(name)))).toBe('ok');
      }
    });

    it('replace an entry of the scheme "auth"', async () => {
      const both = await harness.client({ auth: [ALICE, BOB] });
      await both.create(harness.path('a'));
      await both.setAcl(harness.path('a'), [{ permissions: 31, scheme: 'auth', id: '' }]);
      await harness.applied();
      expect((await both.getAcl(harness.path('a'))).acl).toEqual([digest(31, ALICE.auth), digest(31, BOB.auth)]);
      expect(await outcomeOf(harness.zk.get(harness.path('a')))).toBe('no-auth');
    });

    it('of other users are returned without digests to a client that cannot change the list', async () => {
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
export function describeAccessControl(harness: Harness): void {
  describe('access control', () => {
    it.each(INVALID_LISTS)('rejects a creation with %s', async (_what, entry) => {
      expect(await outcomeOf(harness.zk.create(harness.path('a'), undefined, { acl: [entry] }))).toBe('invalid-acl');
      expect(await harness.zk.exists(harness.path('a'))).toBeUndefined();
    });

    it('reports the index of the operation that it rejected in a transaction', async () => {
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

    it('allows a check in a transaction only to clients with read permission', async () => {
      await harness.zk.create(harness.path('a'), undefined, { acl: [world(Permission.write)] });
      expect(await outcomeOf(harness.zk.transaction([{ type: 'check', path: harness.path('a') }]))).toBe('no-auth');
    });

    // ZOOKEEPER-4799: servers since 3.8.4 and 3.9.2, and Debian's 3.8.0.
    it('suppresses events of znodes that the client cannot read, but consumes their watches', async () => {
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

    it('closes the client when it adds credentials of an unknown scheme', async () => {
      // The session may be created first, depending on timing.
      const asked = harness.client({ auth: [{ scheme: 'unknown', auth: 'x' }] }).then((zk) => zk.sync('/'));
      await expect(asked).rejects.toMatchObject({ code: 'auth-failed' });
    });

    it('applies credentials on every later connection', async () => {
      const alice = await harness.client({ auth: [ALICE] });
      await alice.create(harness.path('a'), undefined, { acl: [{ permissions: 31, scheme: 'auth', id: '' }] });
      await harness.reconnect(alice);
      expect(await outcomeOf(alice.get(harness.path('a')))).toBe('ok');
    });
  });
}

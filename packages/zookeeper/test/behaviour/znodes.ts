/** Behaviour of znodes: creation, versions, stats, sequence numbers, errors, access control, chroot. */

import { describe, expect, it } from '@jest/globals';
import { OPEN_ACL, Permission } from '../../src/index.js';
import { bytes, textOf, type Harness } from './harness.js';

export function describeZnodes(harness: Harness): void {
  describeCreation(harness);
  describeReadsAndWrites(harness);
  describeStats(harness);
  describeAccess(harness);
}

function describeCreation(harness: Harness): void {
  describe('creation', () => {
    it('stores the data and returns path and stat', async () => {
      const path = harness.path('a');
      const created = await harness.zk.create(path, bytes('data'));
      expect(created.path).toBe(path);
      const { data, stat } = await harness.zk.get(path);
      expect(textOf(data)).toBe('data');
      expect(stat).toEqual(created.stat);
    });

    it('creates an empty znode without data', async () => {
      const { stat } = await harness.zk.create(harness.path('empty'));
      expect(stat.dataLength).toBe(0);
      expect((await harness.zk.get(harness.path('empty'))).data).toHaveLength(0);
    });

    it('copies the data, which the caller can change afterwards', async () => {
      const data = bytes('before');
      const created = harness.zk.create(harness.path('a'), data);
      data.fill(0);
      await created;
      expect(textOf((await harness.zk.get(harness.path('a'))).data)).toBe('before');
    });

    it('appends ten digits that count the creations below the parent, for any prefix', async () => {
      const mode = 'persistent-sequential';
      const paths = [];
      for (const prefix of ['n-', 'n-', '', 'm-']) {
        paths.push((await harness.zk.create(harness.path(prefix), undefined, { mode })).path);
      }
      expect(paths).toEqual(
        ['n-0000000000', 'n-0000000001', '0000000002', 'm-0000000003'].map((name) => harness.path(name)),
      );
    });

    it('includes plain creations and deleted znodes in sequence numbers', async () => {
      await harness.zk.create(harness.path('a'));
      await harness.zk.create(harness.path('b'));
      await harness.zk.delete(harness.path('a'));
      const { path } = await harness.zk.create(harness.path('n-'), undefined, { mode: 'persistent-sequential' });
      expect(path).toBe(harness.path('n-0000000002'));
    });

    it('starts sequence numbers at zero below a recreated parent', async () => {
      const mode = 'persistent-sequential';
      await harness.zk.create(harness.path('dir'));
      const first = await harness.zk.create(harness.path('dir/'), undefined, { mode });
      await harness.zk.delete(first.path);
      await harness.zk.delete(harness.path('dir'));
      await harness.zk.create(harness.path('dir'));
      const second = await harness.zk.create(harness.path('dir/'), undefined, { mode });
      expect(second.path).toBe(first.path);
    });

    it('rejects an existing path', async () => {
      await harness.zk.create(harness.path('a'));
      await expect(harness.zk.create(harness.path('a'))).rejects.toMatchObject({
        code: 'node-exists',
        path: harness.path('a'),
        operation: 'create',
      });
      await expect(harness.zk.create('/')).rejects.toMatchObject({ code: 'node-exists' });
    });

    it('rejects a path without a parent', async () => {
      await expect(harness.zk.create(harness.path('a/b'))).rejects.toMatchObject({ code: 'no-node' });
    });

    it('creates containers, which behave like other znodes', async () => {
      const { stat } = await harness.zk.create(harness.path('c'), undefined, { mode: 'container' });
      expect(stat.ephemeralOwner).toBe(0n);
      await harness.zk.create(harness.path('c/child'));
      expect((await harness.zk.children(harness.path('c'))).children).toEqual(['child']);
    });

    it('rejects TTL znodes when the server has them disabled', async () => {
      const options = { mode: 'persistent-ttl', ttlMs: 1000 } as const;
      await expect(harness.zk.create(harness.path('ttl'), undefined, options)).rejects.toMatchObject({
        code: 'unimplemented',
      });
    });

    it.each(['', 'a', '/a/', '//', '/a//b', '/a/../b', '/a/.', '/a\u0000b'])('rejects the path %j', async (path) => {
      await expect(harness.zk.create(path)).rejects.toMatchObject({ code: 'invalid-argument' });
      await expect(harness.zk.get(path)).rejects.toMatchObject({ code: 'invalid-argument' });
    });
  });
}

function describeReadsAndWrites(harness: Harness): void {
  describe('reads and writes', () => {
    it('report the existence of a znode', async () => {
      expect(await harness.zk.exists(harness.path('a'))).toBeUndefined();
      const { stat } = await harness.zk.create(harness.path('a'));
      expect(await harness.zk.exists(harness.path('a'))).toEqual(stat);
    });

    it('change data and increment the version', async () => {
      await harness.zk.create(harness.path('a'), bytes('0'));
      const first = await harness.zk.set(harness.path('a'), bytes('one'));
      const second = await harness.zk.set(harness.path('a'), bytes('second'), { version: first.version });
      expect([first.version, second.version, second.dataLength]).toEqual([1, 2, 6]);
      expect(await harness.zk.get(harness.path('a'))).toEqual({ data: expect.anything(), stat: second });
    });

    it('reject a write or deletion with another version, which changes nothing', async () => {
      await harness.zk.create(harness.path('a'), bytes('kept'));
      for (const attempt of [
        harness.zk.set(harness.path('a'), bytes('lost'), { version: 1 }),
        harness.zk.delete(harness.path('a'), { version: 1 }),
      ]) {
        await expect(attempt).rejects.toMatchObject({ code: 'bad-version', outcome: 'not-applied' });
      }
      const { data, stat } = await harness.zk.get(harness.path('a'));
      expect([textOf(data), stat.version]).toEqual(['kept', 0]);
    });

    it('list children', async () => {
      for (const name of ['c', 'a', 'b']) await harness.zk.create(harness.path(name));
      const { children, stat } = await harness.zk.children(harness.root);
      expect([...children].sort()).toEqual(['a', 'b', 'c']);
      expect(stat.numChildren).toBe(3);
    });

    it('delete only znodes without children', async () => {
      await harness.zk.create(harness.path('a'));
      await harness.zk.create(harness.path('a/b'));
      await expect(harness.zk.delete(harness.path('a'))).rejects.toMatchObject({ code: 'not-empty' });
      await harness.zk.delete(harness.path('a/b'));
      await harness.zk.delete(harness.path('a'));
      expect(await harness.zk.exists(harness.path('a'))).toBeUndefined();
    });

    it('report a missing znode', async () => {
      const path = harness.path('missing');
      for (const attempt of [
        harness.zk.get(path),
        harness.zk.set(path, bytes('')),
        harness.zk.delete(path),
        harness.zk.children(path),
        harness.zk.getAcl(path),
        harness.zk.setAcl(path, OPEN_ACL),
      ]) {
        await expect(attempt).rejects.toMatchObject({ code: 'no-node', path });
      }
    });

    it('reject the deletion of the root', async () => {
      await expect(harness.zk.delete('/zookeeper-not-there')).rejects.toMatchObject({ code: 'no-node' });
    });

    it('are answered in the order in which they were issued', async () => {
      const order: number[] = [];
      const calls = Array.from({ length: 50 }, (_, index) =>
        (index % 3 === 0
          ? harness.zk.create(harness.path(`n${index}`))
          : harness.zk.exists(harness.path(`n${index - 1}`))
        ).then((result) => {
          order.push(index);
          return result;
        }),
      );
      const results = await Promise.all(calls);
      expect(order).toEqual(calls.map((_, index) => index));
      expect(results[1]).toBeDefined();
    });

    it('include sync', async () => {
      const other = await harness.client();
      await other.create(harness.path('a'));
      await harness.zk.sync(harness.root);
      expect(await harness.zk.exists(harness.path('a'))).toBeDefined();
    });

    it('store every byte value, and large data', async () => {
      const data = Uint8Array.from({ length: 256 * 1024 }, (_, index) => index % 256);
      await harness.zk.create(harness.path('big'), data);
      expect(Buffer.compare((await harness.zk.get(harness.path('big'))).data, data)).toBe(0);
    });
  });
}

function describeStats(harness: Harness): void {
  describe('stat', () => {
    it('of a new znode has its transaction, times, versions and sizes', async () => {
      const { stat } = await harness.zk.create(harness.path('a'), bytes('xyz'));
      expect(stat).toEqual({
        czxid: stat.czxid,
        mzxid: stat.czxid,
        pzxid: stat.czxid,
        ctime: stat.ctime,
        mtime: stat.ctime,
        version: 0,
        cversion: 0,
        aversion: 0,
        ephemeralOwner: 0n,
        dataLength: 3,
        numChildren: 0,
      });
      expect(typeof stat.czxid).toBe('bigint');
    });

    it('of a parent counts creations and deletions of children in cversion, and has the pzxid of the last', async () => {
      const parent = (await harness.zk.create(harness.path('p'))).stat;
      const { stat: child } = await harness.zk.create(harness.path('p/a'));
      await harness.zk.create(harness.path('p/b'));
      await harness.zk.delete(harness.path('p/a'));
      const { stat: last } = await harness.zk.create(harness.path('p/c'));
      const stat = await harness.zk.exists(harness.path('p'));
      expect(stat).toEqual({ ...parent, cversion: 4, numChildren: 2, pzxid: last.czxid });
      expect(last.czxid).toBeGreaterThan(child.czxid);
    });

    it('of a parent has the pzxid of a deletion', async () => {
      await harness.zk.create(harness.path('a'));
      const before = await harness.zk.exists(harness.root);
      await harness.zk.delete(harness.path('a'));
      const after = await harness.zk.exists(harness.root);
      expect(after?.pzxid).toBeGreaterThan(before?.pzxid ?? 0n);
      expect(after?.mzxid).toBe(before?.mzxid);
    });

    it('of a changed znode has a new mzxid; the parent’s is unchanged', async () => {
      const { stat: created } = await harness.zk.create(harness.path('a'));
      const parent = await harness.zk.exists(harness.root);
      const changed = await harness.zk.set(harness.path('a'), bytes('x'));
      expect(changed.mzxid).toBeGreaterThan(created.mzxid);
      expect([changed.czxid, changed.pzxid, changed.ctime]).toEqual([created.czxid, created.pzxid, created.ctime]);
      expect(await harness.zk.exists(harness.root)).toEqual(parent);
    });

    it('of an ephemeral znode has its owner’s session id', async () => {
      const { stat } = await harness.zk.create(harness.path('e'), undefined, { mode: 'ephemeral' });
      expect(stat.ephemeralOwner).toBe(harness.sessionOf(harness.zk).id);
    });
  });
}

function describeAccess(harness: Harness): void {
  describe('access control and chroot', () => {
    it('store access control lists and count their changes in aversion', async () => {
      const acl = [{ permissions: Permission.read | Permission.admin, scheme: 'world', id: 'anyone' }];
      await harness.zk.create(harness.path('a'));
      expect((await harness.zk.getAcl(harness.path('a'))).acl).toEqual(OPEN_ACL);
      const stat = await harness.zk.setAcl(harness.path('a'), acl, { version: 0 });
      expect(stat).toMatchObject({ aversion: 1, version: 0 });
      expect(await harness.zk.getAcl(harness.path('a'))).toEqual({ acl, stat });
      await expect(harness.zk.setAcl(harness.path('a'), acl, { version: 0 })).rejects.toMatchObject({
        code: 'bad-version',
      });
    });

    it('reject operations that the list does not allow', async () => {
      const acl = [{ permissions: Permission.read, scheme: 'world', id: 'anyone' }];
      await harness.zk.create(harness.path('a'), bytes('x'), { acl });
      expect(textOf((await harness.zk.get(harness.path('a'))).data)).toBe('x');
      await expect(harness.zk.set(harness.path('a'), bytes('y'))).rejects.toMatchObject({ code: 'no-auth' });
      await expect(harness.zk.create(harness.path('a/b'))).rejects.toMatchObject({ code: 'no-auth' });
    });

    it('add the chroot to paths of calls and remove it from results', async () => {
      await harness.zk.create(harness.path('home'));
      const inside = await harness.client({ chroot: harness.path('home') });
      const { path } = await inside.create('/n-', bytes('in'), { mode: 'persistent-sequential' });
      expect(path).toBe('/n-0000000000');
      expect((await inside.children('/')).children).toEqual(['n-0000000000']);
      expect(textOf((await harness.zk.get(harness.path('home/n-0000000000'))).data)).toBe('in');
      await expect(inside.get('/missing')).rejects.toMatchObject({ code: 'no-node', path: '/missing' });
      const [result] = await inside.transaction([{ type: 'create', path: '/t' }]);
      expect(result).toMatchObject({ type: 'create', path: '/t' });
    });
  });
}

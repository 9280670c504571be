/** Behaviour of znodes: creation, versions, stats, sequence numbers, errors, access control, chroot. */

import { describe, expect, it } from '@jest/globals';
import { OPEN_ACL, Permission } from '../../src/index.js';
import { bytes, textOf, type Bench } from './harness.js';

export function describeZnodes(bench: Bench): void {
  describeCreation(bench);
  describeReadsAndWrites(bench);
  describeStats(bench);
  describeAccess(bench);
}

function describeCreation(bench: Bench): void {
  describe('creation', () => {
    it('makes a znode that holds the data, and answers with its path and stat', async () => {
      const path = bench.path('a');
      const created = await bench.zk.create(path, bytes('data'));
      expect(created.path).toBe(path);
      const { data, stat } = await bench.zk.get(path);
      expect(textOf(data)).toBe('data');
      expect(stat).toEqual(created.stat);
    });

    it('makes an empty znode without data', async () => {
      const { stat } = await bench.zk.create(bench.path('empty'));
      expect(stat.dataLength).toBe(0);
      expect((await bench.zk.get(bench.path('empty'))).data).toHaveLength(0);
    });

    it('keeps the data that was given, whatever the caller does with the array afterwards', async () => {
      const data = bytes('before');
      const created = bench.zk.create(bench.path('a'), data);
      data.fill(0);
      await created;
      expect(textOf((await bench.zk.get(bench.path('a'))).data)).toBe('before');
    });

    it('appends ten digits that count the creations below the parent, whatever the prefix', async () => {
      const mode = 'persistent-sequential';
      const paths = [];
      for (const prefix of ['n-', 'n-', '', 'm-']) {
        paths.push((await bench.zk.create(bench.path(prefix), undefined, { mode })).path);
      }
      expect(paths).toEqual(
        ['n-0000000000', 'n-0000000001', '0000000002', 'm-0000000003'].map((name) => bench.path(name)),
      );
    });

    it('counts plain creations and deleted znodes in sequence numbers as well', async () => {
      await bench.zk.create(bench.path('a'));
      await bench.zk.create(bench.path('b'));
      await bench.zk.delete(bench.path('a'));
      const { path } = await bench.zk.create(bench.path('n-'), undefined, { mode: 'persistent-sequential' });
      expect(path).toBe(bench.path('n-0000000002'));
    });

    it('starts at zero again below a parent that was made anew', async () => {
      const mode = 'persistent-sequential';
      await bench.zk.create(bench.path('dir'));
      const first = await bench.zk.create(bench.path('dir/'), undefined, { mode });
      await bench.zk.delete(first.path);
      await bench.zk.delete(bench.path('dir'));
      await bench.zk.create(bench.path('dir'));
      const second = await bench.zk.create(bench.path('dir/'), undefined, { mode });
      expect(second.path).toBe(first.path);
    });

    it('refuses what exists already', async () => {
      await bench.zk.create(bench.path('a'));
      await expect(bench.zk.create(bench.path('a'))).rejects.toMatchObject({
        code: 'node-exists',
        path: bench.path('a'),
        operation: 'create',
      });
      await expect(bench.zk.create('/')).rejects.toMatchObject({ code: 'node-exists' });
    });

    it('refuses a znode without a parent', async () => {
      await expect(bench.zk.create(bench.path('a/b'))).rejects.toMatchObject({ code: 'no-node' });
    });

    it('makes containers, which look like other znodes', async () => {
      const { stat } = await bench.zk.create(bench.path('c'), undefined, { mode: 'container' });
      expect(stat.ephemeralOwner).toBe(0n);
      await bench.zk.create(bench.path('c/child'));
      expect((await bench.zk.children(bench.path('c'))).children).toEqual(['child']);
    });

    it('refuses TTL znodes when the server has them disabled', async () => {
      const options = { mode: 'persistent-ttl', ttlMs: 1000 } as const;
      await expect(bench.zk.create(bench.path('ttl'), undefined, options)).rejects.toMatchObject({
        code: 'unimplemented',
      });
    });

    it.each(['', 'a', '/a/', '//', '/a//b', '/a/../b', '/a/.', '/a\u0000b'])('rejects the path %j', async (path) => {
      await expect(bench.zk.create(path)).rejects.toMatchObject({ code: 'invalid-argument' });
      await expect(bench.zk.get(path)).rejects.toMatchObject({ code: 'invalid-argument' });
    });
  });
}

function describeReadsAndWrites(bench: Bench): void {
  describe('reads and writes', () => {
    it('tells whether a znode exists', async () => {
      expect(await bench.zk.exists(bench.path('a'))).toBeUndefined();
      const { stat } = await bench.zk.create(bench.path('a'));
      expect(await bench.zk.exists(bench.path('a'))).toEqual(stat);
    });

    it('changes data and counts the version up', async () => {
      await bench.zk.create(bench.path('a'), bytes('0'));
      const first = await bench.zk.set(bench.path('a'), bytes('one'));
      const second = await bench.zk.set(bench.path('a'), bytes('second'), { version: first.version });
      expect([first.version, second.version, second.dataLength]).toEqual([1, 2, 6]);
      expect(await bench.zk.get(bench.path('a'))).toEqual({ data: expect.anything(), stat: second });
    });

    it('refuses a write or deletion of another version, which changes nothing', async () => {
      await bench.zk.create(bench.path('a'), bytes('kept'));
      for (const attempt of [
        bench.zk.set(bench.path('a'), bytes('lost'), { version: 1 }),
        bench.zk.delete(bench.path('a'), { version: 1 }),
      ]) {
        await expect(attempt).rejects.toMatchObject({ code: 'bad-version', outcome: 'not-applied' });
      }
      const { data, stat } = await bench.zk.get(bench.path('a'));
      expect([textOf(data), stat.version]).toEqual(['kept', 0]);
    });

    it('lists children', async () => {
      for (const name of ['c', 'a', 'b']) await bench.zk.create(bench.path(name));
      const { children, stat } = await bench.zk.children(bench.root);
      expect([...children].sort()).toEqual(['a', 'b', 'c']);
      expect(stat.numChildren).toBe(3);
    });

    it('deletes only znodes without children', async () => {
      await bench.zk.create(bench.path('a'));
      await bench.zk.create(bench.path('a/b'));
      await expect(bench.zk.delete(bench.path('a'))).rejects.toMatchObject({ code: 'not-empty' });
      await bench.zk.delete(bench.path('a/b'));
      await bench.zk.delete(bench.path('a'));
      expect(await bench.zk.exists(bench.path('a'))).toBeUndefined();
    });

    it('says of a missing znode that it is missing', async () => {
      const path = bench.path('missing');
      for (const attempt of [
        bench.zk.get(path),
        bench.zk.set(path, bytes('')),
        bench.zk.delete(path),
        bench.zk.children(path),
        bench.zk.getAcl(path),
        bench.zk.setAcl(path, OPEN_ACL),
      ]) {
        await expect(attempt).rejects.toMatchObject({ code: 'no-node', path });
      }
    });

    it('refuses to delete the root', async () => {
      await expect(bench.zk.delete('/zookeeper-not-there')).rejects.toMatchObject({ code: 'no-node' });
    });

    it('answers calls in the order in which they were issued', async () => {
      const order: number[] = [];
      const calls = Array.from({ length: 50 }, (_, index) =>
        (index % 3 === 0
          ? bench.zk.create(bench.path(`n${index}`))
          : bench.zk.exists(bench.path(`n${index - 1}`))
        ).then((result) => {
          order.push(index);
          return result;
        }),
      );
      const results = await Promise.all(calls);
      expect(order).toEqual(calls.map((_, index) => index));
      expect(results[1]).toBeDefined();
    });

    it('syncs', async () => {
      const other = await bench.client();
      await other.create(bench.path('a'));
      await bench.zk.sync(bench.root);
      expect(await bench.zk.exists(bench.path('a'))).toBeDefined();
    });

    it('stores data of every byte, and up to a large size', async () => {
      const data = Uint8Array.from({ length: 256 * 1024 }, (_, index) => index % 256);
      await bench.zk.create(bench.path('big'), data);
      expect(Buffer.compare((await bench.zk.get(bench.path('big'))).data, data)).toBe(0);
    });
  });
}

function describeStats(bench: Bench): void {
  describe('stat', () => {
    it('of a new znode', async () => {
      const { stat } = await bench.zk.create(bench.path('a'), bytes('xyz'));
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

    it('of a parent counts every creation and deletion of children in cversion, and names the last in pzxid', async () => {
      const parent = (await bench.zk.create(bench.path('p'))).stat;
      const { stat: child } = await bench.zk.create(bench.path('p/a'));
      await bench.zk.create(bench.path('p/b'));
      await bench.zk.delete(bench.path('p/a'));
      const { stat: last } = await bench.zk.create(bench.path('p/c'));
      const stat = await bench.zk.exists(bench.path('p'));
      expect(stat).toEqual({ ...parent, cversion: 4, numChildren: 2, pzxid: last.czxid });
      expect(last.czxid).toBeGreaterThan(child.czxid);
    });

    it('of a parent names a deletion in pzxid', async () => {
      await bench.zk.create(bench.path('a'));
      const before = await bench.zk.exists(bench.root);
      await bench.zk.delete(bench.path('a'));
      const after = await bench.zk.exists(bench.root);
      expect(after?.pzxid).toBeGreaterThan(before?.pzxid ?? 0n);
      expect(after?.mzxid).toBe(before?.mzxid);
    });

    it('of a change has a new mzxid, and leaves the parent alone', async () => {
      const { stat: created } = await bench.zk.create(bench.path('a'));
      const parent = await bench.zk.exists(bench.root);
      const changed = await bench.zk.set(bench.path('a'), bytes('x'));
      expect(changed.mzxid).toBeGreaterThan(created.mzxid);
      expect([changed.czxid, changed.pzxid, changed.ctime]).toEqual([created.czxid, created.pzxid, created.ctime]);
      expect(await bench.zk.exists(bench.root)).toEqual(parent);
    });

    it('of an ephemeral znode names the session that owns it', async () => {
      const { stat } = await bench.zk.create(bench.path('e'), undefined, { mode: 'ephemeral' });
      expect(stat.ephemeralOwner).toBe(bench.sessionOf(bench.zk).id);
    });
  });
}

function describeAccess(bench: Bench): void {
  describe('access control and chroot', () => {
    it('stores lists, and counts their changes in aversion', async () => {
      const acl = [{ permissions: Permission.read | Permission.admin, scheme: 'world', id: 'anyone' }];
      await bench.zk.create(bench.path('a'));
      expect((await bench.zk.getAcl(bench.path('a'))).acl).toEqual(OPEN_ACL);
      const stat = await bench.zk.setAcl(bench.path('a'), acl, { version: 0 });
      expect(stat).toMatchObject({ aversion: 1, version: 0 });
      expect(await bench.zk.getAcl(bench.path('a'))).toEqual({ acl, stat });
      await expect(bench.zk.setAcl(bench.path('a'), acl, { version: 0 })).rejects.toMatchObject({
        code: 'bad-version',
      });
    });

    it('refuses what the list does not allow', async () => {
      const acl = [{ permissions: Permission.read, scheme: 'world', id: 'anyone' }];
      await bench.zk.create(bench.path('a'), bytes('x'), { acl });
      expect(textOf((await bench.zk.get(bench.path('a'))).data)).toBe('x');
      await expect(bench.zk.set(bench.path('a'), bytes('y'))).rejects.toMatchObject({ code: 'no-auth' });
      await expect(bench.zk.create(bench.path('a/b'))).rejects.toMatchObject({ code: 'no-auth' });
    });

    it('keeps a client below its chroot, in calls and in results', async () => {
      await bench.zk.create(bench.path('home'));
      const inside = await bench.client({ chroot: bench.path('home') });
      const { path } = await inside.create('/n-', bytes('in'), { mode: 'persistent-sequential' });
      expect(path).toBe('/n-0000000000');
      expect((await inside.children('/')).children).toEqual(['n-0000000000']);
      expect(textOf((await bench.zk.get(bench.path('home/n-0000000000'))).data)).toBe('in');
      await expect(inside.get('/missing')).rejects.toMatchObject({ code: 'no-node', path: '/missing' });
      const [result] = await inside.transaction([{ type: 'create', path: '/t' }]);
      expect(result).toMatchObject({ type: 'create', path: '/t' });
    });
  });
}

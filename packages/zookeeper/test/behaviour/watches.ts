/** Behaviour of one-shot, persistent and recursive watches: order, precedence over answers, reconnections. */

import { describe, expect, it } from '@jest/globals';
import { bytes, Collector, EventLog, type Harness } from './harness.js';

export function describeWatches(harness: Harness): void {
  describeOneShot(harness);
  describePersistent(harness);
  describeReconnection(harness);
}

const collector = (): { log: Collector<string>; watch: (event: { type: string; path: string }) => void } => {
  const log = new Collector<string>();
  return { log, watch: (event) => log.add(`${event.type} ${event.path}`) };
};

function describeOneShot(harness: Harness): void {
  describe('one-shot watches', () => {
    it('set by get fire for a change of the data', async () => {
      const { log, watch } = collector();
      await harness.zk.create(harness.path('a'));
      await harness.zk.get(harness.path('a'), { watch });
      await harness.zk.set(harness.path('a'), bytes('1'));
      await harness.zk.set(harness.path('a'), bytes('2'));
      expect(log.items).toEqual([`changed ${harness.path('a')}`]);
    });

    it('set by exists fire for the creation', async () => {
      const { log, watch } = collector();
      await harness.zk.exists(harness.path('a'), { watch });
      await harness.zk.create(harness.path('a'));
      await harness.zk.set(harness.path('a'), bytes('1'));
      expect(log.items).toEqual([`created ${harness.path('a')}`]);
    });

    it('fire for a deletion, once per listener', async () => {
      const { log, watch } = collector();
      await harness.zk.create(harness.path('a'));
      await harness.zk.exists(harness.path('a'), { watch });
      await harness.zk.children(harness.path('a'), { watch: (event) => log.add(`children: ${event.type}`) });
      await harness.zk.delete(harness.path('a'));
      expect([...log.items].sort()).toEqual([`children: deleted`, `deleted ${harness.path('a')}`]);
    });

    it('set by children fire when children are created or deleted, not when they change', async () => {
      const { log, watch } = collector();
      await harness.zk.create(harness.path('a'));
      await harness.zk.children(harness.root, { watch });
      await harness.zk.set(harness.path('a'), bytes('1'));
      expect(log.items).toEqual([]);
      await harness.zk.delete(harness.path('a'));
      expect(log.items).toEqual([`children ${harness.root}`]);
      await harness.zk.children(harness.root, { watch });
      await harness.zk.create(harness.path('b'));
      expect(log.items).toHaveLength(2);
    });

    it('are not set by a read that fails', async () => {
      const { log, watch } = collector();
      await expect(harness.zk.get(harness.path('a'), { watch })).rejects.toMatchObject({ code: 'no-node' });
      await harness.zk.create(harness.path('a'));
      expect(log.items).toEqual([]);
    });

    it('fire before the answer to the change', async () => {
      const order: string[] = [];
      await harness.zk.create(harness.path('a'));
      await harness.zk.get(harness.path('a'), { watch: () => order.push('event') });
      await harness.zk.set(harness.path('a'), bytes('1')).then(() => order.push('answer'));
      expect(order).toEqual(['event', 'answer']);
    });
  });
}

function describePersistent(harness: Harness): void {
  describe('persistent watches', () => {
    it('of one znode get its creation, changes, children and deletion', async () => {
      const log = new EventLog();
      const path = harness.path('a');
      harness.zk.watch(path, 'persistent', log);
      await log.atLeast(1);
      await harness.zk.create(path);
      await harness.zk.set(path, bytes('1'));
      await harness.zk.create(`${path}/b`);
      await harness.zk.set(`${path}/b`, bytes('1'));
      await harness.zk.delete(`${path}/b`);
      await harness.zk.delete(path);
      await harness.zk.create(path);
      const events = ['created', 'changed', 'children', 'children', 'deleted', 'created'];
      expect(log.items).toEqual(['reset', ...events.map((type) => `${type} ${path}`)]);
    });

    it('of a tree get events of every znode, but no "children" events', async () => {
      const log = new EventLog();
      harness.zk.watch(harness.root, 'persistent-recursive', log);
      await log.atLeast(1);
      const other = await harness.client();
      await other.create(harness.path('a'));
      await other.create(harness.path('a/b'));
      await other.set(harness.path('a/b'), bytes('1'));
      await other.set(harness.root, bytes('1'));
      await other.delete(harness.path('a/b'));
      await other.create(`${harness.root}-beside`);
      await other.delete(harness.path('a'));
      expect(await log.atLeast(7)).toEqual([
        'reset',
        `created ${harness.path('a')}`,
        `created ${harness.path('a/b')}`,
        `changed ${harness.path('a/b')}`,
        `changed ${harness.root}`,
        `deleted ${harness.path('a/b')}`,
        `deleted ${harness.path('a')}`,
      ]);
    });

    it('are independent of one-shot watches', async () => {
      const log = new EventLog();
      const { log: once, watch } = collector();
      harness.zk.watch(harness.root, 'persistent-recursive', log);
      await log.atLeast(1);
      await harness.zk.get(harness.root, { watch });
      await harness.zk.children(harness.root, { watch });
      await harness.zk.create(harness.path('a'));
      await harness.zk.set(harness.root, bytes('1'));
      await harness.zk.set(harness.root, bytes('2'));
      expect(once.items).toEqual([`children ${harness.root}`, `changed ${harness.root}`]);
      expect(log.items).toEqual([
        'reset',
        `created ${harness.path('a')}`,
        `changed ${harness.root}`,
        `changed ${harness.root}`,
      ]);
    });

    it('may be closed during a read that sets a one-shot watch', async () => {
      const { log: once, watch } = collector();
      const read = harness.zk.get(harness.root, { watch });
      harness.zk.watch(harness.root, 'persistent', new EventLog()).close();
      await read;
      await harness.zk.set(harness.root, bytes('1'));
      await harness.zk.set(harness.root, bytes('2'));
      expect(once.items).toEqual([`changed ${harness.root}`]);
    });

    it('get no events after they were closed', async () => {
      const log = new EventLog();
      const watch = harness.zk.watch(harness.root, 'persistent-recursive', log);
      await log.atLeast(1);
      watch.close();
      watch.close();
      await harness.zk.create(harness.path('a'));
      expect(log.items).toEqual(['reset']);
    });

    it('of one client can share a path', async () => {
      const [one, two] = [new EventLog(), new EventLog()];
      const first = harness.zk.watch(harness.root, 'persistent-recursive', one);
      harness.zk.watch(harness.root, 'persistent-recursive', two);
      await Promise.all([one.atLeast(1), two.atLeast(1)]);
      await harness.zk.create(harness.path('a'));
      first.close();
      await harness.zk.create(harness.path('b'));
      expect(one.items).toEqual(['reset', `created ${harness.path('a')}`]);
      expect(two.items).toEqual(['reset', `created ${harness.path('a')}`, `created ${harness.path('b')}`]);
    });

    it('report paths relative to the chroot', async () => {
      const inside = await harness.client({ chroot: harness.root });
      const log = new EventLog();
      inside.watch('/', 'persistent-recursive', log);
      await log.atLeast(1);
      await harness.zk.create(harness.path('a'));
      await harness.zk.set(harness.root, bytes('1'));
      expect(await log.atLeast(3)).toEqual(['reset', 'created /a', 'changed /']);
    });
  });
}

function describeReconnection(harness: Harness): void {
  describe('the client', () => {
    it('sets persistent watches again on each connection, and notifies their listeners', async () => {
      const client = await harness.client();
      const log = new EventLog();
      client.watch(harness.root, 'persistent-recursive', log);
      await log.atLeast(1);
      await harness.reconnect(client);
      await log.atLeast(2);
      await harness.zk.create(harness.path('a'));
      expect(await log.atLeast(3)).toEqual(['reset', 'reset', `created ${harness.path('a')}`]);
    });

    it('sets persistent watches again in each session', async () => {
      const client = await harness.client({ sessionTimeoutMs: 2000 });
      const log = new EventLog();
      client.watch(harness.root, 'persistent-recursive', log);
      await log.atLeast(1);
      await harness.expire(client);
      await log.atLeast(2);
      await harness.zk.create(harness.path('a'));
      expect(await log.atLeast(3)).toEqual(['reset', 'reset', `created ${harness.path('a')}`]);
    });

    it('sets one-shot watches again on each connection', async () => {
      const client = await harness.client();
      const { log, watch } = collector();
      await harness.zk.create(harness.path('a'));
      await client.get(harness.path('a'), { watch });
      await client.exists(harness.path('b'), { watch });
      await client.children(harness.root, { watch });
      await harness.reconnect(client);
      await harness.zk.set(harness.path('a'), bytes('1'));
      await harness.zk.create(harness.path('b'));
      expect([...(await log.atLeast(3))].sort()).toEqual([
        `changed ${harness.path('a')}`,
        `children ${harness.root}`,
        `created ${harness.path('b')}`,
      ]);
    });
  });
}

/** Behaviour of one-shot, persistent and recursive watches: order, precedence over answers, reconnections. */

import { describe, expect, it } from '@jest/globals';
import { bytes, Collector, EventLog, type Bench } from './harness.js';

export function describeWatches(bench: Bench): void {
  describeOneShot(bench);
  describePersistent(bench);
  describeReconnection(bench);
}

const collector = (): { log: Collector<string>; watch: (event: { type: string; path: string }) => void } => {
  const log = new Collector<string>();
  return { log, watch: (event) => log.add(`${event.type} ${event.path}`) };
};

function describeOneShot(bench: Bench): void {
  describe('one-shot watches', () => {
    it('of the data', async () => {
      const { log, watch } = collector();
      await bench.zk.create(bench.path('a'));
      await bench.zk.get(bench.path('a'), { watch });
      await bench.zk.set(bench.path('a'), bytes('1'));
      await bench.zk.set(bench.path('a'), bytes('2'));
      expect(log.items).toEqual([`changed ${bench.path('a')}`]);
    });

    it('of a creation, while there is nothing', async () => {
      const { log, watch } = collector();
      await bench.zk.exists(bench.path('a'), { watch });
      await bench.zk.create(bench.path('a'));
      await bench.zk.set(bench.path('a'), bytes('1'));
      expect(log.items).toEqual([`created ${bench.path('a')}`]);
    });

    it('of a deletion, each listener once', async () => {
      const { log, watch } = collector();
      await bench.zk.create(bench.path('a'));
      await bench.zk.exists(bench.path('a'), { watch });
      await bench.zk.children(bench.path('a'), { watch: (event) => log.add(`children: ${event.type}`) });
      await bench.zk.delete(bench.path('a'));
      expect([...log.items].sort()).toEqual([`children: deleted`, `deleted ${bench.path('a')}`]);
    });

    it('of children, by their creation or deletion but not their changes', async () => {
      const { log, watch } = collector();
      await bench.zk.create(bench.path('a'));
      await bench.zk.children(bench.root, { watch });
      await bench.zk.set(bench.path('a'), bytes('1'));
      expect(log.items).toEqual([]);
      await bench.zk.delete(bench.path('a'));
      expect(log.items).toEqual([`children ${bench.root}`]);
      await bench.zk.children(bench.root, { watch });
      await bench.zk.create(bench.path('b'));
      expect(log.items).toHaveLength(2);
    });

    it('are not set by a read that fails', async () => {
      const { log, watch } = collector();
      await expect(bench.zk.get(bench.path('a'), { watch })).rejects.toMatchObject({ code: 'no-node' });
      await bench.zk.create(bench.path('a'));
      expect(log.items).toEqual([]);
    });

    it('fire before the answer to the change', async () => {
      const order: string[] = [];
      await bench.zk.create(bench.path('a'));
      await bench.zk.get(bench.path('a'), { watch: () => order.push('event') });
      await bench.zk.set(bench.path('a'), bytes('1')).then(() => order.push('answer'));
      expect(order).toEqual(['event', 'answer']);
    });
  });
}

function describePersistent(bench: Bench): void {
  describe('persistent watches', () => {
    it('of one znode tell of its creation, changes, children and deletion', async () => {
      const log = new EventLog();
      const path = bench.path('a');
      bench.zk.watch(path, 'persistent', log);
      await log.atLeast(1);
      await bench.zk.create(path);
      await bench.zk.set(path, bytes('1'));
      await bench.zk.create(`${path}/b`);
      await bench.zk.set(`${path}/b`, bytes('1'));
      await bench.zk.delete(`${path}/b`);
      await bench.zk.delete(path);
      await bench.zk.create(path);
      const events = ['created', 'changed', 'children', 'children', 'deleted', 'created'];
      expect(log.items).toEqual(['reset', ...events.map((type) => `${type} ${path}`)]);
    });

    it('of a tree tell of every znode in it, but not of children as such', async () => {
      const log = new EventLog();
      bench.zk.watch(bench.root, 'persistent-recursive', log);
      await log.atLeast(1);
      const other = await bench.client();
      await other.create(bench.path('a'));
      await other.create(bench.path('a/b'));
      await other.set(bench.path('a/b'), bytes('1'));
      await other.set(bench.root, bytes('1'));
      await other.delete(bench.path('a/b'));
      await other.create(`${bench.root}-beside`);
      await other.delete(bench.path('a'));
      expect(await log.atLeast(7)).toEqual([
        'reset',
        `created ${bench.path('a')}`,
        `created ${bench.path('a/b')}`,
        `changed ${bench.path('a/b')}`,
        `changed ${bench.root}`,
        `deleted ${bench.path('a/b')}`,
        `deleted ${bench.path('a')}`,
      ]);
    });

    it('are not disturbed by one-shot watches', async () => {
      const log = new EventLog();
      const { log: once, watch } = collector();
      bench.zk.watch(bench.root, 'persistent-recursive', log);
      await log.atLeast(1);
      await bench.zk.get(bench.root, { watch });
      await bench.zk.children(bench.root, { watch });
      await bench.zk.create(bench.path('a'));
      await bench.zk.set(bench.root, bytes('1'));
      await bench.zk.set(bench.root, bytes('2'));
      expect(once.items).toEqual([`children ${bench.root}`, `changed ${bench.root}`]);
      expect(log.items).toEqual([
        'reset',
        `created ${bench.path('a')}`,
        `changed ${bench.root}`,
        `changed ${bench.root}`,
      ]);
    });

    it('get no events after they were closed', async () => {
      const log = new EventLog();
      const watch = bench.zk.watch(bench.root, 'persistent-recursive', log);
      await log.atLeast(1);
      watch.close();
      watch.close();
      await bench.zk.create(bench.path('a'));
      expect(log.items).toEqual(['reset']);
    });

    it('of one client may be several at one path', async () => {
      const [one, two] = [new EventLog(), new EventLog()];
      const first = bench.zk.watch(bench.root, 'persistent-recursive', one);
      bench.zk.watch(bench.root, 'persistent-recursive', two);
      await Promise.all([one.atLeast(1), two.atLeast(1)]);
      await bench.zk.create(bench.path('a'));
      first.close();
      await bench.zk.create(bench.path('b'));
      expect(one.items).toEqual(['reset', `created ${bench.path('a')}`]);
      expect(two.items).toEqual(['reset', `created ${bench.path('a')}`, `created ${bench.path('b')}`]);
    });

    it('speak of paths below the chroot', async () => {
      const inside = await bench.client({ chroot: bench.root });
      const log = new EventLog();
      inside.watch('/', 'persistent-recursive', log);
      await log.atLeast(1);
      await bench.zk.create(bench.path('a'));
      await bench.zk.set(bench.root, bytes('1'));
      expect(await log.atLeast(3)).toEqual(['reset', 'created /a', 'changed /']);
    });
  });
}

function describeReconnection(bench: Bench): void {
  describe('watches and connections', () => {
    it('persistent ones are set again on each connection, and say so', async () => {
      const client = await bench.client();
      const log = new EventLog();
      client.watch(bench.root, 'persistent-recursive', log);
      await log.atLeast(1);
      await bench.reconnect(client);
      await log.atLeast(2);
      await bench.zk.create(bench.path('a'));
      expect(await log.atLeast(3)).toEqual(['reset', 'reset', `created ${bench.path('a')}`]);
    });

    it('persistent ones are set again in each session', async () => {
      const client = await bench.client({ sessionTimeoutMs: 2000 });
      const log = new EventLog();
      client.watch(bench.root, 'persistent-recursive', log);
      await log.atLeast(1);
      await bench.expire(client);
      await log.atLeast(2);
      await bench.zk.create(bench.path('a'));
      expect(await log.atLeast(3)).toEqual(['reset', 'reset', `created ${bench.path('a')}`]);
    });

    it('one-shot watches are kept across connections', async () => {
      const client = await bench.client();
      const { log, watch } = collector();
      await bench.zk.create(bench.path('a'));
      await client.get(bench.path('a'), { watch });
      await client.exists(bench.path('b'), { watch });
      await client.children(bench.root, { watch });
      await bench.reconnect(client);
      await bench.zk.set(bench.path('a'), bytes('1'));
      await bench.zk.create(bench.path('b'));
      expect([...(await log.atLeast(3))].sort()).toEqual([
        `changed ${bench.path('a')}`,
        `children ${bench.root}`,
        `created ${bench.path('b')}`,
      ]);
    });
  });
}

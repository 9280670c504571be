/** Behaviour in time: the order of answers and events, visibility to other clients, and many concurrent calls. */

import { describe, expect, it } from '@jest/globals';
import { bytes, EventLog, outcomeOf, textOf, type Harness, type PlainHarness } from './harness.js';

export function describeOrdering(harness: PlainHarness): void {
  describe('calls that are issued without waiting', () => {
    it('take effect in the order of the calls', async () => {
      const path = harness.path('a');
      const outcomes = await Promise.all(
        [
          harness.zk.get(path),
          harness.zk.create(path, bytes('1')),
          harness.zk.create(path, bytes('2')),
          harness.zk.set(path, bytes('3'), { version: 0 }),
          harness.zk.set(path, bytes('4'), { version: 0 }),
          harness.zk.delete(path, { version: 1 }),
          harness.zk.get(path),
          harness.zk.create(path, bytes('5')),
        ].map(outcomeOf),
      );
      expect(outcomes).toEqual(['no-node', 'ok', 'node-exists', 'ok', 'bad-version', 'ok', 'no-node', 'ok']);
      expect(textOf((await harness.zk.get(path)).data)).toBe('5');
    });

    it('can be a thousand creations, each with its own sequence number', async () => {
      const created = await Promise.all(
        Array.from({ length: 1000 }, () =>
          harness.zk.create(harness.path('n-'), undefined, { mode: 'persistent-sequential' }),
        ),
      );
      const numbers = created.map(({ path }) => Number(path.slice(-10)));
      expect(numbers).toEqual(created.map((_, index) => index));
      const { children, stat } = await harness.zk.children(harness.root);
      expect([children.length, stat.numChildren, stat.cversion]).toEqual([1000, 1000, 1000]);
    });

    it('succeed next to one that fails', async () => {
      const calls = Array.from({ length: 100 }, (_, index) =>
        outcomeOf(
          index % 2 === 0 ? harness.zk.create(harness.path(`n${index}`)) : harness.zk.get(harness.path('missing')),
        ),
      );
      const outcomes = await Promise.all(calls);
      expect(outcomes).toEqual(outcomes.map((_, index) => (index % 2 === 0 ? 'ok' : 'no-node')));
    });
  });

  describe('a write of one client', () => {
    it('is read by another client after a sync', async () => {
      const other = await harness.client();
      for (let round = 0; round < 20; round++) {
        await harness.zk.create(harness.path(`n${round}`), bytes(`${round}`));
        await other.sync(harness.root);
        expect(textOf((await other.get(harness.path(`n${round}`))).data)).toBe(`${round}`);
      }
    });

    it('has a greater transaction number than all earlier ones', async () => {
      const other = await harness.client();
      let last = 0n;
      for (let round = 0; round < 10; round++) {
        const zk = round % 2 === 0 ? harness.zk : other;
        const { stat } = await zk.create(harness.path(`n${round}`));
        expect(stat.czxid).toBeGreaterThan(last);
        last = stat.czxid;
      }
    });

    it.each([0, 1, 127, 128, 1023, 4096, 65_535, 65_536, 262_144, 1_000_000])(
      'of %d bytes is read back unchanged',
      async (length) => {
        const data = Uint8Array.from({ length }, (_, index) => (index * 31 + (index >> 8)) % 256);
        await harness.zk.create(harness.path('a'), data);
        const read = await harness.zk.get(harness.path('a'));
        expect([Buffer.compare(read.data, data), read.stat.dataLength]).toEqual([0, length]);
      },
    );
  });

  describe('lists of children', () => {
    it.each([0, 1, 2, 100, 2000])('can have %d entries', async (count) => {
      const names = Array.from({ length: count }, (_, index) => `child-${index}`);
      await Promise.all(names.map((name) => harness.zk.create(harness.path(name))));
      const { children, stat } = await harness.zk.children(harness.root);
      expect([...children].sort()).toEqual([...names].sort());
      expect(stat.numChildren).toBe(count);
    });

    it('contain the children only, not their descendants', async () => {
      await harness.zk.create(harness.path('a'));
      await harness.zk.create(harness.path('a/b'));
      await harness.zk.create(harness.path('a/b/c'));
      expect((await harness.zk.children(harness.root)).children).toEqual(['a']);
      expect((await harness.zk.children(harness.path('a'))).children).toEqual(['b']);
      expect((await harness.zk.children(harness.path('a/b/c'))).children).toEqual([]);
    });
  });
}

export function describeEventOrder(harness: Harness): void {
  describe('events', () => {
    it('arrive in the order of the changes, also those of several clients', async () => {
      const log = new EventLog();
      harness.zk.watch(harness.root, 'persistent-recursive', log);
      await log.atLeast(1);
      const writers = [harness.zk, await harness.client(), await harness.client()];
      const created = await Promise.all(
        Array.from({ length: 300 }, (_, index) =>
          writers[index % 3]!.create(harness.path('n-'), undefined, { mode: 'persistent-sequential' }),
        ),
      );
      const events = (await log.atLeast(301)).slice(1);
      const inOrder = [...created].sort((one, other) => (one.stat.czxid < other.stat.czxid ? -1 : 1));
      expect(events).toEqual(inOrder.map(({ path }) => `created ${path}`));
    });

    it('arrive before every answer that reflects their change', async () => {
      const other = await harness.client();
      await harness.zk.create(harness.path('a'), bytes('0'));
      let received = 0;
      harness.zk.watch(harness.path('a'), 'persistent', { onEvent: () => received++ });
      await harness.zk.sync(harness.root);
      for (let version = 1; version <= 50; version++) {
        const written = other.set(harness.path('a'), bytes(`${version}`));
        const { stat } = await harness.zk.get(harness.path('a'));
        expect(received).toBeGreaterThanOrEqual(stat.version);
        await written;
      }
    });

    it('arrive for each of a thousand changes', async () => {
      await harness.zk.create(harness.path('a'));
      const log = new EventLog();
      harness.zk.watch(harness.path('a'), 'persistent', log);
      await log.atLeast(1);
      const changes = Array.from({ length: 1000 }, () => harness.zk.set(harness.path('a'), bytes('x')));
      await Promise.all(changes);
      expect(log.items).toHaveLength(1001);
    });
  });
}

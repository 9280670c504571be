/** Behaviour of read transactions, counts, lists of ephemerals, `whoAmI`, and the removal of watches. */

import { describe, expect, it } from '@jest/globals';
import type { WatchEvent } from '../../src/index.js';
import { bytes, outcomeOf, textOf, type Harness } from './harness.js';

export function describeInquiries(harness: Harness): void {
  describe('reads in one transaction', () => {
    it('return data and children in the order of the reads', async () => {
      const path = harness.path('a');
      await harness.zk.create(path, bytes('one'));
      await harness.zk.create(`${path}/b`, bytes('two'));
      const results = await harness.zk.readTransaction([
        { type: 'children', path },
        { type: 'get', path: `${path}/b` },
        { type: 'get', path },
      ]);
      expect(
        results.map((result) =>
          result.type === 'get'
            ? textOf(result.data)
            : result.type === 'children'
              ? [...result.children]
              : result.error.code,
        ),
      ).toEqual([['b'], 'two', 'one']);
    });

    it('succeed although one of them fails', async () => {
      const path = harness.path('a');
      await harness.zk.create(path, bytes('one'));
      const results = await harness.zk.readTransaction([
        { type: 'get', path: `${path}/missing` },
        { type: 'get', path },
      ]);
      expect(results.map((result) => (result.type === 'error' ? result.error.code : result.type))).toEqual([
        'no-node',
        'get',
      ]);
    });
  });

  describe('countDescendants', () => {
    it('counts znodes at any depth, without the root of the count', async () => {
      const path = harness.path('a');
      await harness.zk.create(path);
      expect(await harness.zk.countDescendants(path)).toBe(0);
      for (const child of ['/b', '/b/c', '/b/c/d', '/e']) await harness.zk.create(path + child);
      expect(await harness.zk.countDescendants(path)).toBe(4);
    });
  });

  describe('ephemerals', () => {
    it('returns the znodes of the own session with a prefix', async () => {
      const path = harness.path('a');
      await harness.zk.create(path);
      for (const name of ['x1', 'x2', 'y'])
        await harness.zk.create(`${path}/${name}`, bytes(''), { mode: 'ephemeral' });
      await harness.zk.create(`${path}/x3`);
      expect([...(await harness.zk.ephemerals(`${path}/x`))].sort()).toEqual([`${path}/x1`, `${path}/x2`]);
    });
  });

  describe('whoAmI', () => {
    it('returns the credentials that were added', async () => {
      await harness.zk.addAuth('digest', 'user:secret');
      const identities = await harness.zk.whoAmI();
      expect(identities).toContainEqual({ scheme: 'digest', user: 'user' });
    });
  });

  describe('removeWatches', () => {
    it('notifies the listeners, and no event arrives afterwards', async () => {
      const path = harness.path('a');
      await harness.zk.create(path);
      const events: WatchEvent['type'][] = [];
      await harness.zk.get(path, { watch: ({ type }) => events.push(type) });
      await harness.zk.removeWatches(path);
      await harness.zk.set(path, bytes('new'));
      await harness.zk.sync(path);
      expect(events).toEqual(['watch-removed']);
    });

    it('rejects when there is no such watch', async () => {
      const path = harness.path('a');
      await harness.zk.create(path);
      expect(await outcomeOf(harness.zk.removeWatches(path))).toBe('no-watcher');
    });

    it('does not remove watches of other kinds', async () => {
      const path = harness.path('a');
      await harness.zk.create(path);
      const events: string[] = [];
      await harness.zk.get(path, { watch: ({ type }) => events.push(`data ${type}`) });
      await harness.zk.children(path, { watch: ({ type }) => events.push(`children ${type}`) });
      await harness.zk.removeWatches(path, { kind: 'children' });
      await harness.zk.set(path, bytes('new'));
      await harness.zk.sync(path);
      expect(events).toEqual(['children watch-removed', 'data changed']);
    });
  });
}

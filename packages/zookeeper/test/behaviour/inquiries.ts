/** Behaviour of read transactions, counts, lists of ephemerals, `whoAmI`, and the removal of watches. */

import { describe, expect, it } from '@jest/globals';
import type { WatchEvent } from '../../src/index.js';
import { bytes, outcomeOf, textOf, type Harness } from './harness.js';

export function describeInquiries(harness: Harness): void {
  describe('reads in one transaction', () => {
    it('give data and children in the order in which they were asked for', async () => {
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

    it('do not fail for one of them that does', async () => {
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

  describe('counting what is below a znode', () => {
    it('counts at any depth, without the znode itself', async () => {
      const path = harness.path('a');
      await harness.zk.create(path);
      expect(await harness.zk.countDescendants(path)).toBe(0);
      for (const child of ['/b', '/b/c', '/b/c/d', '/e']) await harness.zk.create(path + child);
      expect(await harness.zk.countDescendants(path)).toBe(4);
    });
  });

  describe('the list of ephemerals', () => {
    it('has those of the own session that begin with the prefix', async () => {
      const path = harness.path('a');
      await harness.zk.create(path);
      for (const name of ['x1', 'x2', 'y'])
        await harness.zk.create(`${path}/${name}`, bytes(''), { mode: 'ephemeral' });
      await harness.zk.create(`${path}/x3`);
      expect([...(await harness.zk.ephemerals(`${path}/x`))].sort()).toEqual([`${path}/x1`, `${path}/x2`]);
    });
  });

  describe('asking for the own identities', () => {
    it('tells the credentials that were added', async () => {
      await harness.zk.addAuth('digest', 'user:secret');
      const identities = await harness.zk.whoAmI();
      expect(identities).toContainEqual({ scheme: 'digest', user: 'user' });
    });
  });

  describe('removing one-shot watches', () => {
    it('notifies their listeners, and no event arrives afterwards', async () => {
      const path = harness.path('a');
      await harness.zk.create(path);
      const events: WatchEvent['type'][] = [];
      await harness.zk.get(path, { watch: ({ type }) => events.push(type) });
      await harness.zk.removeWatches(path);
      await harness.zk.set(path, bytes('new'));
      await harness.zk.sync(path);
      expect(events).toEqual(['watch-removed']);
    });

    it('is refused when there is none', async () => {
      const path = harness.path('a');
      await harness.zk.create(path);
      expect(await outcomeOf(harness.zk.removeWatches(path))).toBe('no-watcher');
    });

    it('leaves those of other kinds', async () => {
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

/** Behaviour of read transactions, counts, lists of ephemerals, `whoAmI`, and the removal of watches. */

import { describe, expect, it } from '@jest/globals';
import type { WatchEvent } from '../../src/index.js';
import { bytes, outcomeOf, textOf, type Bench } from './harness.js';

export function describeInquiries(bench: Bench): void {
  describe('reads in one transaction', () => {
    it('give data and children in the order in which they were asked for', async () => {
      const path = bench.path('a');
      await bench.zk.create(path, bytes('one'));
      await bench.zk.create(`${path}/b`, bytes('two'));
      const results = await bench.zk.readTransaction([
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
      const path = bench.path('a');
      await bench.zk.create(path, bytes('one'));
      const results = await bench.zk.readTransaction([
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
      const path = bench.path('a');
      await bench.zk.create(path);
      expect(await bench.zk.countDescendants(path)).toBe(0);
      for (const child of ['/b', '/b/c', '/b/c/d', '/e']) await bench.zk.create(path + child);
      expect(await bench.zk.countDescendants(path)).toBe(4);
    });
  });

  describe('the list of ephemerals', () => {
    it('has those of the own session that begin with the prefix', async () => {
      const path = bench.path('a');
      await bench.zk.create(path);
      for (const name of ['x1', 'x2', 'y']) await bench.zk.create(`${path}/${name}`, bytes(''), { mode: 'ephemeral' });
      await bench.zk.create(`${path}/x3`);
      expect([...(await bench.zk.ephemerals(`${path}/x`))].sort()).toEqual([`${path}/x1`, `${path}/x2`]);
    });
  });

  describe('asking for the own identities', () => {
    it('tells the credentials that were added', async () => {
      await bench.zk.addAuth('digest', 'somebody:secret');
      const identities = await bench.zk.whoAmI();
      expect(identities).toContainEqual({ scheme: 'digest', user: 'somebody' });
    });
  });

  describe('removing one-shot watches', () => {
    it('notifies their listeners, and no event arrives afterwards', async () => {
      const path = bench.path('a');
      await bench.zk.create(path);
      const events: WatchEvent['type'][] = [];
      await bench.zk.get(path, { watch: ({ type }) => events.push(type) });
      await bench.zk.removeWatches(path);
      await bench.zk.set(path, bytes('new'));
      await bench.zk.sync(path);
      expect(events).toEqual(['watch-removed']);
    });

    it('is refused when there is none', async () => {
      const path = bench.path('a');
      await bench.zk.create(path);
      expect(await outcomeOf(bench.zk.removeWatches(path))).toBe('no-watcher');
    });

    it('leaves those of other kinds', async () => {
      const path = bench.path('a');
      await bench.zk.create(path);
      const events: string[] = [];
      await bench.zk.get(path, { watch: ({ type }) => events.push(`data ${type}`) });
      await bench.zk.children(path, { watch: ({ type }) => events.push(`children ${type}`) });
      await bench.zk.removeWatches(path, { kind: 'children' });
      await bench.zk.set(path, bytes('new'));
      await bench.zk.sync(path);
      expect(events).toEqual(['children watch-removed', 'data changed']);
    });
  });
}

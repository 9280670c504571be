/** Behaviour of transactions. */

import { describe, expect, it } from '@jest/globals';
import { bytes, EventLog, textOf, type Bench } from './harness.js';

export function describeTransactions(bench: Bench): void {
  describe('transactions', () => {
    it('apply all operations in order, under one transaction number', async () => {
      const { zk } = bench;
      await zk.create(bench.path('old'), bytes('x'));
      const results = await zk.transaction([
        { type: 'check', path: bench.path('old'), version: 0 },
        { type: 'create', path: bench.path('dir'), data: bytes('d') },
        { type: 'create', path: bench.path('dir/n-'), options: { mode: 'ephemeral-sequential' } },
        { type: 'set', path: bench.path('old'), data: bytes('y'), version: 0 },
        { type: 'delete', path: bench.path('old'), version: 1 },
      ]);
      expect(results.map(({ type }) => type)).toEqual(['check', 'create', 'create', 'set', 'delete']);
      expect(results[2]).toMatchObject({ path: bench.path('dir/n-0000000000') });
      expect(results[3]).toMatchObject({ stat: { version: 1, dataLength: 1 } });
      const dir = await zk.get(bench.path('dir'));
      expect([textOf(dir.data), dir.stat.pzxid, dir.stat.cversion]).toEqual(['d', dir.stat.czxid, 1]);
      expect(await zk.exists(bench.path('old'))).toBeUndefined();
    });

    it('answer a creation without a stat, except that of a container', async () => {
      const results = await bench.zk.transaction([
        { type: 'create', path: bench.path('a') },
        { type: 'create', path: bench.path('c'), options: { mode: 'container' } },
      ]);
      expect(results).toEqual([
        { type: 'create', path: bench.path('a') },
        { type: 'create', path: bench.path('c'), stat: await bench.zk.exists(bench.path('c')) },
      ]);
    });

    it('apply nothing when one operation fails, and say which', async () => {
      const { zk } = bench;
      await zk.create(bench.path('kept'), bytes('k'));
      const before = await zk.exists(bench.root);
      const transaction = zk.transaction([
        { type: 'create', path: bench.path('a') },
        { type: 'set', path: bench.path('kept'), data: bytes('changed') },
        { type: 'delete', path: bench.path('kept') },
        { type: 'create', path: bench.path('kept') },
        { type: 'check', path: bench.path('missing') },
        { type: 'create', path: bench.path('b') },
      ]);
      await expect(transaction).rejects.toMatchObject({
        code: 'no-node',
        operationIndex: 4,
        path: bench.path('missing'),
        outcome: 'not-applied',
      });
      expect(textOf((await zk.get(bench.path('kept'))).data)).toBe('k');
      expect(await zk.exists(bench.root)).toEqual(before);
    });

    it.each([
      ['bad-version', 'check', { version: 7 }],
      ['bad-version', 'set', { version: 7, data: bytes('') }],
      ['bad-version', 'delete', { version: 7 }],
      ['node-exists', 'create', {}],
    ] as const)('fail with %s of a %s', async (code, type, rest) => {
      await bench.zk.create(bench.path('a'));
      const op = { data: bytes(''), ...rest, type, path: bench.path('a') };
      await expect(bench.zk.transaction([op])).rejects.toMatchObject({ code, operationIndex: 0 });
    });

    it('see what their earlier operations did', async () => {
      const { zk } = bench;
      await zk.create(bench.path('dir'));
      await zk.create(bench.path('dir/child'));
      await expect(zk.transaction([{ type: 'delete', path: bench.path('dir') }])).rejects.toMatchObject({
        code: 'not-empty',
      });
      await zk.transaction([
        { type: 'delete', path: bench.path('dir/child') },
        { type: 'delete', path: bench.path('dir') },
        { type: 'create', path: bench.path('dir') },
        { type: 'create', path: bench.path('dir/s-'), options: { mode: 'persistent-sequential' } },
      ]);
      expect((await zk.children(bench.path('dir'))).children).toEqual(['s-0000000000']);
    });

    it('do not use up sequence numbers when they fail', async () => {
      const { zk } = bench;
      const mode = 'persistent-sequential';
      const create = { type: 'create', path: bench.path('n-'), options: { mode } } as const;
      await expect(zk.transaction([create, { type: 'check', path: bench.path('missing') }])).rejects.toMatchObject({
        operationIndex: 1,
      });
      expect((await zk.create(bench.path('n-'), undefined, { mode })).path).toBe(bench.path('n-0000000000'));
    });

    it('send events of every operation, in order', async () => {
      const { zk } = bench;
      const log = new EventLog();
      zk.watch(bench.root, 'persistent-recursive', log);
      await log.atLeast(1);
      await zk.transaction([
        { type: 'create', path: bench.path('a') },
        { type: 'create', path: bench.path('a/b') },
        { type: 'set', path: bench.path('a'), data: bytes('x') },
        { type: 'delete', path: bench.path('a/b') },
      ]);
      expect(log.items).toEqual([
        'reset',
        `created ${bench.path('a')}`,
        `created ${bench.path('a/b')}`,
        `changed ${bench.path('a')}`,
        `deleted ${bench.path('a/b')}`,
      ]);
    });

    it('may be empty', async () => {
      expect(await bench.zk.transaction([])).toEqual([]);
    });
  });
}

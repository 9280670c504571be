/** Behaviour of transactions. */

import { describe, expect, it } from '@jest/globals';
import { bytes, EventLog, textOf, type Harness } from './harness.js';

export function describeTransactions(harness: Harness): void {
  describe('transactions', () => {
    it('apply all operations in order with one transaction number', async () => {
      const { zk } = harness;
      await zk.create(harness.path('old'), bytes('x'));
      const results = await zk.transaction([
        { type: 'check', path: harness.path('old'), version: 0 },
        { type: 'create', path: harness.path('dir'), data: bytes('d') },
        { type: 'create', path: harness.path('dir/n-'), options: { mode: 'ephemeral-sequential' } },
        { type: 'set', path: harness.path('old'), data: bytes('y'), version: 0 },
        { type: 'delete', path: harness.path('old'), version: 1 },
      ]);
      expect(results.map(({ type }) => type)).toEqual(['check', 'create', 'create', 'set', 'delete']);
      expect(results[2]).toMatchObject({ path: harness.path('dir/n-0000000000') });
      expect(results[3]).toMatchObject({ stat: { version: 1, dataLength: 1 } });
      const dir = await zk.get(harness.path('dir'));
      expect([textOf(dir.data), dir.stat.pzxid, dir.stat.cversion]).toEqual(['d', dir.stat.czxid, 1]);
      expect(await zk.exists(harness.path('old'))).toBeUndefined();
    });

    it('answer a creation without a stat, except for a container', async () => {
      const results = await harness.zk.transaction([
        { type: 'create', path: harness.path('a') },
        { type: 'create', path: harness.path('c'), options: { mode: 'container' } },
      ]);
      expect(results).toEqual([
        { type: 'create', path: harness.path('a') },
        { type: 'create', path: harness.path('c'), stat: await harness.zk.exists(harness.path('c')) },
      ]);
    });

    it('apply nothing when one operation fails, and report its index', async () => {
      const { zk } = harness;
      await zk.create(harness.path('kept'), bytes('k'));
      const before = await zk.exists(harness.root);
      const transaction = zk.transaction([
        { type: 'create', path: harness.path('a') },
        { type: 'set', path: harness.path('kept'), data: bytes('changed') },
        { type: 'delete', path: harness.path('kept') },
        { type: 'create', path: harness.path('kept') },
        { type: 'check', path: harness.path('missing') },
        { type: 'create', path: harness.path('b') },
      ]);
      await expect(transaction).rejects.toMatchObject({
        code: 'no-node',
        operationIndex: 4,
        path: harness.path('missing'),
        outcome: 'not-applied',
      });
      expect(textOf((await zk.get(harness.path('kept'))).data)).toBe('k');
      expect(await zk.exists(harness.root)).toEqual(before);
    });

    it.each([
      ['bad-version', 'check', { version: 7 }],
      ['bad-version', 'set', { version: 7, data: bytes('') }],
      ['bad-version', 'delete', { version: 7 }],
      ['node-exists', 'create', {}],
    ] as const)('fail with %s when a %s does', async (code, type, rest) => {
      await harness.zk.create(harness.path('a'));
      const op = { data: bytes(''), ...rest, type, path: harness.path('a') };
      await expect(harness.zk.transaction([op])).rejects.toMatchObject({ code, operationIndex: 0 });
    });

    it('apply each operation to the result of the earlier ones', async () => {
      const { zk } = harness;
      await zk.create(harness.path('dir'));
      await zk.create(harness.path('dir/child'));
      await expect(zk.transaction([{ type: 'delete', path: harness.path('dir') }])).rejects.toMatchObject({
        code: 'not-empty',
      });
      await zk.transaction([
        { type: 'delete', path: harness.path('dir/child') },
        { type: 'delete', path: harness.path('dir') },
        { type: 'create', path: harness.path('dir') },
        { type: 'create', path: harness.path('dir/s-'), options: { mode: 'persistent-sequential' } },
      ]);
      expect((await zk.children(harness.path('dir'))).children).toEqual(['s-0000000000']);
    });

    it('do not consume sequence numbers when they fail', async () => {
      const { zk } = harness;
      const mode = 'persistent-sequential';
      const create = { type: 'create', path: harness.path('n-'), options: { mode } } as const;
      await expect(zk.transaction([create, { type: 'check', path: harness.path('missing') }])).rejects.toMatchObject({
        operationIndex: 1,
      });
      expect((await zk.create(harness.path('n-'), undefined, { mode })).path).toBe(harness.path('n-0000000000'));
    });

    it('send the events of every operation in order', async () => {
      const { zk } = harness;
      const log = new EventLog();
      zk.watch(harness.root, 'persistent-recursive', log);
      await log.atLeast(1);
      await zk.transaction([
        { type: 'create', path: harness.path('a') },
        { type: 'create', path: harness.path('a/b') },
        { type: 'set', path: harness.path('a'), data: bytes('x') },
        { type: 'delete', path: harness.path('a/b') },
      ]);
      expect(log.items).toEqual([
        'reset',
        `created ${harness.path('a')}`,
        `created ${harness.path('a/b')}`,
        `changed ${harness.path('a')}`,
        `deleted ${harness.path('a/b')}`,
      ]);
    });

    it('can be empty', async () => {
      expect(await harness.zk.transaction([])).toEqual([]);
    });
  });
}

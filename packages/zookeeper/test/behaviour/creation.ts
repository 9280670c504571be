/** Behaviour of creation: every mode, and the reasons for refusals. */

import { describe, expect, it } from '@jest/globals';
import type { CreateMode } from '../../src/index.js';
import { bytes, textOf, type Bench, type PlainBench } from './harness.js';

const MODES = [
  'persistent',
  'persistent-sequential',
  'ephemeral',
  'ephemeral-sequential',
  'container',
] as const satisfies readonly CreateMode[];

const isSequential = (mode: CreateMode): boolean => mode.includes('sequential');
const isEphemeral = (mode: CreateMode): boolean => mode.startsWith('ephemeral');

export function describeCreationModes(bench: PlainBench): void {
  describe.each(MODES)('a znode of mode %s', (mode) => {
    const digits = isSequential(mode) ? '0000000000' : '';

    it('has the path that was asked for, with a number if it is sequential', async () => {
      const { path } = await bench.zk.create(bench.path('a'), undefined, { mode });
      expect(path).toBe(bench.path(`a${digits}`));
      expect((await bench.zk.children(bench.root)).children).toEqual([`a${digits}`]);
    });

    it('holds its data', async () => {
      const { path, stat } = await bench.zk.create(bench.path('a'), bytes('some data'), { mode });
      const read = await bench.zk.get(path);
      expect([textOf(read.data), read.stat]).toEqual(['some data', stat]);
    });

    it('may be changed', async () => {
      const { path } = await bench.zk.create(bench.path('a'), bytes('0'), { mode });
      const stat = await bench.zk.set(path, bytes('one'), { version: 0 });
      expect(stat).toMatchObject({ version: 1, dataLength: 3 });
      expect(textOf((await bench.zk.get(path)).data)).toBe('one');
    });

    it('may be deleted', async () => {
      const { path } = await bench.zk.create(bench.path('a'), undefined, { mode });
      await bench.zk.delete(path, { version: 0 });
      expect(await bench.zk.exists(path)).toBeUndefined();
    });

    it(`is owned by ${isEphemeral(mode) ? 'its session' : 'no session'}`, async () => {
      const { stat } = await bench.zk.create(bench.path('a'), undefined, { mode });
      expect(stat.ephemeralOwner).toBe(isEphemeral(mode) ? bench.sessionOf(bench.zk).id : 0n);
    });

    it(`${isEphemeral(mode) ? 'goes with' : 'outlives'} its client`, async () => {
      const owner = await bench.client();
      const { path } = await owner.create(bench.path('a'), undefined, { mode });
      await owner.close();
      await bench.zk.sync(bench.root);
      expect((await bench.zk.exists(path)) === undefined).toBe(isEphemeral(mode));
    });

    it(`${isEphemeral(mode) ? 'has no' : 'may have'} children`, async () => {
      const { path } = await bench.zk.create(bench.path('a'), undefined, { mode });
      const child = bench.zk.create(`${path}/child`);
      if (isEphemeral(mode)) await expect(child).rejects.toMatchObject({ code: 'no-children-for-ephemerals' });
      else expect((await child).path).toBe(`${path}/child`);
    });

    it('needs its parent', async () => {
      await expect(bench.zk.create(bench.path('missing/a'), undefined, { mode })).rejects.toMatchObject({
        code: 'no-node',
      });
    });

    it(isSequential(mode) ? 'may be made again and again' : 'is refused where one is', async () => {
      await bench.zk.create(bench.path('a'), undefined, { mode });
      const again = bench.zk.create(bench.path('a'), undefined, { mode });
      if (isSequential(mode)) expect((await again).path).toBe(bench.path('a0000000001'));
      else await expect(again).rejects.toMatchObject({ code: 'node-exists' });
    });

    it('counts once in the numbers of its parent', async () => {
      const before = await bench.zk.exists(bench.root);
      const { stat } = await bench.zk.create(bench.path('a'), undefined, { mode });
      expect(await bench.zk.exists(bench.root)).toEqual({ ...before, cversion: 1, numChildren: 1, pzxid: stat.czxid });
    });
  });
}

/** Differences between a creation in a transaction and a single one. */
export function describeCreationInTransactions(bench: Bench): void {
  describe.each(MODES)('a znode of mode %s, made by a transaction', (mode) => {
    const digits = isSequential(mode) ? '0000000000' : '';

    it('is the same as one that was made alone', async () => {
      await bench.zk.create(bench.path('one'));
      await bench.zk.create(bench.path('other'));
      const { stat: alone } = await bench.zk.create(bench.path('one/a'), bytes('x'), { mode });
      const [result] = await bench.zk.transaction([
        { type: 'create', path: bench.path('other/a'), data: bytes('x'), options: { mode } },
      ]);
      expect(result).toMatchObject({ type: 'create', path: bench.path(`other/a${digits}`) });
      const { czxid, mzxid, pzxid, ctime, mtime, ...rest } = (await bench.zk.get(bench.path(`other/a${digits}`))).stat;
      expect({ ...alone, ...rest }).toEqual(alone);
      expect([mzxid, pzxid, mtime]).toEqual([czxid, czxid, ctime]);
    });

    it('is not there when the transaction fails', async () => {
      const before = await bench.zk.exists(bench.root);
      const transaction = bench.zk.transaction([
        { type: 'create', path: bench.path('a'), options: { mode } },
        { type: 'delete', path: bench.path('missing') },
      ]);
      await expect(transaction).rejects.toMatchObject({ code: 'no-node', operationIndex: 1 });
      expect(await bench.zk.exists(bench.root)).toEqual(before);
    });

    it('is refused without a parent, and named', async () => {
      const transaction = bench.zk.transaction([
        { type: 'create', path: bench.path('fine') },
        { type: 'create', path: bench.path('missing/a'), options: { mode } },
      ]);
      await expect(transaction).rejects.toMatchObject({
        code: 'no-node',
        operationIndex: 1,
        path: bench.path('missing/a'),
      });
    });
  });
}

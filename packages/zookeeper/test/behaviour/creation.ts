/** Behaviour of creation: every mode, and the reasons for refusals. */

import { describe, expect, it } from '@jest/globals';
import type { CreateMode } from '../../src/index.js';
import { bytes, textOf, type Harness, type PlainHarness } from './harness.js';

const MODES = [
  'persistent',
  'persistent-sequential',
  'ephemeral',
  'ephemeral-sequential',
  'container',
] as const satisfies readonly CreateMode[];

const isSequential = (mode: CreateMode): boolean => mode.includes('sequential');
const isEphemeral = (mode: CreateMode): boolean => mode.startsWith('ephemeral');

export function describeCreationModes(harness: PlainHarness): void {
  describe.each(MODES)('a znode of mode %s', (mode) => {
    const digits = isSequential(mode) ? '0000000000' : '';

    it('has the requested path, with a sequence number if it is sequential', async () => {
      const { path } = await harness.zk.create(harness.path('a'), undefined, { mode });
      expect(path).toBe(harness.path(`a${digits}`));
      expect((await harness.zk.children(harness.root)).children).toEqual([`a${digits}`]);
    });

    it('stores its data', async () => {
      const { path, stat } = await harness.zk.create(harness.path('a'), bytes('some data'), { mode });
      const read = await harness.zk.get(path);
      expect([textOf(read.data), read.stat]).toEqual(['some data', stat]);
    });

    it('can be changed', async () => {
      const { path } = await harness.zk.create(harness.path('a'), bytes('0'), { mode });
      const stat = await harness.zk.set(path, bytes('one'), { version: 0 });
      expect(stat).toMatchObject({ version: 1, dataLength: 3 });
      expect(textOf((await harness.zk.get(path)).data)).toBe('one');
    });

    it('can be deleted', async () => {
      const { path } = await harness.zk.create(harness.path('a'), undefined, { mode });
      await harness.zk.delete(path, { version: 0 });
      expect(await harness.zk.exists(path)).toBeUndefined();
    });

    it(`is owned by ${isEphemeral(mode) ? 'its session' : 'no session'}`, async () => {
      const { stat } = await harness.zk.create(harness.path('a'), undefined, { mode });
      expect(stat.ephemeralOwner).toBe(isEphemeral(mode) ? harness.sessionOf(harness.zk).id : 0n);
    });

    it(`${isEphemeral(mode) ? 'is deleted with' : 'outlives'} its client`, async () => {
      const owner = await harness.client();
      const { path } = await owner.create(harness.path('a'), undefined, { mode });
      await owner.close();
      await harness.zk.sync(harness.root);
      expect((await harness.zk.exists(path)) === undefined).toBe(isEphemeral(mode));
    });

    it(`${isEphemeral(mode) ? 'cannot have' : 'can have'} children`, async () => {
      const { path } = await harness.zk.create(harness.path('a'), undefined, { mode });
      const child = harness.zk.create(`${path}/child`);
      if (isEphemeral(mode)) await expect(child).rejects.toMatchObject({ code: 'no-children-for-ephemerals' });
      else expect((await child).path).toBe(`${path}/child`);
    });

    it('cannot be created without its parent', async () => {
      await expect(harness.zk.create(harness.path('missing/a'), undefined, { mode })).rejects.toMatchObject({
        code: 'no-node',
      });
    });

    it(isSequential(mode) ? 'can be created twice at one path' : 'cannot be created twice at one path', async () => {
      await harness.zk.create(harness.path('a'), undefined, { mode });
      const again = harness.zk.create(harness.path('a'), undefined, { mode });
      if (isSequential(mode)) expect((await again).path).toBe(harness.path('a0000000001'));
      else await expect(again).rejects.toMatchObject({ code: 'node-exists' });
    });

    it('increments the version of the parent’s children once', async () => {
      const before = await harness.zk.exists(harness.root);
      const { stat } = await harness.zk.create(harness.path('a'), undefined, { mode });
      expect(await harness.zk.exists(harness.root)).toEqual({
        ...before,
        cversion: 1,
        numChildren: 1,
        pzxid: stat.czxid,
      });
    });
  });
}

/** Differences between a creation in a transaction and a single one. */
export function describeCreationInTransactions(harness: Harness): void {
  describe.each(MODES)('a znode of mode %s, created by a transaction', (mode) => {
    const digits = isSequential(mode) ? '0000000000' : '';

    it('equals one that was created by a single call', async () => {
      await harness.zk.create(harness.path('one'));
      await harness.zk.create(harness.path('other'));
      const { stat: alone } = await harness.zk.create(harness.path('one/a'), bytes('x'), { mode });
      const [result] = await harness.zk.transaction([
        { type: 'create', path: harness.path('other/a'), data: bytes('x'), options: { mode } },
      ]);
      expect(result).toMatchObject({ type: 'create', path: harness.path(`other/a${digits}`) });
      const { czxid, mzxid, pzxid, ctime, mtime, ...rest } = (await harness.zk.get(harness.path(`other/a${digits}`)))
        .stat;
      expect({ ...alone, ...rest }).toEqual(alone);
      expect([mzxid, pzxid, mtime]).toEqual([czxid, czxid, ctime]);
    });

    it('does not exist when the transaction fails', async () => {
      const before = await harness.zk.exists(harness.root);
      const transaction = harness.zk.transaction([
        { type: 'create', path: harness.path('a'), options: { mode } },
        { type: 'delete', path: harness.path('missing') },
      ]);
      await expect(transaction).rejects.toMatchObject({ code: 'no-node', operationIndex: 1 });
      expect(await harness.zk.exists(harness.root)).toEqual(before);
    });

    it('is rejected without a parent, with the index of its operation', async () => {
      const transaction = harness.zk.transaction([
        { type: 'create', path: harness.path('fine') },
        { type: 'create', path: harness.path('missing/a'), options: { mode } },
      ]);
      await expect(transaction).rejects.toMatchObject({
        code: 'no-node',
        operationIndex: 1,
        path: harness.path('missing/a'),
      });
    });
  });
}

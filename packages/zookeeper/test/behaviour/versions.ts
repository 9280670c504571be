/** Behaviour of versions: accepted writes, and the counters that they increment. */

import { describe, expect, it } from '@jest/globals';
import { OPEN_ACL } from '../../src/index.js';
import { bytes, outcomeOf, textOf, type Harness, type PlainHarness, type PlainZooKeeper } from './harness.js';

type Write = (zk: PlainZooKeeper, path: string, version: number | undefined) => Promise<unknown>;

const only = (version: number | undefined): { version?: number } => (version === undefined ? {} : { version });

const WRITES: readonly (readonly [name: string, write: Write])[] = [
  ['set', (zk, path, version) => zk.set(path, bytes('new'), only(version))],
  ['delete', (zk, path, version) => zk.delete(path, only(version))],
  ['setAcl', (zk, path, version) => zk.setAcl(path, OPEN_ACL, only(version))],
];

/** Writes to a znode whose `version` and `aversion` are 2. */
const EXPECTATIONS: readonly (readonly [version: number | undefined, outcome: string])[] = [
  [undefined, 'ok'],
  [-1, 'ok'],
  [2, 'ok'],
  [0, 'bad-version'],
  [1, 'bad-version'],
  [3, 'bad-version'],
  [2 ** 31 - 1, 'bad-version'],
  [-2, 'bad-version'],
  [-(2 ** 31), 'bad-version'],
];

async function twiceChanged(harness: PlainHarness): Promise<string> {
  const path = harness.path('a');
  await harness.zk.create(path, bytes('0'));
  for (const text of ['1', '2']) {
    await harness.zk.set(path, bytes(text));
    await harness.zk.setAcl(path, OPEN_ACL);
  }
  return path;
}

export function describeVersions(harness: PlainHarness): void {
  describe.each(WRITES)('%s of a znode of version 2', (name, write) => {
    it.each(EXPECTATIONS)('with expected version %s ends with %s', async (version, outcome) => {
      const path = await twiceChanged(harness);
      const before = await harness.zk.get(path);
      expect(await outcomeOf(write(harness.zk, path, version))).toBe(outcome);
      const after = await harness.zk.exists(path);
      if (outcome !== 'ok') expect(after).toEqual(before.stat);
      else if (name === 'delete') expect(after).toBeUndefined();
      else expect([after?.version, after?.aversion]).toEqual(name === 'set' ? [3, 2] : [2, 3]);
    });
  });

  describe('versions', () => {
    it('begin at zero for a recreated znode', async () => {
      const path = await twiceChanged(harness);
      await harness.zk.delete(path);
      const { stat } = await harness.zk.create(path);
      expect([stat.version, stat.aversion, stat.cversion]).toEqual([0, 0, 0]);
    });

    it('count a write of unchanged data', async () => {
      await harness.zk.create(harness.path('a'), bytes('x'));
      const stat = await harness.zk.set(harness.path('a'), bytes('x'));
      expect(stat.version).toBe(1);
    });

    it('allow one of several writers with the same expected version', async () => {
      await harness.zk.create(harness.path('a'), bytes(''));
      const writers = await Promise.all([harness.client(), harness.client(), harness.client()]);
      const outcomes = await Promise.all(
        writers.map((zk, index) => outcomeOf(zk.set(harness.path('a'), bytes(`${index}`), { version: 0 }))),
      );
      expect([...outcomes].sort()).toEqual(['bad-version', 'bad-version', 'ok']);
      await harness.zk.sync(harness.root);
      const { data, stat } = await harness.zk.get(harness.path('a'));
      expect([textOf(data), stat.version]).toEqual([`${outcomes.indexOf('ok')}`, 1]);
    });

    it('allow a chain of writes that are issued without waiting', async () => {
      await harness.zk.create(harness.path('a'), bytes(''));
      const writes = Array.from({ length: 20 }, (_, version) =>
        harness.zk.set(harness.path('a'), bytes(`${version}`), { version }),
      );
      expect((await Promise.all(writes)).map(({ version }) => version)).toEqual(writes.map((_, index) => index + 1));
    });
  });
}

export function describeVersionsInTransactions(harness: Harness): void {
  describe.each(['check', 'set', 'delete'] as const)('%s in a transaction, of a znode of version 2', (type) => {
    it.each(EXPECTATIONS)('with expected version %s ends with %s', async (version, outcome) => {
      const path = await twiceChanged(harness);
      const before = await harness.zk.exists(path);
      const op = type === 'set' ? { type, path, data: bytes('new') } : { type, path };
      const transaction = harness.zk.transaction([
        { type: 'create', path: harness.path('first') },
        { ...op, ...only(version) },
      ]);
      expect(await outcomeOf(transaction)).toBe(outcome);
      expect((await harness.zk.exists(harness.path('first'))) !== undefined).toBe(outcome === 'ok');
      const after = await harness.zk.exists(path);
      if (outcome !== 'ok' || type === 'check') expect(after).toEqual(before);
      else expect(after?.version).toBe(type === 'set' ? 3 : undefined);
    });
  });

  describe('versions within a transaction', () => {
    it('increase from operation to operation', async () => {
      const path = await twiceChanged(harness);
      const results = await harness.zk.transaction([
        { type: 'set', path, data: bytes('a'), version: 2 },
        { type: 'check', path, version: 3 },
        { type: 'set', path, data: bytes('b'), version: 3 },
        { type: 'delete', path, version: 4 },
        { type: 'create', path, data: bytes('c') },
        { type: 'check', path, version: 0 },
      ]);
      expect(results[2]).toMatchObject({ stat: { version: 4 } });
      const { data, stat } = await harness.zk.get(path);
      expect([textOf(data), stat.version, stat.mzxid]).toEqual(['c', 0, stat.czxid]);
    });
  });
}

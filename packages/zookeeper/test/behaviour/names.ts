/** Valid names of znodes, and the answer of every operation to invalid ones. */

import { describe, expect, it } from '@jest/globals';
import {
  bytes,
  outcomeOf,
  type Harness,
  type ClientLimitations,
  type PlainHarness,
  type PlainZooKeeper,
} from './harness.js';

const GOOD_NAMES = [
  'a',
  '0',
  ' ',
  'with space',
  '...',
  '.hidden',
  'a.b',
  '..a',
  'a..',
  '-',
  '_',
  '%2F',
  '?&=#',
  '\\',
  '"quoted"',
  "it's",
  '*',
  '{}[]()<>',
  '~',
  '@:;,',
  'ä',
  'Ελληνικά',
  '日本語',
  'עברית',
  'e\u0301',
  '\u00a0',
  '\u3000',
  '\uf900',
  'x'.repeat(255),
  'y'.repeat(5000),
];

const BAD_PATHS: readonly (readonly [why: string, path: string])[] = [
  ['empty', ''],
  ['relative', 'a'],
  ['with a slash at its end', '/a/'],
  ['with an empty name', '/a//b'],
  ['of slashes only', '//'],
  ['with the name "."', '/a/./b'],
  ['with the name ".."', '/a/../b'],
  ['ending in "."', '/a/.'],
  ['ending in ".."', '/..'],
  ['with a NUL', '/a\u0000'],
  ['with a control character', '/a\u0001b'],
  ['with a line break', '/a\nb'],
  ['with a delete character', '/a\u007f'],
  ['with a C1 control', '/a\u0085'],
  ['with a private character', '/\ue000'],
  ['with a special', '/\ufff0'],
  ['with half a pair', '/\ud83d'],
  ['with an emoji', '/😀'],
];

type Attempt = (zk: PlainZooKeeper, path: string) => Promise<unknown>;

const OPERATIONS: readonly (readonly [name: string, attempt: Attempt])[] = [
  ['create', (zk, path) => zk.create(path)],
  ['get', (zk, path) => zk.get(path)],
  ['set', (zk, path) => zk.set(path, bytes(''))],
  ['delete', (zk, path) => zk.delete(path)],
  ['exists', (zk, path) => zk.exists(path)],
  ['children', (zk, path) => zk.children(path)],
  ['getAcl', (zk, path) => zk.getAcl(path)],
  ['sync', (zk, path) => zk.sync(path)],
];

export function describeNames(harness: PlainHarness): void {
  describe('names', () => {
    it.each(GOOD_NAMES)('can be %j', async (name) => {
      const path = harness.path(name);
      expect((await harness.zk.create(path, bytes(name))).path).toBe(path);
      expect((await harness.zk.children(harness.root)).children).toEqual([name]);
      expect(Buffer.from((await harness.zk.get(path)).data).toString()).toBe(name);
      await harness.zk.delete(path);
    });

    it('are case-sensitive and are not normalised', async () => {
      const names = ['a', 'A', '\u00e9', 'e\u0301'];
      for (const name of names) await harness.zk.create(harness.path(name));
      expect([...(await harness.zk.children(harness.root)).children].sort()).toEqual([...names].sort());
    });

    it('can be nested deeply', async () => {
      let path = harness.root;
      for (let depth = 0; depth < 100; depth++) {
        path += '/d';
        await harness.zk.create(path);
      }
      expect((await harness.zk.exists(path))?.numChildren).toBe(0);
    });
  });
}

/** Some clients do not refuse all of these, and a server may accept a name that it cannot read back. */
export function describeBadPaths(harness: Harness): void {
  describe.each(BAD_PATHS)('a path that is %s', (_why, path) => {
    it('is rejected by every operation before anything is sent', async () => {
      const { requests } = harness.zk.counters;
      for (const [, attempt] of OPERATIONS) {
        await expect(attempt(harness.zk, path)).rejects.toMatchObject({ code: 'invalid-argument', path });
      }
      for (const type of ['create', 'delete', 'check'] as const) {
        expect(await outcomeOf(harness.zk.transaction([{ type, path }]))).toBe('invalid-argument');
      }
      expect(() => harness.zk.watch(path, 'persistent', { onEvent: () => undefined })).toThrow(/invalid path/);
      expect(harness.zk.counters.requests).toEqual(requests);
    });

    it('behind valid operations of a transaction does not affect the next transaction', async () => {
      const valid = { type: 'create', path: harness.path('a') } as const;
      const invalid = harness.zk.transaction([valid, { type: 'delete', path }]);
      const next = harness.zk.transaction([valid]);
      await expect(invalid).rejects.toMatchObject({ code: 'invalid-argument', path });
      expect(await next).toEqual([valid]);
    });
  });
}

/** The answer of every operation to a missing znode. */
export function describeMissing(harness: PlainHarness, limitations: ClientLimitations = {}): void {
  describe('a missing znode', () => {
    const EXPECTED: Readonly<Record<string, string>> = { create: 'ok', exists: 'ok', sync: 'ok' };
    const operations = OPERATIONS.filter(([name]) => name !== 'getAcl' || limitations.refusedGetAcl !== true);

    it.each(operations)('makes %s fail with no-node, unless the operation allows that', async (name, attempt) => {
      expect(await outcomeOf(attempt(harness.zk, harness.path('a')))).toBe(EXPECTED[name] ?? 'no-node');
    });

    it.each(operations)(
      'makes %s of a child fail with no-node, unless the operation allows that',
      async (name, attempt) => {
        const expected = name === 'create' ? 'no-node' : (EXPECTED[name] ?? 'no-node');
        expect(await outcomeOf(attempt(harness.zk, harness.path('a/b')))).toBe(expected);
      },
    );
  });
}

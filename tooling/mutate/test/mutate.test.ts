import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { tmpdir } from 'node:os';
import { describe, expect, it } from '@jest/globals';
import { parseSync } from '@swc/core';
import { mutated, type Mutation } from '../src/mutation.js';
import { MUTATIONS } from '../src/mutations/index.js';
import { isExpected, markdown } from '../src/report.js';
import { ResultsFile } from '../src/results-file.js';
import { runMutation } from '../src/run-mutation.js';

const ROOT = join(__dirname, '..', '..', '..');

/** A defect in a small file whose tests are fast. */
const SLOTS: Mutation = {
  id: 'slots-leak',
  file: 'packages/core/src/runtime/slots.ts',
  find: 'this.taken -= 1;',
  replace: 'this.taken -= 0;',
  breaks: 'A slot is free after its use.',
  tests: ['packages/core/test/runtime/slots.test.ts'],
};
const LIMITS = { root: ROOT, limitMs: 600_000 };

describe('the tests of a defect', () => {
  it('see it, and no file has changed', async () => {
    const before = readFileSync(join(ROOT, SLOTS.file), 'utf8');
    const result = await runMutation(SLOTS, LIMITS);
    expect(result).toMatchObject({ seenBy: 'packages/core', stopped: false });
    expect(result.output).toContain('slots');
    expect(isExpected(result)).toBe(true);
    expect(readFileSync(join(ROOT, SLOTS.file), 'utf8')).toBe(before);
  });

  it('do not see a change without effect, which the table lists with its reason', async () => {
    const harmless = { ...SLOTS, id: 'slots-harmless', replace: 'this.taken = this.taken - 1;' };
    const result = await runMutation(harmless, LIMITS);
    expect(result.seenBy).toBeUndefined();
    expect(isExpected(result)).toBe(false);
    const accepted = { ...result, mutation: { ...harmless, survives: 'it has no effect' } };
    expect(isExpected(accepted)).toBe(true);
    expect(markdown([accepted])).toContain(
      'A slot is free after its use. (`packages/core/src/runtime/slots.ts`): it has',
    );
    expect(markdown([accepted])).toContain('| `packages/core` | 1 | 0 |');
  });

  it('are stopped if they do not end', async () => {
    const endless = { ...SLOTS, id: 'slots-endless', replace: 'for (;;);' };
    const result = await runMutation(endless, { root: ROOT, limitMs: 8000 });
    expect(result).toMatchObject({ seenBy: 'packages/core', stopped: true });
  });
});

describe('the list of defects', () => {
  it('fits the sources', () => {
    for (const mutation of MUTATIONS) {
      const text = readFileSync(join(ROOT, mutation.file), 'utf8');
      const changed = mutated(text, mutation);
      expect(changed).not.toBe(text);
      // A file that cannot be compiled would fail all tests.
      expect(() => parseSync(changed, { syntax: 'typescript' })).not.toThrow();
      for (const test of mutation.tests) expect([test, existsSync(join(ROOT, test))]).toEqual([test, true]);
    }
  });

  it('has unique names', () => {
    const ids = MUTATIONS.map(({ id }) => id);
    expect(ids).toEqual([...new Set(ids)]);
  });
});

it('rejects a text that occurs more than once', () => {
  expect(() => mutated('a a', { ...SLOTS, find: 'a' })).toThrow(/occurs more than once/);
  expect(() => mutated('b', { ...SLOTS, find: 'a' })).toThrow(/does not occur/);
});

describe('a file of results', () => {
  it('has the defects that tests have seen, until they change', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'mutate-'));
    try {
      const file = join(folder, 'results');
      const results = await ResultsFile.read(file);
      const other = { ...SLOTS, id: 'slots-other' };
      await results.add({ mutation: SLOTS, seenBy: 'packages/core', stopped: false, output: '' });
      await results.add({ mutation: other, seenBy: undefined, stopped: false, output: '' });
      const later = await ResultsFile.read(file);
      expect(later.find(SLOTS)).toMatchObject({ mutation: SLOTS, seenBy: 'packages/core' });
      expect(later.find({ ...SLOTS, replace: 'this.taken += 1;' })).toBeUndefined();
      expect(later.find(other)).toBeUndefined();
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});

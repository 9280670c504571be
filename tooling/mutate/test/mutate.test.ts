import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { tmpdir } from 'node:os';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { parseSync } from '@swc/core';
import type { Mutation } from '../src/mutation.js';
import { MUTATIONS } from '../src/mutations/index.js';
import { placesOf } from '../src/places.js';
import { insertNumbers, isExpected } from '../src/report.js';
import { ResultsFile } from '../src/results-file.js';
import { mutated, runMutation } from '../src/run-mutation.js';

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
    expect(result).toMatchObject({ seenBy: SLOTS.tests[0], stopped: false });
    expect(result.failedTest).toBeDefined();
    expect(result.output).toContain(result.failedTest);
    expect(isExpected(result)).toBe(true);
    expect(readFileSync(join(ROOT, SLOTS.file), 'utf8')).toBe(before);
  });

  it('do not see a change without effect, which is expected if the defect has a reason', async () => {
    const harmless = { ...SLOTS, id: 'slots-harmless', replace: 'this.taken = this.taken - 1;' };
    const result = await runMutation(harmless, LIMITS);
    expect(result.seenBy).toBeUndefined();
    expect(isExpected(result)).toBe(false);
    const accepted = { ...result, mutation: { ...harmless, survives: 'it has no effect' } };
    expect(isExpected(accepted)).toBe(true);
  });

  it('are stopped if they do not end because of the defect', async () => {
    const endless = { ...SLOTS, id: 'slots-endless', replace: 'for (;;);' };
    const result = await runMutation(endless, { root: ROOT, limitMs: 20_000 });
    expect(result).toMatchObject({ seenBy: SLOTS.tests[0], failedTest: undefined, stopped: true });
    await expect(runMutation(SLOTS, { root: ROOT, limitMs: 1 })).rejects.toThrow(/without a defect, too/);
  });

  it('end with an interruption', async () => {
    const interrupted = new AbortController();
    const run = runMutation(SLOTS, { ...LIMITS, signal: interrupted.signal });
    interrupted.abort(new Error('interrupted'));
    await expect(run).rejects.toThrow('interrupted');
  });
});

describe('the list of defects', () => {
  it.each(MUTATIONS.map((mutation) => [mutation.id, mutation] as const))(
    'fits the sources: %s',
    async (_, mutation) => {
      const { file } = placesOf(mutation, ROOT);
      const changed = await mutated(mutation, ROOT);
      expect(changed).not.toBe(readFileSync(join(ROOT, file), 'utf8'));
      // A file that cannot be compiled would fail all tests.
      expect(() => parseSync(changed, { syntax: 'typescript' })).not.toThrow();
    },
  );

  it('has unique names', () => {
    const ids = MUTATIONS.map(({ id }) => id);
    expect(ids).toEqual([...new Set(ids)]);
  });

  it('has the numbers of the documentation (if not: pnpm mutate --write)', () => {
    const page = readFileSync(join(ROOT, 'docs', 'development.md'), 'utf8');
    expect(page).toBe(insertNumbers(page, MUTATIONS));
  });
});

describe('the numbers of defects', () => {
  const of = (file: string): Mutation => ({ ...SLOTS, file });

  it('have a line per package, one for all drivers, and the defects that no test must see', () => {
    const accepted = { ...of('packages/driver-aws/src/x.ts'), survives: 'it has no effect' };
    const page = 'a\n<!-- generated: mutations -->\n<!-- /generated -->\nb\n';
    expect(insertNumbers(page, [SLOTS, accepted, of('packages/driver-gce/src/x.ts')])).toBe(
      [
        'a',
        '<!-- generated: mutations -->',
        '',
        '- `packages/core`: 1',
        '- `packages/driver-*`: 2, 1 of them without a test',
        '- together: 3, 1 of them without a test',
        '',
        '<!-- /generated -->',
        'b',
        '',
      ].join('\n'),
    );
  });

  it('need a place on the page', () => {
    expect(() => insertNumbers('a', [SLOTS])).toThrow('the page lacks <!-- generated: mutations -->');
  });
});

/** A repository with the given files. */
let root: string;

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'mutate-'));
});
afterEach(() => rmSync(root, { recursive: true }));

function write(file: string, text: string): void {
  mkdirSync(dirname(join(root, file)), { recursive: true });
  writeFileSync(join(root, file), text);
}

describe('the files of a defect', () => {
  const defect: Mutation = { ...SLOTS, file: 'packages/a/src/x.ts', find: 'one', tests: ['packages/a/test/x.test.ts'] };

  it('are found where they are', () => {
    write('packages/a/src/x.ts', 'one');
    write('packages/a/src/y.ts', 'one');
    write('packages/a/test/x.test.ts', '');
    expect(placesOf(defect, root)).toEqual({ file: defect.file, tests: defect.tests, moved: [] });
  });

  it('are found where they have been moved in the package', () => {
    write('packages/a/src/folder/x.ts', 'one');
    write('packages/a/src/y.ts', 'one');
    write('packages/a/test/folder/x.test.ts', '');
    expect(placesOf(defect, root)).toEqual({
      file: 'packages/a/src/folder/x.ts',
      tests: ['packages/a/test/folder/x.test.ts'],
      moved: [
        'packages/a/src/x.ts is now packages/a/src/folder/x.ts',
        'packages/a/test/x.test.ts is now packages/a/test/folder/x.test.ts',
      ],
    });
  });

  it('are found in another package with the same name', () => {
    write('packages/a/src/x.ts', 'another');
    write('packages/b/src/x.ts', 'one');
    write('packages/b/test/x.test.ts', '');
    write('packages/c/src/y.ts', 'one');
    write('packages/c/test/x.test.ts', '');
    const { file, tests } = placesOf(defect, root);
    expect([file, ...tests]).toEqual(['packages/b/src/x.ts', 'packages/b/test/x.test.ts']);
  });

  it('must be unique', () => {
    write('packages/a/src/x.ts', 'one one');
    expect(() => placesOf(defect, root)).toThrow('mutation slots-leak: its text occurs 2 times in packages/a/src/x.ts');
    write('packages/a/src/x.ts', 'two');
    expect(() => placesOf(defect, root)).toThrow('its text does not occur in packages/a');
    write('packages/a/src/y.ts', 'one');
    expect(() => placesOf(defect, root)).toThrow('there is no packages/a/test/x.test.ts');
    write('packages/a/src/z.ts', 'one');
    expect(() => placesOf(defect, root)).toThrow(/its text occurs in .*y.ts and .*z.ts/);
  });
});

describe('a file of results', () => {
  const file = 'packages/core/src/runtime/slots.ts';
  const [test] = SLOTS.tests;
  const seen = { mutation: SLOTS, seenBy: test, failedTest: 'slots', stopped: false, ms: 1000, output: '' };

  it('has the results until the defect, its file or its tests change', async () => {
    write(file, SLOTS.find);
    write(String(test), '');
    const path = join(root, 'results');
    const read = (mutation: Mutation): unknown => ResultsFile.read(path, root).find(mutation);
    const other = { ...SLOTS, id: 'slots-other' };
    const results = ResultsFile.read(path, root);
    await results.add(seen);
    await results.add({ ...seen, mutation: other, seenBy: undefined, failedTest: undefined });
    expect(read(SLOTS)).toEqual(seen);
    expect(read(other)).toMatchObject({ seenBy: undefined, ms: 1000 });
    expect(read({ ...SLOTS, replace: 'this.taken += 1;' })).toBeUndefined();
    write(file, `${SLOTS.find} `);
    expect(read(SLOTS)).toBeUndefined();
    write(file, SLOTS.find);
    write(String(test), ' ');
    expect(read(SLOTS)).toBeUndefined();
  });
});

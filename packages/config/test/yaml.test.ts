/** The YAML of the configuration file: its meaning, its limits and its encoding. */

import { describe, expect, it } from '@jest/globals';
import { DEFAULT_MAX_WAIT_MS, formatProblem, loadConfig } from '@nodepool/config';
import { configOf, placesOf, problemsOf, TestFolder } from './files.js';

describe('YAML', () => {
  it('is read as YAML 1.1 with its meaning of yes, octal numbers and exponents', async () => {
    const config = await configOf(`
diskimages:
  - {name: on-purpose, pause: yes, delete-after-upload: Off, rebuild-age: 1_000, release: 1e3}
  - {name: y, release: 0755, parent: ~}
`);
    expect(config.diskImages.get('on-purpose')).toMatchObject({
      pause: true,
      deleteAfterUpload: false,
      rebuildAgeMs: 1_000_000,
      release: '1e3',
    });
    expect(config.diskImages.get('y')?.parent).toBeUndefined();
  });

  it('merges mappings by `<<`, own keys before merged ones', async () => {
    const config = await configOf(`
labels:
  - &a {name: a, min-ready: 3, max-ready-age: 5}
  - {<<: *a, name: b, min-ready: 4}
`);
    expect(config.labels.get('b')).toEqual({
      name: 'b',
      minReady: 4,
      maxReadyAgeMs: 5000,
      maxAgeMs: Infinity,
      minRetentionMs: 0,
      maxIdleMs: 600_000,
      maxWaitMs: DEFAULT_MAX_WAIT_MS,
    });
  });

  it.each([
    ['an alias without an anchor', 'images-dir: *nowhere\n', '1:13 images-dir'],
    ['a value that contains itself', 'labels: &all [*all]\n', '1:15 labels[0]'],
    ['a tag', 'images-dir: !!python/object x\n', '1:29 images-dir'],
    ['a list as a key', '? [a]\n: b\n', '1:3 '],
    ['an unclosed quote', 'images-dir: "abc\n', '2:1 '],
    ['a second document', 'labels: []\n---\nlabels: []\n', '2:1 '],
    ['an empty file', '', '1:1 '],
    ['a file with a list', '- a\n- b\n', '1:1 '],
    ['a truncated file', 'labels:\n  - name: a\n  - na', '3:5 labels[1]'],
  ])('is rejected with the position of %s', async (_what, text, place) => {
    expect(placesOf(await problemsOf(text))).toContain(place);
  });

  it('is rejected when aliases expand to more values than the limit', async () => {
    const lines = ['a: &a0 [x, x, x, x, x, x, x, x, x, x]'];
    for (let level = 1; level < 9; level++) {
      const aliases = Array.from({ length: 10 }, () => `*a${level - 1}`).join(', ');
      lines.push(`b${level}: &a${level} [${aliases}]`);
    }
    const problems = await problemsOf(lines.join('\n'));
    expect(problems.map((problem) => problem.expected)).toContainEqual(expect.stringContaining('values'));
  });

  it.each([
    ['lists', '['.repeat(100_000)],
    ['lists that are closed', '['.repeat(100_000) + ']'.repeat(100_000)],
    ['mappings', '{a: '.repeat(100_000)],
    ['entries on one line', `\n  ${'- '.repeat(100_000)}x`],
    ['keys on one line', `\n  ${'? '.repeat(100_000)}`],
    ['lines', Array.from({ length: 1000 }, (_, level) => `\n${' '.repeat(level + 1)}a:`).join('')],
  ])('is rejected without a crash when it nests deeply: %s', async (_what, text) => {
    expect(await problemsOf(`labels: ${text}`)).toEqual([
      expect.objectContaining({ expected: 'fewer levels of nesting' }),
    ]);
  });

  it('is rejected without a crash when keys follow each other on the line of another one', async () => {
    expect(await problemsOf(`labels: ${'? '.repeat(100_000)}`)).toMatchObject([{ expected: 'valid YAML', line: 1 }]);
  });

  it('is rejected when aliases nest more deeply than the limit', async () => {
    const lines = ['a0: &a0 [x]'];
    for (let level = 1; level < 5000; level++) lines.push(`a${level}: &a${level} [*a${level - 1}]`);
    const problems = await problemsOf(lines.join('\n'));
    expect(problems.map((problem) => problem.expected)).toContainEqual(expect.stringContaining('levels of nesting'));
  });

  it('can contain long texts with brackets and dashes', async () => {
    const text = `${' '.repeat(300)}[[[ - - { x`.repeat(50);
    const config = await configOf(
      `diskimages:\n  - name: a\n    env-vars:\n      A: |\n        ${text}\n      B: "${text}"\n`,
    );
    expect(config.diskImages.get('a')?.envVars['A']).toContain('[[[ - - { x');
  });

  it.each([
    ['Latin-1', Buffer.from('labels:\n  - {name: å, min-ready: 1}\n', 'latin1'), '2:12 '],
    ['UTF-16', Buffer.from('\ufefflabels:\n', 'utf16le'), '1:1 '],
  ])('is rejected at the first foreign byte in the encoding %s', async (_encoding, bytes, place) => {
    const folder = new TestFolder();
    const result = await loadConfig({ file: folder.write('nodepool.yaml', bytes), env: {} });
    folder.remove();
    if (result.ok) throw new Error('accepted');
    expect(placesOf(result.problems)).toEqual([place]);
    expect(result.problems[0]?.expected).toBe('a file in the encoding UTF-8');
  });

  it('reports a missing file as a problem of the whole file', async () => {
    const result = await loadConfig({ file: '/nonexistent/nodepool.yaml', env: {} });
    expect(result.ok ? '' : formatProblem(result.problems[0]!)).toContain(
      '/nonexistent/nodepool.yaml: expected a file that can be read, found no file; name another one with --config',
    );
    const file = '/proc/self/cmdline';
    const secure = await loadConfig({ file, secureFile: '/nonexistent/secure.yaml', env: {} });
    expect(secure.ok ? [] : secure.problems.map(({ hint }) => hint)).toContain(
      'name another one with --secure, or omit the option',
    );
  });
});

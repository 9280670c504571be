/** The check of the English of comments, messages and pages finds what it should, and all pages pass it. */

import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, it } from '@jest/globals';
import { REPOSITORY } from '../src/repository.js';
import { lint } from './oxlint.js';

interface Finding {
  readonly index: number;
  readonly found: string;
}

const MODULE = join(REPOSITORY, 'tooling', 'eslint', 'plain-english.mjs');

/** Evaluates an expression with the exports of the module in a separate process, because jest loads no ES modules. */
function evaluate(expression: string, input: unknown = null): unknown {
  const program = `
    import * as english from ${JSON.stringify(pathToFileURL(MODULE).href)};
    import { readFileSync } from 'node:fs';
    const input = JSON.parse(readFileSync(0, 'utf8'));
    process.stdout.write(JSON.stringify(${expression}));`;
  const options = { cwd: REPOSITORY, input: JSON.stringify(input), encoding: 'utf8' } as const;
  return JSON.parse(execFileSync(process.execPath, ['--input-type=module', '-e', program], options));
}

function foundIn(texts: readonly string[], check: 'findings' | 'markdownFindings' = 'findings'): string[][] {
  const results = evaluate(`input.map((text) => english.${check}(text))`, texts) as Finding[][];
  return results.map((each) => each.map(({ found }) => found));
}

it('the check finds sentences without a subject, unnamed actors and unusual verbs', () => {
  expect(
    foundIn([
      'What is dear to read. Whether it is held.',
      'Deletes the znode. That of a parent stays.\n\nOf the server.',
      'False: what is below it has changed.',
      'Somebody removed it, and nobody is told.',
      'Used by others, lends it a hand, lets it go.',
      'A list\n- For so long it waits, by which it is gone.',
    ]),
  ).toEqual([
    ['What', 'Whether'],
    ['That', 'Of'],
    ['False:'],
    ['Somebody', 'nobody', 'told'],
    ['by others', 'lends it a hand', 'lets it go'],
    ['For so long', 'by which', 'is gone'],
  ]);
});

it('the check accepts plain sentences, questions and code', () => {
  const texts = [
    'Returns true if the lock is held. The others are skipped.',
    'What is a lease? A node that a requestor holds.',
    'Sets `Whether` and `somebody`, e.g. That of the server.',
    'It lasts so long that what happened is logged, off the record.',
  ];
  expect(foundIn(texts)).toEqual([[], [], [], []]);
});

it('the check covers prose, tables and generated parts of Markdown, but not headings, code and links', () => {
  const page = [
    '# What it does',
    '',
    'Of use. See [this](https://nobody.example).',
    '',
    '```',
    'Whoever',
    '```',
    '',
    '| What | Who |',
    '| ---- | --- |',
    '| a    | Whether it is so |',
    '',
    '<!-- generated: options -->',
    '',
    'What the code says.',
    '',
    '<!-- /generated -->',
  ].join('\n');
  expect(foundIn([page], 'markdownFindings')).toEqual([['Of', 'Whether', 'What']]);
});

it('the check reports comments, messages of errors and loggers, and long lines with their positions', () => {
  const source = [
    '/**',
    ' * Deletes it.',
    ' * What stays is said elsewhere.',
    ' */',
    'const one = new TypeError(`lost: somebody removed ${name}`);',
    "logger.warn('others wait');",
    "call('somebody');",
    `// ${'long '.repeat(30)}`,
    '// It is',
    '// gone.',
  ].join('\n');
  const [findings] = lint('nodepool/plain-english', [['source.js', source]]);
  expect(findings?.map(({ line, column, message }) => [line, column, message.split(':')[0]])).toEqual([
    [3, 4, '"What"'],
    [5, 27, '"somebody"'],
    [6, 13, '"others wait"'],
    [8, 121, 'The comment has more than 120 columns'],
    [9, 7, '"is gone"'],
  ]);
});

const pages = ['README.md', ...pagesBelow('docs'), ...pagesBelow('packages'), ...pagesBelow('tooling')];

it('the prose of all pages passes the check', () => {
  expect(pages.length).toBeGreaterThan(50);
  const found = foundIn(
    pages.map((page) => readFileSync(join(REPOSITORY, page), 'utf8')),
    'markdownFindings',
  );
  expect(pages.map((page, index) => [page, found[index]])).toEqual(pages.map((page) => [page, []]));
});

it.each(pages)('the prose has at most 120 columns: %s', (page) => {
  const prose = readFileSync(join(REPOSITORY, page), 'utf8').replaceAll(
    /```[^]*?```|<!-- generated: [^]*?<!-- \/generated -->/g,
    '',
  );
  const lines = prose.split('\n').filter((line) => !/^(?: {4}|\||#|<!--|!\[)|:\/\//.test(line));
  expect(lines.filter((line) => line.length > 120)).toEqual([]);
});

/** Returns the Markdown files of the repository below a folder, except changelogs, which changesets write. */
function pagesBelow(folder: string): string[] {
  const output = execFileSync('git', ['ls-files', '-z', '--', folder], { cwd: REPOSITORY, encoding: 'utf8' });
  return output.split('\0').filter((file) => file.endsWith('.md') && !file.endsWith('CHANGELOG.md'));
}

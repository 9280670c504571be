/** The pages agree with the code: quoted messages, sample configurations, and lists of drivers. */

import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { loadConfig } from '@nodepool/config';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import MarkdownIt from 'markdown-it';
import { driverPackages } from '../src/drivers.js';
import { REPOSITORY } from '../src/repository.js';

const docs = join(REPOSITORY, 'docs');
const packages = join(REPOSITORY, 'packages');

/** Returns the files below the folder with this name ending. */
function filesBelow(folder: string, ending: string): readonly string[] {
  if (!existsSync(folder)) return [];
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith(ending))
    .map((file) => join(folder, file));
}

describe('the troubleshooting page', () => {
  const sources = readdirSync(packages)
    .flatMap((name) => filesBelow(join(packages, name, 'src'), '.ts'))
    .map((file) => readFileSync(file, 'utf8'))
    .join('\n')
    // Joins strings that the source concatenates, and unescapes quotes, as readers of the message see it.
    .replaceAll(/' \+\s*'|` \+\s*`|' \+\s*`|` \+\s*'/g, '')
    .replaceAll(String.raw`\'`, "'");
  const page = readFileSync(join(docs, 'trouble.md'), 'utf8');
  const quoted = [...page.matchAll(/^### (".*")$/gm)].flatMap(([, line = '']) =>
    [...line.matchAll(/"([^"]+)"/g)].map(([, message = '']) => message),
  );

  it('has messages in its headings', () => {
    expect(quoted.length).toBeGreaterThan(20);
  });

  it.each(quoted)('quotes messages that exist in the sources: %s', (message) => {
    const fixed = message
      .split('…')
      .map((part) => part.trim())
      .filter((part) => part !== '');
    expect(fixed.filter((part) => !sources.includes(part))).toEqual([]);
  });
});

// npm 10 and 11 run programs below a shell, which ends without passing signals on.
it('no page and no template starts a daemon below npm', () => {
  const pages = [...filesBelow(docs, '.md'), ...readdirSync(packages).map((name) => join(packages, name, 'README.md'))];
  const started = pages.flatMap((file) => readFileSync(file, 'utf8').match(/^npx nodepool-.*$/gm) ?? []);
  expect(started.filter((line) => !line.includes('--generate-token'))).toEqual([]);
  const template = join(packages, 'create-driver', 'templates', 'common', '_package.json');
  expect(readFileSync(template, 'utf8')).toContain('&& exec nodepool-launcher');
});

describe('a configuration in the documentation', () => {
  let folder: string;

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'nodepool-docs-'));
  });

  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  const shown = filesBelow(docs, '.md').flatMap((file) =>
    [...readFileSync(file, 'utf8').matchAll(/```yaml\n(.*?)^ *```/gms)]
      .map(([, text = '']) => text)
      .filter((text) => text.includes('zookeeper-servers:') && text.includes('providers:'))
      .map((text) => [file.slice(docs.length + 1), text] as const),
  );
  const examples = ['nodepool.yaml', 'aws-spot.yaml', 'metastatic.yaml'].map(
    (name) => [`examples/${name}`, readFileSync(join(docs, 'examples', name), 'utf8')] as const,
  );

  it.each([...examples, ...shown])('is valid: %s', async (_page, text) => {
    const file = join(folder, 'nodepool.yaml');
    writeFileSync(file, text);
    writeFileSync(
      join(folder, 'clouds.yaml'),
      'clouds: {acme: {auth: {auth_url: "https://identity.example.org/v3"}}}\n',
    );
    const loaded = await loadConfig({ file, env: {} });
    expect(loaded.ok ? [] : loaded.problems).toEqual([]);
  });
});

describe('a block of commands or configuration', () => {
  /** Languages of blocks with output or code. All other blocks are commands or files for readers. */
  const NOT_TO_RUN = new Set(['text', 'ts']);
  const markdown = new MarkdownIt({ html: true });

  const blocks = filesBelow(docs, '.md').flatMap((file) => {
    const tokens = markdown.parse(readFileSync(file, 'utf8'), {});
    return tokens.flatMap((token, index) => {
      if ((token.type !== 'fence' && token.type !== 'code_block') || NOT_TO_RUN.has(token.info)) return [];
      const before = tokens[index - 1];
      const [firstLine = ''] = token.content.split('\n');
      return [{ page: basename(file), firstLine, marker: before?.type === 'html_block' ? before.content.trim() : '' }];
    });
  });

  it('exists', () => {
    expect(blocks.length).toBeGreaterThan(20);
  });

  it.each(blocks)(
    'is executed by a test, or has the reason for its absence: $page $firstLine',
    ({ page, firstLine, marker }) => {
      const [, file, reason] = /^<!-- (?:executed by (\S+)|not executable: (.+)) -->$/.exec(marker) ?? [];
      if (reason !== undefined) return;
      // A test executes the block if it reads this page or all pages, or contains the command.
      const test = file === undefined ? '' : readFileSync(join(REPOSITORY, file), 'utf8');
      expect(
        [page, firstLine, 'a configuration that the documentation shows'].some((text) => test.includes(text)),
      ).toBe(true);
    },
  );
});

describe('a driver', () => {
  it.each(driverPackages().map(({ name }) => name))('has a page with its options: %s', (driver) => {
    const page = join(docs, 'drivers', `${driver}.md`);
    expect(existsSync(page) ? readFileSync(page, 'utf8') : '').toContain('<!-- generated: options -->');
  });
});

describe('the reference of the programs', () => {
  const page = readFileSync(join(docs, 'reference', 'programs.md'), 'utf8');
  const programs = readdirSync(packages)
    .map((name) => join(packages, name, 'package.json'))
    .filter((file) => existsSync(file))
    .flatMap((file) => {
      const { name, bin = {} } = JSON.parse(readFileSync(file, 'utf8')) as { name: string; bin?: string | object };
      return typeof bin === 'string' ? [basename(name)] : Object.keys(bin);
    });

  it.each(programs)('has a section of %s', (program) => {
    expect(page).toContain(`\n## \`${program}\`\n`);
  });
});

describe('the page about the web endpoint', () => {
  const page = readFileSync(join(docs, 'reference', 'web.md'), 'utf8');
  const paths = filesBelow(join(packages, 'status', 'src', 'web'), '.ts')
    .flatMap((file) => [...readFileSync(file, 'utf8').matchAll(/(?:path: |app\.get[^(]*\()'(\/[^']*)'/g)])
    .map(([, path = '']) => path.replace('*', 'NAME'));

  it.each(paths)('lists %s', (path) => {
    expect(page).toContain(`\`${path}\``);
  });
});

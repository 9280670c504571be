/** The website: the built pages, and the errors that prevent a build. */

import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { REPOSITORY } from '../src/repository.js';
import { buildSite } from '../src/website/build.js';
import { chaptersOf, collect } from '../src/website/contents.js';
import { layout, searchIndex } from '../src/website/layout.js';
import { deadLinks } from '../src/website/links.js';
import { renderPage, type Page } from '../src/website/page.js';

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'nodepool-docs-'));
});

afterEach(() => rmSync(folder, { recursive: true, force: true }));

describe('the site of this repository', () => {
  it('has no dead links and no unlinked pages', async () => {
    const { problems } = await buildSite({ repository: REPOSITORY, folder });
    expect(problems).toEqual([]);
  });

  it('contains the pages, their images and examples, and the files of the layout', async () => {
    await buildSite({ repository: REPOSITORY, folder });
    for (const file of [
      'index.html',
      'trouble.html',
      'images/launcher.svg',
      'examples/nodepool.yaml',
      'assets/style.css',
    ]) {
      expect(existsSync(join(folder, file))).toBe(true);
    }
    const page = readFileSync(join(folder, 'drivers', 'openstack.html'), 'utf8');
    expect(page).toContain('<link rel="stylesheet" href="../assets/style.css">');
    expect(page).toContain('aria-current="page">OpenStack</a>');
    // Resources from other servers could change, disappear or be unreachable.
    expect(page).not.toMatch(/<(?:link|script|img)[^>]+(?:href|src)="(?:https?:)?\/\//);
  });
});

describe('a page', () => {
  it('links to the locations of other pages and files on the site', () => {
    const page = renderPage(
      'docs/drivers/a.md',
      '[b](../b.md#two) [code](../../packages/core/README.md) [file](../examples/x.yaml) [out](https://example.org/c.md)',
    );
    expect([...page.html.matchAll(/href="([^"]*)"/g)].map(([, href]) => href)).toEqual([
      '../b.html#two',
      '../packages/core.html',
      '../examples/x.yaml',
      'https://example.org/c.md',
    ]);
  });

  it('has the same anchors for headings as the repository host', () => {
    const { headings, title } = renderPage(
      'docs/a.md',
      '# The *whole* `key`, and more\n\n## Two\n\n## Two\n\n### `a.b[]`: c',
    );
    expect(title).toBe('The whole key, and more');
    expect(headings.map(({ id }) => id)).toEqual(['the-whole-key-and-more', 'two', 'two-1', 'ab-c']);
  });
});

describe('the page layout', () => {
  const page = renderPage('docs/a.md', '# A `<b>` & more\n\n## One\n\nA limit is a `limit` of 5.\n\n## Two\n');
  const other = renderPage('docs/drivers/c.md', '# C\n');
  const pages = new Map([page, other].map((each) => [each.file, each]));
  const chapters = [{ title: 'All', files: [page.file, other.file] }];

  it('escapes titles, links to the neighbouring pages and lists the headings', () => {
    const html = layout(page, { pages, chapters });
    expect(html).toContain('<title>A &lt;b&gt; &amp; more · Nodepool</title>');
    expect(html).toContain('<a class="after" href="drivers/c.html">C</a>');
    expect(html).toContain('<li class="level-2"><a href="#two">Two</a></li>');
    expect(html).toContain('<select id="versions"');
  });

  it('has a search index with every heading and the different words of its section', () => {
    expect(searchIndex(pages.values())).toContain('["One","A <b> & more","a.html","one","limit"]');
  });

  it('lists drivers without entries, and other new pages last', () => {
    const found = chaptersOf(['docs/drivers/x.md', 'docs/new.md', 'docs/decisions/0001.md']);
    expect(found.find(({ title }) => title === 'Drivers')?.files).toEqual(['docs/drivers/x.md']);
    expect(found.at(-1)).toEqual({ title: 'More', files: ['docs/new.md'] });
  });
});

describe('the list of dead links', () => {
  const pages: Readonly<Record<string, string>> = {
    'docs/a.md': '# A\n\n[b](b.md) [there](b.md#there) [file](x.yaml)\n',
    'docs/b.md': '# B\n\n## There\n\n[self](#there)\n',
    'docs/x.yaml': '',
  };

  async function check(changed: Readonly<Record<string, string>>): Promise<readonly string[]> {
    const all = { ...pages, ...changed };
    const contents = await collect(['docs/a.md'], {
      page: async (file): Promise<Page> => renderPage(file, all[file] ?? ''),
      exists: (file) => file in all,
    });
    return deadLinks(contents.pages, contents.files);
  }

  it('is empty when all targets exist', async () => {
    expect(await check({})).toEqual([]);
  });

  it('contains links to missing pages, files and images', async () => {
    const dead = await check({ 'docs/b.md': '# B\n\n## There\n\n[c](c.md) [y](y.yaml) ![z](images/z.svg)' });
    expect(dead).toEqual([
      'docs/b.md: c.md is dead: there is no file docs/c.md in the repository',
      'docs/b.md: y.yaml is dead: there is no file docs/y.yaml in the repository',
      'docs/b.md: images/z.svg is dead: there is no file docs/images/z.svg in the repository',
    ]);
  });

  it('contains links to missing headings, also on the same page', async () => {
    const dead = await check({ 'docs/b.md': '# B\n\n[self](#gone)' });
    expect(dead).toEqual([
      'docs/a.md: b.md#there is dead: docs/b.md has no heading with the anchor #there',
      'docs/b.md: #gone is dead: docs/b.md has no heading with the anchor #gone',
    ]);
  });

  it('contains links outside the repository', async () => {
    expect(await check({ 'docs/b.md': '# B\n\n## There\n\n[up](../../secret.md)' })).toHaveLength(1);
  });
});

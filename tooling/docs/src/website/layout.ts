/** The frame of a page: navigation, headings, search. Pages also work from a disk, without scripts, and on a phone. */

import type { Chapter } from './contents.js';
import type { Page } from './page.js';
import { relativeLink, sitePath } from './paths.js';

export interface Frame {
  readonly chapters: readonly Chapter[];
  readonly pages: ReadonlyMap<string, Page>;
}

/** Returns the complete HTML document. */
export function layout(page: Page, frame: Frame): string {
  const here = sitePath(page.file);
  const root = relativeLink(here, 'index.html').slice(0, -'index.html'.length);
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${escapeHtml(page.title)} · Nodepool</title>
<link rel="stylesheet" href="${root}assets/style.css">
<script defer src="${root}assets/index.js"></script>
<script defer src="${root}assets/search.js" data-root="${root}"></script>
</head>
<body>
<header>
<a class="home" href="${root}index.html">Nodepool</a>
<select id="versions" aria-label="Version of the documentation" hidden></select>
<input id="search" type="search" placeholder="Search" aria-label="Search the documentation" autocomplete="off" hidden>
<ol id="found" hidden></ol>
</header>
<div class="columns">
<nav aria-label="Pages"><details open><summary>Pages</summary>
${navigation(page, frame)}
</details></nav>
<main>
${page.html}
${neighbours(page, frame)}
</main>
<aside aria-label="On this page">
${headings(page)}
</aside>
</div>
</body>
</html>
`;
}

/**
 * Returns the search index with a line per heading, and the words of its section. It is a script, because a page on a
 * disk can load no other data.
 */
export function searchIndex(pages: Iterable<Page>): string {
  const entries = [...pages].flatMap((page) =>
    page.headings.map(({ id, text, level, words }) => [
      ...[text, page.title, sitePath(page.file), level === 1 ? '' : id],
      words.join(' '),
    ]),
  );
  return `window.searchIndex = ${JSON.stringify(entries)};\n`;
}

function navigation(page: Page, { chapters, pages }: Frame): string {
  const here = sitePath(page.file);
  const item = (file: string): string => {
    const current = file === page.file ? ' aria-current="page"' : '';
    const title = escapeHtml(pages.get(file)?.title ?? file);
    return `<li><a href="${relativeLink(here, sitePath(file))}"${current}>${title}</a></li>`;
  };
  return chapters
    .map(({ title, files }) => `<h2>${escapeHtml(title)}</h2>\n<ul>\n${files.map(item).join('\n')}\n</ul>`)
    .join('\n');
}

function neighbours(page: Page, { chapters, pages }: Frame): string {
  const files = chapters.flatMap((chapter) => chapter.files);
  const place = files.indexOf(page.file);
  const link = (file: string | undefined, className: string): string =>
    file === undefined
      ? ''
      : `<a class="${className}" href="${relativeLink(sitePath(page.file), sitePath(file))}">${escapeHtml(pages.get(file)?.title ?? file)}</a>`;
  if (place === -1) return '';
  return `<p class="neighbours">${link(files[place - 1], 'before')} ${link(files[place + 1], 'after')}</p>`;
}

function headings({ headings: all }: Page): string {
  const shown = all.filter(({ level }) => level === 2 || level === 3);
  if (shown.length < 2) return '';
  const items = shown.map(
    ({ level, id, text }) => `<li class="level-${level}"><a href="#${id}">${escapeHtml(text)}</a></li>`,
  );
  return `<h2>On this page</h2>\n<ul>\n${items.join('\n')}\n</ul>`;
}

const ENTITIES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };

function escapeHtml(text: string): string {
  return text.replaceAll(/[&<>"]/g, (character) => ENTITIES[character] ?? character);
}

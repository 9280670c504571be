/** A page: HTML rendered from Markdown, with its title, headings and links. */

import MarkdownIt, { type Token } from 'markdown-it';
import { relativeLink, sitePath } from './paths.js';
import { resolveLink, type Link } from './links.js';

export interface Heading {
  readonly level: number;
  readonly id: string;
  readonly text: string;
  /** The different words of the section up to the next heading, in lower case, for the search. */
  readonly words: readonly string[];
}

export interface Page {
  /** Path in the repository. */
  readonly file: string;
  readonly title: string;
  readonly headings: readonly Heading[];
  readonly links: readonly Link[];
  readonly html: string;
}

const markdown = new MarkdownIt({ html: true, linkify: false });

/** Renders a page; its links lead to places on the website, see `sitePath`. */
export function renderPage(file: string, source: string): Page {
  const tokens = markdown.parse(source, {});
  const headings = giveIds(tokens);
  const links = pointLinks(file, tokens);
  const title = headings.find(({ level }) => level === 1)?.text ?? file;
  return { file, title, headings, links, html: wrapTables(markdown.renderer.render(tokens, markdown.options, {})) };
}

/** Sets the same ids as GitHub, so that links work in both places. */
function giveIds(tokens: readonly Token[]): readonly Heading[] {
  const seen = new Map<string, number>();
  return tokens.flatMap((token, index) => {
    if (token.type !== 'heading_open') return [];
    const text = plainText(tokens[index + 1]?.children ?? []);
    const slug = slugOf(text);
    const times = seen.get(slug) ?? 0;
    seen.set(slug, times + 1);
    const id = times === 0 ? slug : `${slug}-${times}`;
    token.attrSet('id', id);
    return [{ level: Number(token.tag.slice(1)), id, text, words: wordsAfter(tokens, index + 2) }];
  });
}

/** Returns the words from this token to the next heading. */
function wordsAfter(tokens: readonly Token[], from: number): readonly string[] {
  const rest = tokens.slice(from + 1);
  const end = rest.findIndex(({ type }) => type === 'heading_open');
  const section = end === -1 ? rest : rest.slice(0, end);
  const text = section
    .map(({ type, content, children }) =>
      type === 'inline' ? plainText(children ?? []) : type === 'fence' ? content : '',
    )
    .join(' ')
    .toLowerCase();
  return [...new Set(text.match(/[\p{L}\p{N}][\p{L}\p{N}_.-]+[\p{L}\p{N}]/gu))];
}

function slugOf(text: string): string {
  return text
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, '')
    .replaceAll(/\s/g, '-');
}

function plainText(tokens: readonly Token[]): string {
  return tokens
    .map(({ type, content }) => (type === 'text' || type === 'code_inline' ? content : type === 'softbreak' ? ' ' : ''))
    .join('');
}

/** Replaces links to files of the repository by links to their places on the website. */
function pointLinks(file: string, tokens: readonly Token[]): readonly Link[] {
  const from = sitePath(file);
  return tokens.flatMap((token) =>
    (token.children ?? []).flatMap((child) => {
      const attribute = child.type === 'link_open' ? 'href' : child.type === 'image' ? 'src' : undefined;
      const target = attribute === undefined ? undefined : child.attrGet(attribute);
      if (attribute === undefined || typeof target !== 'string') return [];
      const link = resolveLink(file, target);
      if (link === undefined) return [];
      const path = link.file === file ? '' : relativeLink(from, sitePath(link.file));
      child.attrSet(attribute, link.anchor === undefined ? path : `${path}#${encodeURIComponent(link.anchor)}`);
      return [link];
    }),
  );
}

/** Wraps tables, so that a wide table scrolls instead of the page. */
function wrapTables(html: string): string {
  return html.replaceAll('<table>', '<div class="table"><table>').replaceAll('</table>', '</table></div>');
}

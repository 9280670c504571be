/** What the site has: the pages of the navigation, in chapters, and what they link to. */

import type { Page } from './page.js';

export interface Chapter {
  readonly title: string;
  /** Files in the repository, in order. */
  readonly files: readonly string[];
}

/**
 * Chapters of the navigation. `files`: all pages in `docs`. Drivers need not be named here; what is neither named nor a
 * page of `docs/decisions`, which the first page lists, comes last.
 */
export function chaptersOf(files: readonly string[]): readonly Chapter[] {
  const drivers = files.filter((file) => file.startsWith('docs/drivers/'));
  const chapters = CHAPTERS.map(({ title, files: named }) => ({
    title,
    files: title === DRIVERS ? drivers : named,
  }));
  const named = new Set(chapters.flatMap((chapter) => chapter.files));
  const others = files.filter((file) => !named.has(file) && !file.startsWith('docs/decisions/'));
  return others.length === 0 ? chapters : [...chapters, { title: 'More', files: others }];
}

const DRIVERS = 'Drivers';

const CHAPTERS: readonly Chapter[] = [
  { title: 'Start', files: ['README.md', 'getting-started.md', 'concepts.md', 'switching.md'].map(inDocs) },
  {
    title: 'Operating',
    files: [
      'operating.md',
      'requestors.md',
      'monitoring.md',
      'status-page.md',
      'trouble.md',
      'builder.md',
      'limits-and-waiting.md',
      'capacity.md',
      'performance.md',
      'runbooks.md',
    ].map(inDocs),
  },
  { title: DRIVERS, files: [] },
  {
    title: 'Reference',
    files: ['configuration.md', 'programs.md', 'web.md', 'metrics.md'].map((name) => inDocs(`reference/${name}`)),
  },
  {
    title: 'Developing',
    files: [
      'how-it-works.md',
      'writing-a-driver.md',
      'driver-contract.md',
      'development.md',
      'simulation.md',
      'releasing.md',
      'dependencies.md',
    ].map(inDocs),
  },
];

function inDocs(file: string): string {
  return `docs/${file}`;
}

export interface Contents {
  readonly pages: ReadonlyMap<string, Page>;
  /** What pages link to and is no page. */
  readonly files: ReadonlySet<string>;
}

/** Reads and renders a page; rejects when there is none. `exists`: whether the repository has such a file. */
export interface Source {
  page(file: string): Promise<Page>;
  exists(file: string): boolean;
}

/** Everything that is reached from `start` by links. Links that lead nowhere are left to `deadLinks`. */
export async function collect(start: readonly string[], source: Source): Promise<Contents> {
  const pages = new Map<string, Page>();
  const files = new Set<string>();
  const waiting = [...start];
  for (let file = waiting.shift(); file !== undefined; file = waiting.shift()) {
    if (pages.has(file) || files.has(file) || !source.exists(file)) continue;
    if (!file.endsWith('.md')) {
      files.add(file);
      continue;
    }
    const page = await source.page(file);
    pages.set(file, page);
    waiting.push(...page.links.map((link) => link.file));
  }
  return { pages, files };
}

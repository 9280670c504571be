/** The content of the website: the pages of the navigation, in chapters, and the files that they link to. */

import type { Page } from './page.js';

export interface Chapter {
  readonly title: string;
  /** Paths in the repository, in order. */
  readonly files: readonly string[];
}

/**
 * Returns the chapters of the navigation; `files` are all pages in `docs`. Driver pages need no entry here. Pages
 * without an entry come last, except `docs/decisions`, which the first page lists.
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
  {
    title: 'Start',
    files: ['README.md', 'getting-started.md', 'concepts.md', 'comparison.md', 'switching.md'].map(inDocs),
  },
  {
    title: 'Connect',
    files: ['github-actions.md', 'gitlab.md', 'garm.md', 'slurm.md', 'leases.md', 'requestors.md'].map(inDocs),
  },
  {
    title: 'Operate',
    files: [
      'operating.md',
      'limits-and-waiting.md',
      'capacity.md',
      'planning.md',
      'ready-nodes.md',
      'builder.md',
      'images.md',
      'status-page.md',
      'monitoring.md',
      'runbooks.md',
      'trouble.md',
      'performance.md',
      'scale.md',
    ].map(inDocs),
  },
  { title: DRIVERS, files: [] },
  {
    title: 'Reference',
    files: ['configuration.md', 'programs.md', 'web.md', 'metrics.md'].map((name) => inDocs(`reference/${name}`)),
  },
  {
    title: 'Develop',
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
  /** Linked files that are not pages. */
  readonly files: ReadonlySet<string>;
}

/** Reads and renders a page, and rejects if it does not exist. `exists` returns true if the repository has the file. */
export interface Source {
  page(file: string): Promise<Page>;
  exists(file: string): boolean;
}

/** Returns all pages and files that links lead to from `start`. Ignores dead links, which `deadLinks` reports. */
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

/** Builds the website into a folder. */

import { existsSync, statSync } from 'node:fs';
import { cp, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { chaptersOf, collect, type Chapter, type Contents } from './contents.js';
import { layout, searchIndex } from './layout.js';
import { deadLinks } from './links.js';
import { renderPage } from './page.js';
import { sitePath } from './paths.js';

export interface SiteOptions {
  /** Root of the checkout. */
  readonly repository: string;
  /** The folder is deleted and created again. */
  readonly folder: string;
}

export interface Site {
  readonly pages: number;
  readonly files: number;
  /** One line per dead link and per page without a link to it. If there are any, nothing is written. */
  readonly problems: readonly string[];
}

export async function buildSite({ repository, folder }: SiteOptions): Promise<Site> {
  const documentation = await documentationOf(repository);
  const chapters = chaptersOf(documentation);
  const contents = await collect(
    chapters.flatMap(({ files }) => files),
    {
      page: async (file) => renderPage(file, await readFile(join(repository, file), 'utf8')),
      exists: (file) => !file.startsWith('../') && isFile(join(repository, file)),
    },
  );
  const problems = problemsOf(contents, chapters, documentation);
  if (problems.length === 0) await write({ ...contents, chapters }, repository, folder);
  return { pages: contents.pages.size, files: contents.files.size, problems };
}

/** Returns all pages in `docs`. */
async function documentationOf(repository: string): Promise<readonly string[]> {
  const files = await readdir(join(repository, 'docs'), { recursive: true });
  return files
    .filter((file) => file.endsWith('.md'))
    .map((file) => `docs/${file}`)
    .sort();
}

function problemsOf(
  { pages, files }: Contents,
  chapters: readonly Chapter[],
  documentation: readonly string[],
): readonly string[] {
  const named = chapters.flatMap((chapter) => chapter.files);
  const missing = named.filter((file) => !pages.has(file));
  const lost = documentation.filter((file) => !pages.has(file));
  return [
    ...missing.map((file) => `${file}: the navigation names it, and it is not there`),
    ...lost.map((file) => `${file}: nothing leads to it; link to it from another page`),
    ...deadLinks(pages, files),
  ];
}

async function write(
  { pages, files, chapters }: Contents & { readonly chapters: readonly Chapter[] },
  repository: string,
  folder: string,
): Promise<void> {
  await rm(folder, { recursive: true, force: true });
  const frame = { chapters, pages };
  for (const page of pages.values()) await writeTo(join(folder, sitePath(page.file)), layout(page, frame));
  for (const file of files) {
    const target = join(folder, sitePath(file));
    await mkdir(dirname(target), { recursive: true });
    await cp(join(repository, file), target);
  }
  await cp(join(__dirname, '..', '..', 'assets'), join(folder, 'assets'), { recursive: true });
  await writeTo(join(folder, 'assets', 'index.js'), searchIndex(pages.values()));
}

async function writeTo(file: string, text: string): Promise<void> {
  await mkdir(dirname(file), { recursive: true });
  await writeFile(file, text);
}

function isFile(path: string): boolean {
  return existsSync(path) && statSync(path).isFile();
}

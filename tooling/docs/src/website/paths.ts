/** Where a file of the repository is on the site. Paths have slashes and are relative to the root of either. */

import { posix } from 'node:path';

/** `docs/README.md` is the first page; other READMEs are named after their folder. */
export function sitePath(file: string): string {
  if (file === 'README.md') return 'readme.html';
  const place = file.startsWith('docs/') ? file.slice('docs/'.length) : file;
  if (!place.endsWith('.md')) return file.startsWith('docs/') ? place : `files/${place}`;
  if (place === 'README.md') return 'index.html';
  return place.endsWith('/README.md') ? `${posix.dirname(place)}.html` : `${place.slice(0, -'.md'.length)}.html`;
}

/** From one place of the site to another, so that the site works in any folder and from a disk. */
export function relativeLink(from: string, to: string): string {
  return posix.relative(posix.dirname(from), to);
}

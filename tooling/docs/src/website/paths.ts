/**
 * The places of the repository's files on the website. All paths use slashes and are relative to the root of either.
 */

import { posix } from 'node:path';

/** Returns the place of a file: `docs/README.md` is the first page, and other READMEs are named after their folder. */
export function sitePath(file: string): string {
  if (file === 'README.md') return 'readme.html';
  const place = file.startsWith('docs/') ? file.slice('docs/'.length) : file;
  if (!place.endsWith('.md')) return file.startsWith('docs/') ? place : `files/${place}`;
  if (place === 'README.md') return 'index.html';
  return place.endsWith('/README.md') ? `${posix.dirname(place)}.html` : `${place.slice(0, -'.md'.length)}.html`;
}

/** Returns a relative link between two places, so that the website works in any folder and from a disk. */
export function relativeLink(from: string, to: string): string {
  return posix.relative(posix.dirname(from), to);
}

/** Links between files of the repository, and those of them that lead nowhere. */

import { posix } from 'node:path';

export interface Link {
  /** As it is written. */
  readonly target: string;
  /** In the repository. */
  readonly file: string;
  readonly anchor: string | undefined;
}

/** What a link of a file means; undefined: it leads out of the repository, which is not followed. */
export function resolveLink(file: string, target: string): Link | undefined {
  if (/^[a-z][a-z+.-]*:|^\/\//i.test(target)) return undefined;
  const [path = '', anchor] = target.split('#');
  const resolved = path === '' ? file : posix.normalize(posix.join(posix.dirname(file), decodeURIComponent(path)));
  return { target, file: resolved, anchor: anchor === undefined ? undefined : decodeURIComponent(anchor) };
}

/** What can be linked to. */
export interface Linkable {
  readonly file: string;
  readonly links: readonly Link[];
  readonly headings: readonly { readonly id: string }[];
}

/** One line per link that leads nowhere. `files`: those that are no pages. */
export function deadLinks(pages: ReadonlyMap<string, Linkable>, files: ReadonlySet<string>): readonly string[] {
  return [...pages.values()].flatMap((page) =>
    page.links.flatMap((link) => {
      const reason = whyDead(link, pages, files);
      return reason === undefined ? [] : [`${page.file}: ${link.target} leads nowhere: ${reason}`];
    }),
  );
}

function whyDead(
  { file, anchor }: Link,
  pages: ReadonlyMap<string, Linkable>,
  files: ReadonlySet<string>,
): string | undefined {
  const page = pages.get(file);
  if (page === undefined) return files.has(file) ? undefined : `there is no file ${file} in the repository`;
  if (anchor === undefined || page.headings.some(({ id }) => id === anchor)) return undefined;
  return `${file} has no heading with the anchor #${anchor}`;
}

/** Links between files of the repository, including dead ones. */

import { posix } from 'node:path';

export interface Link {
  /** Target as written. */
  readonly target: string;
  /** Path in the repository. */
  readonly file: string;
  readonly anchor: string | undefined;
}

/** Returns the target of a link in a file, or undefined if the link leaves the repository. */
export function resolveLink(file: string, target: string): Link | undefined {
  if (/^[a-z][a-z+.-]*:|^\/\//i.test(target)) return undefined;
  const [path = '', anchor] = target.split('#');
  const resolved = path === '' ? file : posix.normalize(posix.join(posix.dirname(file), decodeURIComponent(path)));
  return { target, file: resolved, anchor: anchor === undefined ? undefined : decodeURIComponent(anchor) };
}

/** A link target with its headings. */
export interface Linkable {
  readonly file: string;
  readonly links: readonly Link[];
  readonly headings: readonly { readonly id: string }[];
}

/** Returns one line per dead link. `files` are link targets that are not pages. */
export function deadLinks(pages: ReadonlyMap<string, Linkable>, files: ReadonlySet<string>): readonly string[] {
  return [...pages.values()].flatMap((page) =>
    page.links.flatMap((link) => {
      const reason = deadReason(link, pages, files);
      return reason === undefined ? [] : [`${page.file}: ${link.target} is dead: ${reason}`];
    }),
  );
}

function deadReason(
  { file, anchor }: Link,
  pages: ReadonlyMap<string, Linkable>,
  files: ReadonlySet<string>,
): string | undefined {
  const page = pages.get(file);
  if (page === undefined) return files.has(file) ? undefined : `there is no file ${file} in the repository`;
  if (anchor === undefined || page.headings.some(({ id }) => id === anchor)) return undefined;
  return `${file} has no heading with the anchor #${anchor}`;
}

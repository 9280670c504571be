/** The address of a view within the page: `#/nodes/0000000042` or `#/nodes?state=ready&sort=-age`. */

export interface Route {
  /** Name of the page, e.g. `nodes`; the overview has an empty one. */
  readonly page: string;
  /** Id or name of the subject; undefined for a list. */
  readonly id: string | undefined;
  readonly query: URLSearchParams;
}

/** Returns undefined if the fragment is no route but e.g. the target of the skip link. */
export function parseRoute(hash: string): Route | undefined {
  if (hash !== '' && hash !== '#' && !hash.startsWith('#/')) return undefined;
  const [path = '', query = ''] = split(hash.slice(2), '?');
  const [page = '', id] = split(path, '/');
  return { page, id: id === undefined || id === '' ? undefined : decoded(id), query: new URLSearchParams(query) };
}

interface Documents {
  readonly list: string;
  readonly single: string;
  /** True if the launcher filters and sorts the list; short lists are sorted by the page. */
  readonly filtered?: boolean;
}

/** Names of the documents of lists and of single subjects, by page. */
const DOCUMENTS: Readonly<Record<string, Documents>> = {
  '': { list: 'overview', single: 'overview' },
  requests: { list: 'requests', single: 'request', filtered: true },
  nodes: { list: 'nodes', single: 'node', filtered: true },
  labels: { list: 'labels', single: 'label' },
  providers: { list: 'providers', single: 'provider' },
  images: { list: 'images', single: 'image' },
  github: { list: 'github', single: 'github' },
  programs: { list: 'components', single: 'components' },
};

/** Returns the route's document below `status/v1/`, with the parameters that the launcher evaluates. */
export function viewOf({ page, id, query }: Route): string {
  const { list, single, filtered = false } = DOCUMENTS[page] ?? { list: 'overview', single: 'overview' };
  if (id !== undefined) return `${single}/${encodeURIComponent(id)}`;
  const parameters = filtered ? query.toString() : '';
  return parameters === '' ? list : `${list}?${parameters}`;
}

function split(text: string, separator: string): string[] {
  const index = text.indexOf(separator);
  return index < 0 ? [text] : [text.slice(0, index), text.slice(index + 1)];
}

/** Decodes an address, which can have invalid escapes if a user typed it. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch (error) {
    if (error instanceof URIError) return text;
    throw error;
  }
}

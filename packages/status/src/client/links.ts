/** Names that link to their pages. Every page has a URL fragment, so that the page works below any path prefix. */

import { h, type Child } from './dom.js';
import type { JobLink, Ref } from './model.js';

/** Returns the fragment of a page; empty parameters are omitted. */
export function pageHref(
  path: readonly string[],
  parameters: Readonly<Record<string, string | number | null | undefined>> = {},
): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    if (value !== undefined && value !== null && value !== '') query.set(name, String(value));
  }
  const text = query.toString();
  return `#/${path.map(encodeURIComponent).join('/')}${text === '' ? '' : `?${text}`}`;
}

export function hrefOf({ kind, id }: Ref): string {
  switch (kind) {
    case 'request':
      return pageHref(['requests', id]);
    case 'node':
      return pageHref(['nodes', id]);
    case 'label':
      return pageHref(['labels', id]);
    case 'provider':
      return pageHref(['providers', id]);
    case 'pool': {
      const [provider = '', ...pool] = id.split('/');
      return pageHref(['providers', provider], { pool: pool.join('/') });
    }
    case 'image':
      return pageHref(['images', id]);
    case 'program':
      return pageHref(['programs'], { host: id });
  }
}

/** Returns a job of GitHub Actions as a link to its run, if its address is known. */
export function jobName({ name: job, repository, url }: JobLink): Child[] {
  const text = [name(job), h('span', { class: 'quiet' }, ' of ', name(repository))];
  return url === null ? text : [h('a', { href: url, rel: 'noreferrer' }, text[0]), text[1]];
}

/** Names longer than this can be cut off, so that they have a tooltip. */
const LONG_NAME = 24;

/** Returns a name that links to its page. */
export function link(kind: Ref['kind'], id: string, text: string = id): HTMLElement {
  const title = text.length > LONG_NAME ? text : undefined;
  return h(
    'a',
    { class: 'name', href: hrefOf({ kind, id }), title, 'data-key': `${kind} ${id}` },
    ...names(kind, text),
  );
}

/** Returns the names of a provider and its pool apart: together, a right-to-left provider would follow its pool. */
function names(kind: Ref['kind'], text: string): Child[] {
  const slash = kind === 'pool' ? text.indexOf('/') : -1;
  return slash < 0 ? [name(text)] : [name(text.slice(0, slash)), '/', name(text.slice(slash + 1))];
}

/** Returns a name from any source, isolated so that right-to-left text does not reorder its neighbours. */
export function name(text: string): HTMLElement {
  return h('bdi', {}, text);
}

/** Returns the name of a label as a chip, with the number of nodes if it is not one. */
export function labelChip(label: string, count = 1): HTMLElement {
  return h(
    'a',
    { class: 'chip', href: hrefOf({ kind: 'label', id: label }), title: label, 'data-key': `label ${label}` },
    name(label),
    count === 1 ? undefined : ` ×${count}`,
  );
}

export function joined(items: readonly Child[], separator = ', '): Child[] {
  return items.flatMap((item, index) => (index === 0 ? [item] : [separator, item]));
}

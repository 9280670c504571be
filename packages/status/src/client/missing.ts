/** The page of a subject that the launcher does not know, or of an address that it refuses. */

import { h, type Child } from './dom.js';
import { name, pageHref } from './links.js';
import type { Route } from './route.js';
import { nothing } from './widgets.js';

interface Subject {
  readonly title: string;
  readonly hint: string;
  readonly all: string;
}

const SUBJECTS: Readonly<Record<string, Subject>> = {
  requests: {
    title: 'Request',
    hint: 'It may have ended more than a day ago, or on another launcher while this one was not running.',
    all: 'all requests',
  },
  nodes: { title: 'Node', hint: 'It may have been deleted more than a day ago.', all: 'all nodes' },
  labels: { title: 'Label', hint: 'Neither a pool nor a request names it. Check its spelling.', all: 'all labels' },
  providers: { title: 'Provider', hint: 'Neither the configuration nor a node names it.', all: 'all providers' },
  images: { title: 'Image', hint: 'Neither the configuration nor a build names it.', all: 'all images' },
};

export function missingPage({ page, id = '' }: Route): Child[] {
  const subject = SUBJECTS[page];
  const title = subject?.title ?? 'Page';
  return [
    h('h1', { tabindex: -1 }, title, ' ', name(id)),
    nothing(
      `There is no ${title.toLowerCase()} `,
      h('b', {}, name(id)),
      `. ${subject?.hint ?? ''} `,
      h('a', { href: subject === undefined ? '#/' : pageHref([page]) }, subject?.all ?? 'Overview'),
    ),
  ];
}

/** Shows why the launcher refused the parameters of the address. */
export function refusedPage({ page }: Route, reason: string): Child[] {
  return [
    h('h1', { tabindex: -1 }, 'Address not understood'),
    nothing(reason, '. ', h('a', { href: page === '' ? '#/' : pageHref([page]) }, 'Without parameters')),
  ];
}

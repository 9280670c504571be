/** The list of requests: waiting, in progress, and recently ended ones. */

import { h, type Child } from './dom.js';
import { filters } from './filters.js';
import type { RequestCounts, RequestsDocument } from './model.js';
import { reasonTable, waitingText } from './page-overview.js';
import type { View } from './page.js';
import type { Route } from './route.js';
import { requestColumns } from './rows.js';
import { pager, routeHref, table } from './table.js';
import { counted, numberText } from './text.js';
import { nothing, section } from './widgets.js';

interface Tab {
  readonly state: string;
  readonly title: string;
  readonly count?: (counts: RequestCounts) => number;
  readonly empty: string;
}

const TABS: readonly Tab[] = [
  { state: 'waiting', title: 'Waiting', count: ({ waiting }) => waiting, empty: 'No request waits.' },
  { state: 'progress', title: 'In progress', count: ({ progress }) => progress, empty: 'No pool works on a request.' },
  { state: 'failed', title: 'Failed', count: ({ failed }) => failed, empty: 'No request failed in the last day.' },
  {
    state: 'fulfilled',
    title: 'Fulfilled',
    count: ({ fulfilled }) => fulfilled,
    empty: 'No request was fulfilled in the last day.',
  },
  { state: 'cancelled', title: 'Cancelled', empty: 'No requestor deleted a request before it was served.' },
];

export const requestsPage: View<RequestsDocument> = {
  title: () => 'Requests',
  draw: ({ document: { counts, reasons, facets, paging, rows }, present, route }) => {
    const state = route.query.get('state') ?? '';
    const filtered = ['q', 'label', 'pool', 'requestor'].some((name) => route.query.has(name));
    return [
      h('h1', { tabindex: -1 }, 'Requests'),
      h(
        'p',
        { class: 'lead' },
        ...waitingText(counts, present),
        counts.progress === 0 ? '' : ` ${counted(counts.progress, 'request is', 'requests are')} in progress.`,
      ),
      tabs(route, state, counts),
      (state === '' || state === 'waiting') && reasons.length > 1 && !filtered
        ? section('Why requests wait', undefined, reasonTable(reasons, counts.waiting, present))
        : undefined,
      filters(route, 'id, label, requestor, tenant', [
        { parameter: 'label', title: 'Label', all: 'all labels', options: facets.label },
        { parameter: 'pool', title: 'Pool', all: 'all pools', options: facets.pool },
        { parameter: 'requestor', title: 'Requestor', all: 'all requestors', options: facets.requestor },
      ]),
      rows.length === 0
        ? nothing(...emptyText(state, filtered))
        : table({ caption: 'Requests', columns: requestColumns(present), rows, key: ({ id }) => id, route }),
      rows.length === 0 ? undefined : pager(route, paging, 'request'),
    ];
  },
};

function emptyText(state: string, filtered: boolean): Child[] {
  if (filtered) return ['No request matches the filters.'];
  return [
    TABS.find((tab) => tab.state === state)?.empty ?? 'There is no request. ',
    state === '' ? 'Submit one as a requestor would: ' : undefined,
    state === '' ? h('code', {}, 'nodepool request LABEL') : undefined,
  ];
}

function tabs(route: Route, state: string, counts: RequestCounts): HTMLElement {
  const tab = (title: string, value: string, count: number | undefined): HTMLElement =>
    h(
      'a',
      {
        href: routeHref(route, { state: value, offset: undefined, sort: undefined }),
        'aria-current': value === state ? 'true' : undefined,
        'data-key': title,
      },
      title,
      ...(count === undefined ? [] : [' ', h('b', {}, numberText(count))]),
    );
  return h(
    'nav',
    { class: 'tabs', 'aria-label': 'Requests by state', 'data-key': 'tabs' },
    tab('All', '', undefined),
    ...TABS.map(({ state: value, title, count }) => tab(title, value, count?.(counts))),
  );
}

/** The list of nodes, which the launcher filters, sorts and pages. */

import { h } from './dom.js';
import { filters } from './filters.js';
import type { NodesDocument } from './model.js';
import type { View } from './page.js';
import { nodeColumns } from './rows.js';
import { pager, routeHref, table } from './table.js';
import { counted, numberText } from './text.js';
import { GROUP_STATES, groupClass, groupOf, NODE_GROUPS, nothing } from './widgets.js';

const FILTERS = ['q', 'state', 'provider', 'pool', 'label', 'launcher'];

export const nodesPage: View<NodesDocument> = {
  title: () => 'Nodes',
  draw: ({ document: { counts, facets, paging, rows }, present, route }) => {
    const state = route.query.get('state') ?? '';
    const tab = (title: string, value: string, count: number, className: string | undefined): HTMLElement =>
      h(
        'a',
        {
          class: className,
          href: routeHref(route, { state: value, offset: undefined }),
          'aria-current': value === state ? 'true' : undefined,
          'data-key': title,
        },
        title,
        ' ',
        h('b', {}, numberText(count)),
      );
    return [
      h('h1', { tabindex: -1 }, 'Nodes'),
      h(
        'nav',
        { class: 'tabs', 'aria-label': 'Nodes by state', 'data-key': 'tabs' },
        tab('All', '', counts.total, undefined),
        ...NODE_GROUPS.map((group) => tab(group, GROUP_STATES[group], counts.groups[group], groupClass(group))),
      ),
      filters(route, 'id, address, server, comment', [
        { parameter: 'state', title: 'State', all: 'all states', options: facets.state },
        { parameter: 'provider', title: 'Provider', all: 'all providers', options: facets.provider },
        { parameter: 'label', title: 'Label', all: 'all labels', options: facets.label },
      ]),
      rows.length === 0
        ? FILTERS.some((name) => route.query.has(name))
          ? nothing('No node matches the filters.')
          : nothing(
              'There are no nodes. Nodes are created for requests, and in advance for labels with ',
              h('code', {}, 'min-ready'),
              '.',
            )
        : table({
            caption: `Nodes, ${counted(paging.matching, 'match', 'matches')}`,
            columns: nodeColumns(present),
            rows,
            key: ({ id }) => id,
            tone: ({ state, interruption }) =>
              groupOf(state) === 'failed' || interruption !== null ? 'bad' : undefined,
            route,
            defaultSort: 'id',
          }),
      rows.length === 0 ? undefined : pager(route, paging, 'node'),
    ];
  },
};

/** Tables whose rows become cards on small screens, with headers that sort and links to further pages. */

import { h, type Child } from './dom.js';
import { pageHref } from './links.js';
import type { Paging } from './model.js';
import type { Route } from './route.js';
import { counted, numberText } from './text.js';

export interface Column<T> {
  readonly title: string;
  readonly cell: (row: T) => readonly Child[];
  /** Value of the parameter `sort`; columns without it cannot be sorted by. */
  readonly sort?: string;
  /** True for numbers, which are aligned to the right. */
  readonly numeric?: boolean;
  /** True for columns that small screens omit. */
  readonly wideOnly?: boolean;
}

export interface TableOptions<T> {
  readonly caption: string;
  readonly columns: readonly Column<T>[];
  readonly rows: readonly T[];
  readonly key: (row: T) => string;
  /** Tone of the row's edge. */
  readonly tone?: (row: T) => string | undefined;
  /** The route that the headers sort; without it they do not sort. */
  readonly route?: Route;
  /** Cells of a row below the others, e.g. sums. */
  readonly foot?: readonly (readonly Child[])[];
  /** The order without the parameter `sort`. */
  readonly defaultSort?: string;
}

export function table<T>(options: TableOptions<T>): HTMLElement {
  const { caption, columns, rows, key, tone, route, defaultSort, foot } = options;
  const sort = route?.query.get('sort') ?? defaultSort;
  const body = rows.map((row) =>
    h(
      'tr',
      { 'data-key': key(row), class: tone?.(row) },
      ...columns.map((column, index) =>
        h(
          index === 0 ? 'th' : 'td',
          { class: classOf(column), 'data-column': column.title, ...(index === 0 ? { scope: 'row' } : {}) },
          ...column.cell(row),
        ),
      ),
    ),
  );
  return h(
    'div',
    { class: 'table', 'data-key': caption },
    h(
      'table',
      {},
      h('caption', { class: 'hidden' }, caption),
      h('thead', {}, h('tr', {}, ...columns.map((column) => header(column, sort, route)))),
      h('tbody', {}, ...body),
      foot === undefined ? undefined : footer(columns, foot),
    ),
  );
}

function footer<T>(columns: readonly Column<T>[], foot: readonly (readonly Child[])[]): HTMLElement {
  const cells = columns.map((column, index) =>
    h(index === 0 ? 'th' : 'td', { class: classOf(column), 'data-column': column.title }, ...(foot[index] ?? [])),
  );
  return h('tfoot', {}, h('tr', {}, ...cells));
}

function classOf({ numeric, wideOnly }: Column<never>): string | undefined {
  const names = [...(numeric === true ? ['number'] : []), ...(wideOnly === true ? ['wide-only'] : [])];
  return names.length === 0 ? undefined : names.join(' ');
}

function header<T>(column: Column<T>, sort: string | undefined, route: Route | undefined): HTMLElement {
  const { title, sort: by } = column;
  const attributes = { scope: 'col', class: classOf(column), 'data-key': title };
  if (by === undefined || route === undefined) return h('th', attributes, title);
  const up = sort === by;
  const down = sort === `-${by}`;
  const order = up ? 'ascending' : down ? 'descending' : undefined;
  const mark = h('span', { class: 'sort-mark', 'aria-hidden': 'true' }, up ? '▲' : down ? '▼' : '');
  const href = routeHref(route, { sort: up ? `-${by}` : by, offset: undefined });
  return h('th', { ...attributes, 'aria-sort': order }, h('a', { href }, title, mark));
}

/** Returns the fragment of the same list with other parameters; undefined removes one. */
export function routeHref({ page, id, query }: Route, changes: Readonly<Record<string, string | undefined>>): string {
  const parameters = { ...Object.fromEntries(query), ...changes };
  return pageHref([page, ...(id === undefined ? [] : [id])], parameters);
}

/** Returns the number of rows and links to the pages before and after. */
export function pager(route: Route, { matching, offset, limit }: Paging, noun: string): HTMLElement {
  const page = Math.floor(offset / limit) + 1;
  const pages = Math.max(1, Math.ceil(matching / limit));
  const to = (text: string, target: number): HTMLElement => {
    if (target < 1 || target > pages || target === page) {
      return h('span', { class: 'button off', 'data-key': text }, text);
    }
    const href = routeHref(route, { offset: target === 1 ? undefined : String((target - 1) * limit) });
    return h('a', { class: 'button', href, 'data-key': text }, text);
  };
  return h(
    'nav',
    { class: 'pager', 'aria-label': 'Pages', 'data-key': 'pager' },
    h('span', { class: 'quiet' }, counted(matching, noun)),
    ...(pages > 1
      ? [
          to('First', 1),
          to('Previous', page - 1),
          h('span', {}, `Page ${numberText(page)} of ${numberText(pages)}`),
          to('Next', page + 1),
          to('Last', pages),
        ]
      : []),
  );
}

/** Elements that several sections use. */

import { h, svg, type Child } from './dom.js';
import type { NodeGroup, Usage } from './status.js';
import { ageText, amountText } from './text.js';

/** The current time by the launcher's clock, in unix seconds. */
export interface Present {
  now(): number;
}

/** Returns an element that shows the age of a time; `growAges` updates it. */
export function age(since: number, present: Present): HTMLElement {
  const when = new Date(since * 1000);
  const exact = Number.isNaN(when.getTime()) ? undefined : when.toISOString();
  return h('time', { 'data-since': since, datetime: exact, title: exact }, ageText(present.now() - since));
}

/** Updates all ages in the page. */
export function growAges(present: Present): void {
  for (const element of document.querySelectorAll('time[data-since]')) {
    const text = ageText(present.now() - Number(element.getAttribute('data-since')));
    if (element.textContent !== text) element.textContent = text;
  }
}

/** Returns a badge that names a state; `kind` selects its colour. */
export function badge(text: string, kind: 'good' | 'busy' | 'bad' | 'idle'): HTMLElement {
  return h('span', { class: `badge ${kind}` }, text);
}

/** Returns a bar of the used share of a limit, with the numbers. */
export function meter({ resource, used, limit }: Usage, key = resource): HTMLElement {
  const numbers = `${amountText(resource, used)}${limit === null ? '' : ` of ${amountText(resource, limit)}`}`;
  const words = h('span', { class: 'meter-text' }, h('span', {}, resource), h('b', {}, numbers));
  if (limit === null) return h('div', { class: 'meter', 'data-key': key }, words);
  const share = limit > 0 ? Math.min(used / limit, 1) : 1;
  // The bar is an SVG graphic, since the page's security policy forbids style attributes.
  const bar = svg(
    'svg',
    { class: `bar${share >= 1 ? ' full' : share >= 0.85 ? ' high' : ''}`, 'aria-hidden': 'true' },
    svg('rect', { width: `${Math.round(share * 1000) / 10}%`, height: '100%' }),
  );
  const attributes = {
    role: 'meter',
    'aria-label': resource,
    'aria-valuemin': 0,
    'aria-valuenow': Math.min(used, limit),
    'aria-valuemax': limit,
    'aria-valuetext': numbers,
  };
  return h('div', { class: 'meter', 'data-key': key, ...attributes }, words, bar);
}

/** Returns the first names as a list for readers, e.g. `a, b and 3 more`. */
export function listed(names: readonly string[], most = 4): string {
  if (names.length <= most) return names.join(', ');
  return `${names.slice(0, most).join(', ')} and ${names.length - most} more`;
}

/** Returns the text of an empty section. */
export function nothing(text: string): HTMLElement {
  return h('p', { class: 'nothing' }, text);
}

/** Returns a table whose cells also have their column's name, so that small screens can show rows as cards. */
export function table(
  caption: string,
  columns: readonly string[],
  rows: readonly { readonly key: string; readonly cells: readonly (readonly Child[])[] }[],
): HTMLElement {
  const head = columns.map((column) => h('th', { scope: 'col' }, column));
  const body = rows.map(({ key, cells }) =>
    h('tr', { 'data-key': key }, ...cells.map((cell, index) => h('td', { 'data-column': columns[index] }, ...cell))),
  );
  return h(
    'table',
    {},
    h('caption', { class: 'hidden' }, caption),
    h('thead', {}, h('tr', {}, ...head)),
    h('tbody', {}, ...body),
  );
}

/** Returns the CSS class that sets the colour of a group of nodes. */
export function groupClass(group: NodeGroup): string {
  return `group-${group.replace(' ', '-')}`;
}

/** Elements that several pages use. */

import { h, svg, type Child } from './dom.js';
import type { GroupCounts, NodeGroup, Usage } from './model.js';
import { pageHref } from './links.js';
import { ageText, amountText, exactClockText, numberText } from './text.js';

/** The current time by the launcher's clock, in unix seconds. */
export interface Present {
  now(): number;
}

export type Tone = 'good' | 'busy' | 'bad' | 'idle';

/** Returns an element that shows the age of a time, or the time until it; `growAges` updates it. */
export function age(time: number, present: Present): HTMLElement {
  const when = new Date(time * 1000);
  const exact = Number.isNaN(when.getTime()) ? undefined : when.toISOString();
  const text = ageText(Math.abs(present.now() - time));
  return h('time', { 'data-since': time, datetime: exact, title: exact }, text);
}

/** Updates all ages in the page. */
export function growAges(present: Present): void {
  for (const element of document.querySelectorAll('time[data-since]')) {
    const text = ageText(Math.abs(present.now() - Number(element.getAttribute('data-since'))));
    if (element.textContent !== text) element.textContent = text;
  }
}

/** Returns a point in time by the viewer's clock. */
export function moment(time: number): HTMLElement {
  const when = new Date(time * 1000);
  const exact = Number.isNaN(when.getTime()) ? undefined : when.toISOString();
  return h('time', { datetime: exact, title: exact }, exactClockText(time));
}

/** Returns a badge that names a state; the tone selects its colour. */
export function badge(text: string, tone: Tone): HTMLElement {
  return h('span', { class: `badge ${tone}`, title: text.length > 24 ? text : undefined }, text);
}

/** Returns a bar of the used share of a limit, with the numbers. */
export function meter({ resource, used, limit }: Usage, label = resource): HTMLElement {
  const numbers = `${amountText(resource, used)}${limit === null ? '' : ` of ${amountText(resource, limit)}`}`;
  const words = h('span', { class: 'meter-text' }, h('span', {}, resource), h('b', {}, numbers));
  if (limit === null) return h('div', { class: 'meter', 'data-key': resource }, words);
  const share = limit > 0 ? Math.min(used / limit, 1) : 1;
  const attributes = {
    role: 'meter',
    'aria-label': label,
    'aria-valuemin': 0,
    'aria-valuenow': Math.min(used, limit),
    'aria-valuemax': limit,
    'aria-valuetext': numbers,
  };
  const tone = share >= 1 ? 'full' : share >= 0.85 ? 'high' : '';
  return h('div', { class: 'meter', 'data-key': resource, ...attributes }, words, bar(share, tone));
}

/** Returns a bar; an SVG graphic, since the page's security policy forbids style attributes. */
export function bar(share: number, tone = ''): SVGElement {
  const width = Math.round(Math.max(0, Math.min(share, 1)) * 1000) / 10;
  return svg(
    'svg',
    { class: `bar ${tone}`.trim(), 'aria-hidden': 'true' },
    svg('rect', { width: `${width}%`, height: '100%' }),
  );
}

/** Returns the text of an empty part of the page: what is not there, and what to do if it should be. */
export function nothing(...text: readonly Child[]): HTMLElement {
  return h('p', { class: 'nothing' }, ...text);
}

export function section(title: string, detail: Child, ...children: readonly Child[]): HTMLElement {
  const id = `section-${title.toLowerCase().replace(/[^a-z]+/g, '-')}`;
  return h(
    'section',
    { 'aria-labelledby': id, 'data-key': title },
    h(
      'div',
      { class: 'section-head' },
      h('h2', { id }, title),
      detail === undefined ? undefined : h('span', { class: 'quiet' }, detail),
    ),
    ...children,
  );
}

/** Returns a list of names and values; undefined values are omitted. */
export function facts(...entries: readonly (readonly [string, readonly Child[] | undefined])[]): HTMLElement {
  return h(
    'dl',
    { class: 'facts' },
    ...entries.flatMap(([term, value]) =>
      value === undefined ? [] : [h('div', { 'data-key': term }, h('dt', {}, term), h('dd', {}, ...value))],
    ),
  );
}

export const NODE_GROUPS: readonly NodeGroup[] = ['building', 'ready', 'in use', 'held', 'leaving', 'failed'];

/** Node states of a group, for links to the list of nodes. */
export const GROUP_STATES: Readonly<Record<NodeGroup, string>> = {
  building: 'init,building,testing',
  ready: 'ready',
  'in use': 'in-use',
  held: 'hold',
  leaving: 'used,deleting,deleted',
  failed: 'failed,aborted',
};

/** Returns the CSS class that sets the colour of a group of nodes. */
export function groupClass(group: NodeGroup): string {
  return `group-${group.replace(' ', '-')}`;
}

export function groupOf(state: string): NodeGroup | undefined {
  return NODE_GROUPS.find((group) => GROUP_STATES[group].split(',').includes(state));
}

/** Returns the numbers of nodes by group, each a link to those nodes; groups without nodes are omitted. */
export function groupLegend(groups: GroupCounts, parameters: Readonly<Record<string, string>> = {}): HTMLElement {
  const shown = NODE_GROUPS.filter((group) => groups[group] > 0);
  return h(
    'ul',
    { class: 'legend', 'aria-label': 'Nodes by state' },
    ...(shown.length === 0
      ? [h('li', { class: 'none' }, 'no nodes')]
      : shown.map((group) =>
          h(
            'li',
            { class: groupClass(group), 'data-key': group },
            h(
              'a',
              { href: pageHref(['nodes'], { ...parameters, state: GROUP_STATES[group] }) },
              h('b', {}, numberText(groups[group])),
              ` ${group}`,
            ),
          ),
        )),
  );
}

/** Returns the number of nodes as a link, with a bar of their states. */
export function groupBar(groups: GroupCounts, parameters: Readonly<Record<string, string>>): Child[] {
  const total = NODE_GROUPS.reduce((sum, group) => sum + groups[group], 0);
  if (total === 0) return ['0'];
  let x = 0;
  const parts = NODE_GROUPS.map((group) => {
    const start = x;
    const width = (groups[group] / total) * 100;
    x += width;
    return svg('rect', { class: groupClass(group), x: `${start}%`, width: `${width}%`, height: '100%' });
  });
  const words = NODE_GROUPS.filter((group) => groups[group] > 0).map((group) => `${groups[group]} ${group}`);
  return [
    h(
      'a',
      { href: pageHref(['nodes'], parameters), title: words.join(', ') },
      h('b', {}, numberText(total)),
      groups.failed === 0 ? undefined : h('span', { class: 'bad-text' }, ` ${numberText(groups.failed)} failed`),
    ),
    svg('svg', { class: 'bar groups', role: 'img', 'aria-label': words.join(', ') }, ...parts),
  ];
}

/** Returns the first names as a list for readers, e.g. `a, b and 3 more`. */
export function listed(names: readonly string[], most = 4): string {
  if (names.length <= most) return names.join(', ');
  return `${names.slice(0, most).join(', ')} and ${numberText(names.length - most)} more`;
}

/** Returns the text with its parts between backticks as code. */
export function withCode(text: string): Child[] {
  const parts = text.split('`');
  // A single backtick is no quotation.
  if (parts.length % 2 === 0) return [text];
  return parts.map((part, index) => (index % 2 === 0 ? part : h('code', {}, part)));
}

/** Returns a message for screen readers only. */
export function hidden(text: string): HTMLElement {
  return h('span', { class: 'hidden' }, text);
}

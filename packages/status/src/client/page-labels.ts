/** The pages of labels. */

import { h, type Child } from './dom.js';
import { joined, link, name, pageHref } from './links.js';
import type { LabelDocument, LabelsDocument, LabelStatus } from './model.js';
import { labelCharts } from './history.js';
import type { View } from './page.js';
import type { Route } from './route.js';
import { missingPage } from './missing.js';
import { decisionTable, poolAnswersTable, requestColumns } from './rows.js';
import { table, type Column } from './table.js';
import { counted, durationText, numberText } from './text.js';
import { reasonBadge } from './tones.js';
import { age, badge, facts, nothing, section, type Present } from './widgets.js';

const MAX_POOLS = 3;

export const labelsPage: View<LabelsDocument> = {
  title: () => 'Labels',
  draw: ({ document: { labels }, present, route }) => [
    h('h1', { tabindex: -1 }, 'Labels'),
    h(
      'p',
      { class: 'lead' },
      `${counted(labels.length, 'label')} in the pools of all launchers. Times are those of requests of the last day.`,
    ),
    labelTable(sorted(labels, route), present, route),
  ],
};

const ORDERS: Readonly<Record<string, (label: LabelStatus) => number | string>> = {
  name: ({ name: text }) => text,
  ready: ({ ready }) => ready,
  building: ({ building }) => building,
  waiting: ({ waiting }) => waiting,
  p50: ({ toNode }) => toNode.p50 ?? -1,
  p95: ({ toNode }) => toNode.p95 ?? -1,
};

function sorted(labels: readonly LabelStatus[], { query }: Route): LabelStatus[] {
  const sort = query.get('sort') ?? 'name';
  const key = ORDERS[sort.replace(/^-/, '')];
  if (key === undefined) return [...labels];
  const direction = sort.startsWith('-') ? -1 : 1;
  return [...labels].sort((a, b) => direction * (key(a) < key(b) ? -1 : key(a) > key(b) ? 1 : 0));
}

export function labelTable(labels: readonly LabelStatus[], present: Present, route?: Route): HTMLElement {
  if (labels.length === 0) {
    return nothing('No pool serves a label. Configure ', h('code', {}, 'labels'), ' and the pools of a provider.');
  }
  return table({
    caption: 'Labels',
    columns: columns(present),
    rows: labels,
    key: (label) => label.name,
    tone: ({ reason }) => (reason?.phase === 'none' ? 'bad' : undefined),
    ...(route === undefined ? {} : { route, defaultSort: 'name' }),
  });
}

function columns(present: Present): Column<LabelStatus>[] {
  const nodes = (label: string, state: string, count: number): Child[] =>
    count === 0 ? ['0'] : [h('a', { href: pageHref(['nodes'], { label, state }) }, numberText(count))];
  return [
    { title: 'Label', sort: 'name', cell: (label) => [link('label', label.name)] },
    {
      title: 'Waiting',
      sort: 'waiting',
      numeric: true,
      cell: ({ name: label, waiting, oldest }) =>
        waiting === 0
          ? ['0']
          : [
              h('a', { href: pageHref(['requests'], { state: 'waiting', label }) }, numberText(waiting)),
              oldest === null ? undefined : h('span', { class: 'quiet below' }, 'oldest ', age(oldest, present)),
            ],
    },
    {
      title: 'Building',
      sort: 'building',
      numeric: true,
      cell: (label) => nodes(label.name, 'init,building,testing', label.building),
    },
    {
      title: 'Ready',
      sort: 'ready',
      numeric: true,
      cell: (label) => [
        ...nodes(label.name, 'ready', label.ready),
        label.readyTarget === 0
          ? undefined
          : h(
              'span',
              { class: label.ready < label.readyTarget ? 'below bad-text' : 'quiet below' },
              label.readyReason === 'min-ready'
                ? `min-ready ${numberText(label.readyTarget)}`
                : `of ${numberText(label.readyTarget)}`,
            ),
      ],
    },
    { title: 'In use', numeric: true, wideOnly: true, cell: (label) => nodes(label.name, 'in-use', label.inUse) },
    {
      title: 'p50 to node',
      sort: 'p50',
      numeric: true,
      cell: ({ toNode }) => [toNode.p50 === null ? '–' : durationText(toNode.p50)],
    },
    {
      title: 'p95 to node',
      sort: 'p95',
      numeric: true,
      cell: ({ toNode }) => [toNode.p95 === null ? '–' : durationText(toNode.p95)],
    },
    {
      title: 'Reason to wait',
      cell: ({ reason }) =>
        reason === null ? [] : [reasonBadge(reason.phase), ' ', h('span', { class: 'reason' }, reason.text)],
    },
    {
      title: 'Pools',
      wideOnly: true,
      cell: ({ pools }) => [
        ...joined(pools.slice(0, MAX_POOLS).map((pool) => link('pool', pool))),
        pools.length > MAX_POOLS ? ` and ${numberText(pools.length - MAX_POOLS)} more` : undefined,
        pools.length === 0 ? badge('no pool', 'bad') : undefined,
      ],
    },
  ];
}

export const labelPage: View<LabelDocument> = {
  title: ({ id }) => `Label ${id ?? ''}`,
  draw: ({ document: { label, poolAnswers, requests, decisions, history }, present, route }) => [
    ...(label === null
      ? missingPage(route)
      : [
          h('h1', { tabindex: -1 }, 'Label ', name(label.name)),
          reasonOf(label, present),
          facts(
            [
              'Ready',
              [
                h('a', { href: pageHref(['nodes'], { label: label.name, state: 'ready' }) }, numberText(label.ready)),
                label.readyReason === null ? '' : ` of ${numberText(label.readyTarget)} (${label.readyReason})`,
              ],
            ],
            ['Replaced at the age of', label.maxAge === null ? undefined : [durationText(label.maxAge)]],
            ['Kept for at least', label.minRetention === null ? undefined : [durationText(label.minRetention)]],
            ['Building', [numberText(label.building)]],
            ['In use', [numberText(label.inUse)]],
            [
              'Waiting requests',
              [
                h(
                  'a',
                  { href: pageHref(['requests'], { label: label.name, state: 'waiting' }) },
                  numberText(label.waiting),
                ),
              ],
            ],
            ['Time to node, p50', [label.toNode.p50 === null ? 'none served' : durationText(label.toNode.p50)]],
            ['Time to node, p95', [label.toNode.p95 === null ? 'none served' : durationText(label.toNode.p95)]],
            ['Requests served', [numberText(label.toNode.count), ' in the last day']],
            ['Nodes', [h('a', { href: pageHref(['nodes'], { label: label.name }) }, counted(label.total, 'node'))]],
          ),
          section('Pools', 'what each pool can do for the label', poolAnswersTable(poolAnswers)),
          labelCharts(history, label.waiting, present.now()),
        ]),
    requests.length === 0
      ? undefined
      : section(
          'Requests',
          undefined,
          table({
            caption: 'Requests for the label',
            columns: requestColumns(present),
            rows: requests,
            key: (row) => row.id,
          }),
        ),
    decisions.length === 0 ? undefined : section('Decisions', 'of this launcher', decisionTable(decisions)),
  ],
};

function reasonOf({ reason, waiting }: LabelStatus, present: Present): Child {
  if (reason === null) return undefined;
  return h(
    'p',
    { class: `callout ${reason.phase === 'none' ? 'bad' : 'busy'}` },
    reasonBadge(reason.phase),
    ` ${waiting === 1 ? '1 request waits' : waiting > 1 ? `${numberText(waiting)} requests wait` : 'Nodes are missing'}: ${reason.text} `,
    h('span', { class: 'quiet' }, '– for ', age(reason.since, present)),
  );
}
